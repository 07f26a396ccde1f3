"""Foreign text made harmless for the one line it may take (A37).

Item text is data. To stay data it must not be able to end its line, close the fence around the block, or look
like the header of another speaker; and a reader must see all that a model sees, so characters that have no
width or turn the reading direction are taken out. The words themselves are not judged: an item that says
"do this" stays readable as an item that says so.

A header is looked for at the start of each line and then of the one line that remains; all other marks on
that one only, since joining lines may make a mark of two halves.
"""

import re
import unicodedata

HEADER_MARKS_MAX = 64
"""Marks before a role in which it still reads as a header; bounds the search, whatever a line begins with."""

_LINE_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_SPACES = re.compile(r"\s+")

_ROLES = (
    "system|developer|user|human|assistant|ai|model|tool|function|instruction|response"
    "|система|системн[а-яё]+|разработчик|пользователь|человек|ассистент|помощник|ии|модель|инструмент|функция"
)
_ROLE_HEADER = re.compile(
    rf"^(?P<before>[\W\d_]{{0,{HEADER_MARKS_MAX}}}(?:{_ROLES})(?:\s+(?:message|prompt|сообщение|промпт))?[*_\s\"'`~)\]]*)[:：]",
    re.IGNORECASE,
)
_TAG_OPENING = re.compile(r"[<＜](?=\s?[/|｜<＜!?]|\s?[^\W\d_])")
_BRACKET_TOKEN = re.compile(
    r"\[(?=\s?/?\s?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\b)",
    re.IGNORECASE,
)
_CODE_FENCE = re.compile(r"`{3,}|~{3,}")

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]+"
)
"""Letters and marks that show nothing: fillers, joiners, and the selectors in which bytes can be hidden."""


def visible(text: str) -> str:
    """Return `text` without what can't be seen: controls, formats, fillers, selectors, unassigned code."""
    if text.isascii() and text.isprintable():
        return text
    shown = _BLANK.sub("", text)
    return "".join(char for char in shown if char in " \n\t" or unicodedata.category(char) not in _INVISIBLE)


def one_line(text: str) -> str:
    """Return `text` as one line of data: no breaks, no fence marks, no role headers, nothing invisible.

    Idempotent; linear in the length of the text.
    """
    lines = (_no_header(_spaced(visible(line))) for line in _LINE_BREAKS.split(text))
    line = _no_header(" ".join(line for line in lines if line))
    line = _TAG_OPENING.sub("‹", line)
    line = _BRACKET_TOKEN.sub("(", line)
    return _CODE_FENCE.sub(lambda fence: "'" * len(fence.group()), line)


def _spaced(line: str) -> str:
    return _SPACES.sub(" ", line).strip()


def _no_header(line: str) -> str:
    return _ROLE_HEADER.sub(r"\g<before>∶", line)
