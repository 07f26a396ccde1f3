"""Turn any value into plain text, or into the two ends of it when it is long.

Dropped: control characters except line break and tab, surrogates, terminal escape sequences, bytes, and the
parts of a structured tool result that are not text (images, audio, binary resources). Names stay beside
their values (`"password": "…"`), because a value's name is what tells that it is secret.

Only as much is looked at as the windows need: a 10 MB text is sliced, and of a huge structure a bounded
number of nodes is visited.
"""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

DROPPED_SHARE_MAX = 8
"""A window is widened while dropping empties it, up to this many times its length of raw text."""
NODES_MAX = 20_000
"""Most nodes of a structured value that are visited; what lies behind them is left out."""
DEPTH_MAX = 64
"""Deepest nesting that is followed: far below the interpreter's recursion limit."""

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,256}+[ -/]{0,16}+[@-~]?"  # control sequence
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]{0,1024}+(?:\x07|\x1b\\|\x9c)?"  # string
    r"|\x1b[ -/]{0,4}+[0-~]?"  # two characters, or the begin of one that was cut off
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_DROPPED_PARTS = frozenset(
    {"image", "image_url", "input_image", "audio", "input_audio", "video", "blob", "file"}
)


@dataclass(frozen=True, slots=True)
class Windows:
    """A whole text in `head`, or the head and tail of one with `left_out` characters between them."""

    head: str
    tail: str | None = None
    left_out: int = 0
    at_least: bool = False


def plain(text: str) -> str:
    """Return `text` without terminal escape sequences, control characters and surrogates."""
    if text.isprintable():
        return text
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    if "\x1b" in text or any(char in text for char in "\x9b\x9d\x90\x98\x9e\x9f"):
        text = _ESCAPES.sub("", text)
    return _CONTROL.sub("", text)


def windows_of(value: object, head_length: int, tail_length: int) -> Windows:
    """Return the plain text of `value`, or its two ends of these lengths."""
    raw = Windows(value) if isinstance(value, str) else _rendered(value, head_length, tail_length)
    return _plain_windows(raw, head_length, tail_length)


def _plain_windows(raw: Windows, head_length: int, tail_length: int) -> Windows:
    if raw.tail is None:
        text, total = raw.head, len(raw.head)
        if total <= head_length + tail_length:
            return Windows(plain(text))
        head_raw, head = _front(text, head_length)
        tail_raw, tail = _back(text, tail_length)
        if head_raw + tail_raw >= total:  # so much was dropped that the whole text may fit
            whole = plain(text)
            if len(whole) <= head_length + tail_length:
                return Windows(whole)
            return Windows(whole[:head_length], whole[-tail_length:], len(whole) - head_length - tail_length)
        return Windows(head, tail, total - head_raw - tail_raw)
    return Windows(plain(raw.head), plain(raw.tail), raw.left_out, raw.at_least)


def _front(text: str, length: int) -> tuple[int, str]:
    """Return how much of the begin of `text` was looked at, and up to `length` plain characters of it."""
    taken = length
    while True:
        kept = plain(text[:taken])
        if len(kept) >= length or taken >= min(len(text), length * DROPPED_SHARE_MAX):
            return taken, kept[:length]
        taken = min(len(text), taken * 2)


def _back(text: str, length: int) -> tuple[int, str]:
    taken = length
    while True:
        kept = plain(text[-taken:])
        if len(kept) >= length or taken >= min(len(text), length * DROPPED_SHARE_MAX):
            return taken, kept[-length:]
        taken = min(len(text), taken * 2)


