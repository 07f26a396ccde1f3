"""Python tools for runs whose barriers are under attack, and a script that uses them."""

from pathlib import Path

TOOLS = [f"tests.integration.faulty_tools:{name}" for name in ("fail", "wait_at", "count")]

GATED = """
replies:
  - when: {{turn: 1}}
    reply: {{tool_calls: [{{name: count, arguments: {{n: 1}}}}]}}
  - when: {{turn: 2}}
    reply: {{tool_calls: [{{name: wait_at, arguments: {{gate: "{gate}"}}}}]}}
  - when: {{turn: 3}}
    reply: {{tool_calls: [{{name: count, arguments: {{n: 3}}}}]}}
  - reply: {{content: done}}
"""
"""Three turns, of which the second lasts until somebody opens the gate."""


def fail(n: int) -> str:
    """Fail in the same words for every `n`."""
    raise ConnectionError(f"no route to host 10.0.0.{n} while calling the warehouse")


def wait_at(gate: str) -> str:
    """Return what somebody writes to the named pipe `gate`, as soon as they do."""
    return Path(gate).read_text(encoding="utf-8")


def count(n: int) -> str:
    """Count."""
    return f"{n} bolts left on the shelf"


fail.temporality_effect = "none"  # type: ignore[attr-defined]
wait_at.temporality_effect = "none"  # type: ignore[attr-defined]
count.temporality_effect = "none"  # type: ignore[attr-defined]
