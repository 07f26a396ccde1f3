"""Where a value ends.

Text that crosses systems is quoted more than once: JSON in JSON in a shell line, percent-encoded, with HTML
entities. So an opening quote is taken with its spelling (`"`, `\\"`, `%22`, `&quot;`, `\\u0022`), and the
value ends at the same spelling. For backslashes a run of exactly the opening's length closes; a longer
one belongs to the value, unless it stands for backslashes of the value itself before the closing quote.

A bare value ends at white space, a quote or a closing bracket. Punctuation at its end is the sentence's.
"""

import re
from dataclasses import dataclass

from temporality.actors.redaction.finding import MARK_OPENING

QUOTED_LENGTH_MAX = 65_536
"""A closing quote farther away than this is not looked for: the value then ends with its line."""

QUOTE = r"""(?:\\{0,15}["'`]|%(?:25){0,3}2[27]|&quot;|&\#0?3[49];|&apos;|&\#x2[27];|\\{1,7}u002[27])"""
_OPENING = re.compile(rf'(?:[bBrRfFuUL@$]{{0,2}})(?P<quote>"""|\'\'\'|{QUOTE})')
_BARE = re.compile(
    r"""(?:[^\s"'`<>,;&()\[\]{}\\%|]|%(?!(?:25){0,3}+(?:26(?:[\w.\-]{1,64}+[=%]|\W|\Z)|2[27]|0[AaDd]|3[BbCc]|7[Dd]|20))|\\(?![nrt"'`u\\])|[(\[{])++"""
)
_TEMPLATE = re.compile(r"\$?\{\{|<%|\{%")
_MORE = re.compile(r"[,;)\]}&|<>][A-Za-z0-9!@#$%^*]")
_NEXT_NAME = re.compile(r"""[,;)\]}&|<>]{1,3}[\w.\-]{1,64}["']?[ ]?[=:]""")
_SENTENCE_END = ".:!?…"


@dataclass(frozen=True, slots=True)
class Extent:
    """The characters of a value, without its quotes; `after` is where scanning goes on."""

    start: int
    end: int
    quoted: bool
    after: int


def value_at(text: str, position: int, *, greedy: bool = False) -> Extent | None:
    """Return the value that begins at `position`; `greedy` lets a bare one run over inner punctuation."""
    opening = _OPENING.match(text, position)
    if opening is not None:
        return quoted_value(text, opening)
    return bare_value(text, position, greedy=greedy)


def opens_quote(text: str, position: int) -> bool:
    """Say whether a quoted value begins at `position`."""
    return _OPENING.match(text, position) is not None


def quoted_value(text: str, opening: re.Match[str]) -> Extent:
    """Return the value after an opening quote, up to the same quote or else the end of the line."""
    quote, start = opening["quote"], opening.end()
    closing = closing_quote(text, quote, start)
    if closing is None:
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        return Extent(start, _without_line_tail(text, start, end), True, end)
    return Extent(start, closing[0], True, closing[1])


def closing_quote(text: str, quote: str, start: int) -> tuple[int, int] | None:
    """Return begin and end of the quote that closes `quote`, or None if its line ends before."""
    limit = start + QUOTED_LENGTH_MAX
    mark = quote.lstrip("\\")
    depth = len(quote) - len(mark)
    if len(mark) == 1:
        end_of_line = line_end(text, start)
        at = text.find(mark, start, min(limit, end_of_line))
        while at >= 0:
            run = _backslashes_before(text, at, start)
            if run % (2 * (depth + 1)) == depth:
                return at - depth, at + 1
            if depth and run < depth:  # an outer quote: the inner string was cut off
                return at - run, at
            at = text.find(mark, at + 1, min(limit, end_of_line))
        return None
    at = text.find(quote, start, limit if mark in ('"""', "'''") else min(limit, line_end(text, start)))
    return None if at < 0 else (at, at + len(quote))


def bare_value(text: str, position: int, *, greedy: bool) -> Extent | None:
    """Return the unquoted value at `position`, or None if there is none."""
    end = position
    if _TEMPLATE.match(text, position):
        return None
    while True:
        found = _BARE.match(text, end)
        if found is not None:
            end = found.end()
        mark = text.find(MARK_OPENING, position, end + len(MARK_OPENING))
        if mark >= 0:
            end = mark
            break
        more = _MORE.match(text, end) if greedy and end > position else None
        if more is None or _NEXT_NAME.match(text, end):
            break
        end = more.end() - 1
    while end - 1 > position and text[end - 1] in _SENTENCE_END:
        end -= 1
    while end > position and text[end - 1] in "([{":
        end -= 1
    return Extent(position, end, False, end) if end > position else None


def _backslashes_before(text: str, at: int, start: int) -> int:
    run = 0
    while at - run > start and text[at - run - 1] == "\\":
        run += 1
    return run


def line_end(text: str, position: int) -> int:
    """Return where the line of `position` ends, or where looking for its end stops."""
    limit = min(len(text), position + QUOTED_LENGTH_MAX)
    end = text.find("\n", position, limit)
    return limit if end < 0 else end


def _without_line_tail(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1] in "\r ":
        end -= 1
    return end


def block_scalar(text: str, position: int, indent: int) -> Extent | None:
    """Return the lines after `position` that are indented deeper than `indent`: a YAML block scalar."""
    end = start = -1
    line = position
    while line < len(text):
        end_of_line = line_end(text, line)
        content = text[line:end_of_line]
        stripped = content.lstrip(" \t")
        if stripped:
            if len(content) - len(stripped) <= indent:
                break
            start = line + len(content) - len(stripped) if start < 0 else start
            end = end_of_line
        line = end_of_line + 1
    return Extent(start, end, True, end) if start >= 0 else None
