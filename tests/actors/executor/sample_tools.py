"""Python tools for the tests, one for each thing a function can do."""

import sys
from dataclasses import dataclass
from datetime import date
from threading import Event, get_ident
from typing import Annotated, Any, Literal

import anyio
from msgspec import Meta

RUNNING = Event()
"""Set when `block` has begun."""
RELEASE = Event()
"""Set by a test to let `block` return."""
DONE = Event()
"""Set when `act_after_release` is about to return."""
RUNS: list[str] = []
ACTED: list[str] = []
"""The keys under which `act` has acted."""


@dataclass
class Place:
    """A place with a name."""

    name: str
    floor: int = 0


def greet(name: str, times: Annotated[int, Meta(ge=1, le=3)] = 1) -> str:
    """Greet somebody.

    Politely.
    """
    return " ".join([f"hello {name}"] * times)


greet.temporality_effect = "none"  # type: ignore[attr-defined]


def book(place: Place, day: date, seats: list[int], kind: Literal["day", "night"] = "day") -> dict[str, Any]:
    """Book seats."""
    return {"place": place.name, "year": day.year, "seats": len(seats), "kind": kind}


def act_after_release(*, idempotency_key: str) -> str:
    """Do something that can be counted, when the test lets it."""
    block()
    acted = act(idempotency_key=idempotency_key)
    DONE.set()
    return acted


def keyed(note: str, *, idempotency_key: str) -> str:
    """Do something under a key."""
    return f"{note} {idempotency_key}"


keyed.temporality_effect = "idempotent"  # type: ignore[attr-defined]


def nothing() -> None:
    """Return nothing."""


def junk() -> bytes:
    """Return bytes that are no text."""
    return b"a\xff\x00b"


def halves() -> str:
    """Return half a character."""
    return "a\ud83d"


def long_text(size: int) -> str:
    """Return that many characters."""
    return "x" * size


def rows(count: int) -> list[int]:
    """Return structure of any size."""
    return list(range(count))


def _deep(key: str) -> str:
    empty: dict[str, str] = {}
    return empty[key]


def broken(key: str) -> str:
    """Raise."""
    return _deep(key)


def leaves() -> None:
    """Try to end the process."""
    sys.exit(3)


def block() -> str:
    """Wait for the test."""
    RUNS.append("block")
    RUNNING.set()
    RELEASE.wait(30)
    return "released"


def act(*, idempotency_key: str) -> str:
    """Do something that can be counted."""
    ACTED.append(idempotency_key)
    return f"acted {idempotency_key}"


async def wait_for_ever() -> str:
    """Never return, politely."""
    await anyio.sleep_forever()
    return ""


async def gives_up() -> str:
    """Raise what looks like a cancellation."""
    raise anyio.get_cancelled_exc_class()


def where() -> int:
    """Tell the thread."""
    return get_ident()


async def soon(text: str) -> str:
    """Answer from the loop."""
    await anyio.lowlevel.checkpoint()
    return text


def anything(*values: int) -> int:
    """Can't be described."""
    return sum(values)


def opaque(stream: Event) -> str:
    """Can't be described either."""
    return str(stream)


def misdeclared() -> str:
    """Declares an effect that doesn't exist."""
    return ""


misdeclared.temporality_effect = "nonne"  # type: ignore[attr-defined]

NOT_A_FUNCTION = 3
