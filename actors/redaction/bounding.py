"""Bound a text of any size without leaking a secret at a cut, in time that depends on the bound only.

The order is A17's. A long text is first cut to two windows: the head and tail that will be kept, each with a
margin of 4,096 characters towards the middle. The margins are scanned but never shown. So a secret that the
final cut would split is seen whole and replaced whole, and one that reaches through the margin up to the
window's edge counts as secret up to the edge. Text in the margin is not used to fill up what redaction
shortened: a secret that begins in sight of the edge may not be recognisable, and would be shown.

The final cut never splits a mark: it moves outwards of the kept text to the mark's border.
"""

import re
from dataclasses import dataclass

from temporality.actors.redaction.blocks import open_key_end
from temporality.actors.redaction.finding import MARK, Finding
from temporality.actors.redaction.kinds import OPEN
from temporality.actors.redaction.plain import Windows, windows_of
from temporality.actors.redaction.scanner import find_secrets, replaced

MARGIN_CHARACTERS = 4_096
"""Scanned beyond each kept end: longer than any secret without line breaks that is met in practice."""
CHARACTERS_LEAST = 64
"""With a smaller bound there is no room for the mark of a cut beside text."""

_EDGE_RUN = re.compile(r"[^\s\"'`<>,;()\[\]{}]{1,}+")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A bounded text without secrets: how many were replaced, of which kinds, and whether it was cut."""

    text: str
    found_count: int
    kinds: tuple[str, ...]
    cut: bool


def clean(value: object, *, characters_max: int) -> Cleaned:
    """Return the text of `value`, without secrets and in at most `characters_max` characters (A17).

    `value` is a text, or a structured tool result (mappings, sequences, numbers) whose parts that are not
    text are dropped. A longer text keeps two thirds of the bound from its begin and one third from its
    end, around a mark that says how many characters were left out. Raises `ValueError` if the bound is
    below 64.
    """
    if characters_max < CHARACTERS_LEAST:
        raise ValueError(f"characters_max must be at least {CHARACTERS_LEAST}, not {characters_max}")
    head_max = characters_max - characters_max // 3
    windows = windows_of(value, head_max + MARGIN_CHARACTERS, characters_max // 3 + MARGIN_CHARACTERS)
    if windows.tail is None:
        return _clean_whole(windows.head, characters_max)
    return _clean_windows(windows, characters_max)


def _clean_whole(text: str, characters_max: int) -> Cleaned:
    found = find_secrets(text)
    redacted = replaced(text, found)
    if len(redacted) <= characters_max:
        return Cleaned(redacted, len(found), _kinds(found), False)
    room = characters_max - len(cut_mark(len(redacted)))
    tail_max = room // 3
    head = _head(redacted, room - tail_max)
    tail = _tail(redacted, tail_max)
    left_out = len(redacted) - len(head) - len(tail)
    return Cleaned(head + cut_mark(left_out) + tail, len(found), _kinds(found), True)


def _clean_windows(windows: Windows, characters_max: int) -> Cleaned:
    head, tail = windows.head, windows.tail or ""
    room = characters_max - len(cut_mark(windows.left_out + len(head) + len(tail), windows.at_least))
    tail_max = room // 3
    head_shown = max(0, min(room - tail_max, len(head) - MARGIN_CHARACTERS))
    tail_from = len(tail) - max(0, min(tail_max, len(tail) - MARGIN_CHARACTERS))
    head_found = find_secrets(head)
    tail_found = _with_open_begin(tail, find_secrets(tail))
    shown_head = _head(replaced(head, head_found, 0, head_shown), head_shown)
    shown_tail = _tail(replaced(tail, tail_found, tail_from), len(tail) - tail_from)
    left_out = windows.left_out + (len(head) - head_shown) + tail_from
    found = [finding for finding in head_found if finding.start < head_shown]
    found += [finding for finding in tail_found if finding.end > tail_from]
    text = shown_head + cut_mark(left_out, windows.at_least) + shown_tail
    return Cleaned(text, len(found), _kinds(found), True)


def cut_mark(left_out: int, at_least: bool = False) -> str:
    """Return the text that stands where characters were left out."""
    return f"\n[cut: {'at least ' if at_least else ''}{left_out} characters left out]\n"


def _with_open_begin(tail: str, found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Add what a text whose begin was cut off starts inside of: the rest of a long secret, perhaps."""
    end = open_key_end(tail)
    run = _EDGE_RUN.match(tail)
    if run is not None:
        end = max(end, run.end())
    if end == 0:
        return found
    end = max([end, *(finding.end for finding in found if finding.start < end)])
    return (Finding(OPEN, 0, end), *(finding for finding in found if finding.start >= end))


def _head(text: str, length: int) -> str:
    """Return the first characters of a redacted text, without a split mark."""
    for found in MARK.finditer(text, max(0, length - 64), length + 64):
        if found.start() < length < found.end():
            return text[: found.start()]
    return text[:length]


def _tail(text: str, length: int) -> str:
    """Return the last characters of a redacted text, without a split mark."""
    start = len(text) - min(length, len(text))
    for found in MARK.finditer(text, max(0, start - 64), start + 64):
        if found.start() < start < found.end():
            return text[found.end() :]
    return text[start:]


def _kinds(found: tuple[Finding, ...] | list[Finding]) -> tuple[str, ...]:
    return tuple(sorted({finding.kind for finding in found}))
