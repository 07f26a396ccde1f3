"""Foreign text made harmless for the one line it may take (A37).

Item text is data. To stay data it must not be able to end its line, close the fence around the block, or look
like the header of another speaker; and a reader must see all that a model sees, so characters that have no
width or turn the reading direction are taken out. The words themselves are not judged: an item that says
"do this" stays readable as an item that says so.
"""

import re
import unicodedata

_LINE_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_ROLE_HEADER = re.compile(
    r"^(?P<lead>[\s#>*_\-]*)(?P<role>system|user|assistant|human|developer|tool|function|model|ai)(?P<tail>[*_]*\s*):",
    re.IGNORECASE,
)
_TAG_OPENING = re.compile(r"<(?=\s*[/|<!?A-Za-z])")
_BRACKET_TOKEN = re.compile(r"\[(?=\s*/?\s*(?:INST|SYS)\b)", re.IGNORECASE)
_CODE_FENCE = re.compile(r"`{3,}|~{3,}")
_SPACES = re.compile(r"\s+")

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def visible(text: str) -> str:
    """Return `text` without control, format, surrogate, private-use and unassigned characters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char for char in text if char in " \n\t" or unicodedata.category(char) not in _INVISIBLE)


def one_line(text: str) -> str:
    """Return `text` as one line of data: no breaks, no fence marks, no role headers, nothing invisible.

    Idempotent; linear in the length of the text.
    """
    lines = (_neutral_line(visible(line)) for line in _LINE_BREAKS.split(text))
    return _SPACES.sub(" ", " ".join(line for line in lines if line)).strip()


def _neutral_line(line: str) -> str:
    line = line.strip()
    line = _ROLE_HEADER.sub(r"\g<lead>\g<role>\g<tail>∶", line)
    line = _TAG_OPENING.sub("‹", line)
    line = _BRACKET_TOKEN.sub("(", line)
    return _CODE_FENCE.sub(lambda fence: "'" * len(fence.group()), line)