def _rendered(value: object, head_length: int, tail_length: int) -> Windows:
    """Render a structured value piece by piece, keeping its first and last characters only."""
    head: list[str] = []
    tail: deque[str] = deque()
    head_room, tail_size, left_out = head_length, 0, 0
    pieces = _Pieces(head_length + tail_length)
    for piece, missing in pieces.of(value):
        left_out += missing
        if head_room and not tail and not missing:
            head.append(piece[:head_room])
            head_room -= len(head[-1])
            rest_of_piece = piece[len(head[-1]) :]
        else:
            rest_of_piece = piece
        if not rest_of_piece:
            continue
        tail.append(rest_of_piece)
        tail_size += len(rest_of_piece)
        while tail_size - len(tail[0]) >= tail_length:
            tail_size -= len(tail[0])
            left_out += len(tail.popleft())
    rest = "".join(tail)
    if not left_out and not pieces.exhausted and len(rest) <= tail_length:
        return Windows("".join(head) + rest)
    left_out += max(0, len(rest) - tail_length)
    return Windows("".join(head), rest[-tail_length:], left_out, pieces.exhausted)


class _Pieces:
    """The text of a structured value, in order; `exhausted` once the limit of nodes was reached."""

    def __init__(self, length_max: int) -> None:
        self.length_max = length_max
        self.nodes = 0
        self.exhausted = False

    def of(self, value: object, depth: int = 0, nested: bool = False) -> Iterator[tuple[str, int]]:
        """Yield pieces of text, each with the number of characters left out before it."""
        self.nodes += 1
        if self.nodes > NODES_MAX or depth > DEPTH_MAX:
            self.exhausted = True
            return
        if isinstance(value, str):
            yield from self._text(value, nested)
        elif isinstance(value, bool | int | float) or (value is None and nested):
            yield json.dumps(value), 0
        elif isinstance(value, Mapping):
            yield from self._mapping(value, depth, nested)
        elif isinstance(value, list | tuple):
            yield from self._sequence(value, depth, nested)

    def _text(self, value: str, nested: bool) -> Iterator[tuple[str, int]]:
        quote = '"' if nested else ""
        if len(value) <= 2 * self.length_max:
            yield (json.dumps(value, ensure_ascii=False) if nested else value), 0
            return
        ends = (value[: self.length_max], value[-self.length_max :])
        first, last = (json.dumps(end, ensure_ascii=False)[1:-1] for end in ends) if nested else ends
        yield quote + first, 0
        yield last + quote, len(value) - 2 * self.length_max

    def _mapping(self, value: Mapping[object, object], depth: int, nested: bool) -> Iterator[tuple[str, int]]:
        kind = value.get("type")
        if isinstance(kind, str) and kind in _DROPPED_PARTS:
            return
        text = value.get("text")
        if kind in ("text", "input_text", "output_text") and isinstance(text, str):
            yield from self.of(text, depth + 1, nested)
            return
        if kind == "resource" and isinstance(resource := value.get("resource"), Mapping):
            yield from self.of(resource.get("text"), depth + 1, nested)
            return
        yield "{", 0
        first = True
        for key, item in value.items():
            if self.exhausted or not _is_textual(item):
                continue
            yield (
                ("" if first else ", ") + json.dumps(str(key)[: self.length_max], ensure_ascii=False) + ": ",
                0,
            )
            first = False
            yield from self.of(item, depth + 1, True)
        yield "}", 0

    def _sequence(
        self, value: list[object] | tuple[object, ...], depth: int, nested: bool
    ) -> Iterator[tuple[str, int]]:
        parts = not nested and any(isinstance(item, Mapping) and "type" in item for item in value[:8])
        yield "" if parts else "[", 0
        first = True
        for item in value:
            if self.exhausted:
                break
            if not _is_textual(item):
                continue
            yield "" if first else "\n" if parts else ", ", 0
            first = False
            yield from self.of(item, depth + 1, not parts)
        yield "" if parts else "]", 0


def _is_textual(item: object) -> bool:
    """Say whether a member of a structure has text at all."""
    if isinstance(item, Mapping):
        return item.get("type") not in _DROPPED_PARTS
    return item is None or isinstance(item, str | bool | int | float | list | tuple)
