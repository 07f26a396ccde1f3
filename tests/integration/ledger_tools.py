"""Python tools whose effects are counted outside of every process of ours: lines of a file."""

from pathlib import Path


def _write(ledger: str, line: str) -> None:
    with Path(ledger).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def send(ledger: str, n: int) -> str:
    """Send message `n`; sending twice is harm (effect once)."""
    _write(ledger, f"send {n}")
    return f"sent {n}"


def charge(ledger: str, n: int, idempotency_key: str) -> str:
    """Charge order `n`; a key that was charged before charges nothing (effect idempotent)."""
    _write(ledger, f"charge {n} {idempotency_key}")
    return f"charged {n}"


def look(ledger: str, n: int) -> str:
    """Look at `n`; no effect."""
    _write(ledger, f"look {n}")
    return f"seen {n}"


def break_down(n: int) -> str:
    """Fail in the same words for every `n`."""
    raise ConnectionError(f"no route to host 10.0.0.{n} while calling the warehouse")


send.temporality_effect = "once"  # type: ignore[attr-defined]
charge.temporality_effect = "idempotent"  # type: ignore[attr-defined]
look.temporality_effect = "none"  # type: ignore[attr-defined]
break_down.temporality_effect = "none"  # type: ignore[attr-defined]
