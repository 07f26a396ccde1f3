"""What a tool said, made fit for a model: clean text within the cap.

Text comes from anywhere: binary junk, halves of emoji, ten megabytes of log. Here it becomes Unicode that
every encoder accepts, and is cut to the run's cap with its beginning (two thirds) and its end (one third):
logs and tracebacks end with what matters. The line between says how much is missing and where it is kept.
"""

import re
from dataclasses import dataclass
from typing import Any

from temporality.protocol.identity import digest
from temporality.protocol.tool import EffectKnown

OVERFLOW_BYTES_MAX = 64 * 1024 * 1024
"""Most of one reply that is kept as a blob: bounds the memory and the store that one call can take."""
DATA_BYTES_MAX = 32_768
"""Structured results above this are left out of the outcome (the text stays), so that it fits a commit."""

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Returned:
    """A tool's success: text for the model, JSON data for programs, notes on what is not text."""

    text: str
    data: Any = None
    visual: Any = None


@dataclass(frozen=True, slots=True)
class Raised:
    """A tool's failure; `effect` is what is known about the world afterwards."""

    error_class: str
    text: str
    effect: EffectKnown = "none"


Result = Returned | Raised


@dataclass(frozen=True, slots=True)
class Capped:
    """Text within the cap; `overflow` holds the whole text if something was left out."""

    text: str
    overflow: bytes | None = None


def clean(text: str) -> str:
    """Return `text` with lone surrogates replaced, so that it can be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return text


def cap(text: str, bytes_max: int) -> Capped:
    """Cut clean `text` to at most `bytes_max` bytes of UTF-8, at whole characters.

    `bytes_max` must leave room for the line that tells of the cut (a run's cap is at least 1,024).
    """
    whole = text.encode()
    if len(whole) <= bytes_max:
        return Capped(text)
    kept = whole[:OVERFLOW_BYTES_MAX]
    name = digest(kept)
    room = bytes_max - len(_cut_line(len(whole), name, len(whole)))
    head = whole[: room * 2 // 3].decode(errors="ignore")
    tail = whole[len(whole) - room // 3 :].decode(errors="ignore")
    left_out = len(whole) - len(head.encode()) - len(tail.encode())
    line = _cut_line(left_out, name, len(kept) if len(kept) < len(whole) else None)
    return Capped(f"{head}{line}{tail}", kept)


def _cut_line(left_out: int, name: str, kept: int | None) -> str:
    where = f"whole reply: blob {name}" if kept is None else f"the first {kept} bytes: blob {name}"
    return f"\n[… {left_out} bytes left out; {where} …]\n"


def shorten(text: str, characters_max: int) -> str:
    """Return `text` cut to about `characters_max` characters: its beginning and its end."""
    if len(text) <= characters_max:
        return text
    head = characters_max * 2 // 3
    return f"{text[:head]} … {text[len(text) - (characters_max - head) :]}"
