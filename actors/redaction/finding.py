"""What the rules report, and the mark that stands in a secret's place.

A mark holds letters, a colon and hyphens only. So normalising a text afterwards (numbers, quoted values,
paths, ids) leaves it as it is, a second pass recognises it, and nobody takes it for a value.
"""

import re
from dataclasses import dataclass

MARK = re.compile(r"\[redacted:[a-z-]{1,40}\]")
MARK_OPENING = "[redacted:"


@dataclass(frozen=True, slots=True)
class Finding:
    """One secret: its kind, and the half-open range of characters it takes in the text that was scanned."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """A text and its lower-case twin of the same length, in which literals are looked for."""

    text: str
    lower: str


def source(text: str) -> Source:
    """Return `text` with a lower-case twin whose offsets agree with it."""
    lower = text.lower()
    if len(lower) != len(text):  # "İ" becomes two characters
        lower = "".join(one if len(one := char.lower()) == 1 else char for char in text)
    return Source(text, lower)


def mark(kind: str) -> str:
    """Return the text that replaces a secret of `kind`."""
    return f"[redacted:{kind}]"


def mark_at(text: str, position: int) -> bool:
    """Say whether a mark begins at `position`."""
    return MARK.match(text, position) is not None


def positions(haystack: str, needle: str) -> list[int]:
    """List where `needle` begins in `haystack`, not overlapping."""
    found = []
    at = haystack.find(needle)
    while at >= 0:
        found.append(at)
        at = haystack.find(needle, at + len(needle))
    return found
