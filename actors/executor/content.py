"""What a tool said, made fit for a model: clean text within the cap.

Text comes from anywhere: binary junk, halves of emoji, ten megabytes of log. Here it becomes Unicode that
every encoder accepts, and is cut to the run's cap with its beginning (two thirds) and its end (one third):
logs and tracebacks end with what matters. The line between says how much is missing; what is left out is not
kept, as nothing could ask for it.
"""

import re
from dataclasses import dataclass
from typing import Any

from temporality.protocol.tool import EffectKnown

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
    left_out = len(whole) - len(head.encode()) - len(tail.encode())
    return f"{head}{_cut_line(left_out)}{tail}"


def _cut_line(left_out: int) -> str:
    return f"\n[… {left_out} bytes left out …]\n"


def shorten(text: str, characters_max: int) -> str:
    """Return `text` cut to about `characters_max` characters: its beginning and its end."""
    if len(text) <= characters_max:
        return text
    head = characters_max * 2 // 3
    return f"{text[:head]} … {text[len(text) - (characters_max - head) :]}"
