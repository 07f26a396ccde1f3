"""What a tool said, made fit for a model: clean text within the cap.

Text comes from anywhere: binary junk, halves of emoji, ten megabytes of log. Here it becomes Unicode that
every encoder accepts, and is cut to the run's cap with its beginning (two thirds) and its end (one third):
logs and tracebacks end with what matters. The line between says how much is missing; what is left out is not
kept, as nothing could ask for it.
"""

import re
from dataclasses import dataclass
from typing import Any

from temporality.actors.redaction import redact
from temporality.protocol.tool import EffectKnown

DATA_BYTES_MAX = 32_768
"""Structured results above this are left out of the outcome (the text stays), so that it fits a commit."""

CUT_MARGIN_CHARACTERS = 4_096
"""Looked over on each side of a cut: a secret across it is left out as a whole. Half of one can't be known as
a secret any more, and would get into what others may read."""

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


def encodable(text: str) -> str:
    """Return `text` with lone surrogates replaced, so that it can be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return text


def cap(text: str, bytes_max: int) -> str:
    """Cut encodable `text` to at most `bytes_max` bytes of UTF-8, at whole characters.

    `bytes_max` must leave room for the line that tells of the cut (a run's cap is at least 1,024).
    """
    whole = text.encode()
    if len(whole) <= bytes_max:
        return text
    room = bytes_max - len(_cut_line(len(whole)).encode())
    head = whole[: room * 2 // 3].decode(errors="ignore")
    tail = whole[len(whole) - room // 3 :].decode(errors="ignore")
    start, end = _around_secrets(text, len(head), len(text) - len(tail))
    head, tail = text[:start], text[end:]
    left_out = len(whole) - len(head.encode()) - len(tail.encode())
    return f"{head}{_cut_line(left_out)}{tail}"


def _cut_line(left_out: int) -> str:
    return f"\n[… {left_out} bytes left out …]\n"


def shorten(text: str, characters_max: int) -> str:
    """Return `text` cut to about `characters_max` characters: its beginning and its end."""
    if len(text) <= characters_max:
        return text
    head = characters_max * 2 // 3
    start, end = _around_secrets(text, head, len(text) - (characters_max - head))
    return f"{text[:start]} … {text[end:]}"


def _around_secrets(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the cut from `start` to `end`, widened so that no piece of a secret is left beside it (A17)."""
    before, after = start, end
    first = max(0, start - CUT_MARGIN_CHARACTERS)
    for found in redact(text[first : start + CUT_MARGIN_CHARACTERS]).found:
        if found.start < start - first < found.end:
            before = min(before, first + found.start)
    first = max(0, end - CUT_MARGIN_CHARACTERS)
    for found in redact(text[first : end + CUT_MARGIN_CHARACTERS]).found:
        if found.start < end - first < found.end:
            after = max(after, first + found.end)
    return before, after
