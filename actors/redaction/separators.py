"""What ties a value to the name before it.

The same name is a secret's in `password: hunter2` and a topic in `password must be long`: the separator makes
the difference. It is matched right after the name, tells how sure the tie is (`Link`), and where the value
begins. A space alone ties only where a grammar says so (flags, .netrc, SQL, `set`), or to a value that could
hardly be a word.
"""

import re
from dataclasses import dataclass

from temporality.actors.redaction.extents import QUOTE, opens_quote, value_at
from temporality.actors.redaction.values import Link

_EQUALS = r"(?:[?+|]{0,2}={1,2}(?!=)>?|:=|=>|%(?:25){0,3}3[Dd]|\\{1,4}u003[dD])"
_COLON = r"(?:\*{0,2}:(?![:/]{1,2}[^\s])\*{0,2}|%(?:25){0,3}3[Aa]|→|->)"
_TYPE = r"[A-Za-z_&*?][A-Za-z_.\[\]|,?<> ]{0,40}?"
_SEPARATOR = re.compile(
    rf"""(?x)
    (?P<close>{QUOTE}?[\])]{{0,2}})
    (?:
      [ \t]{{0,20}}(?:{_EQUALS})(?P<equals>\s{{0,80}})
    | [ \t]{{0,20}}(?P<annotated>:[ \t]?{_TYPE}[ ]?=(?![=>])[ \t]{{0,8}}(?={QUOTE}))
    | \s{{0,20}}(?:{_COLON})(?P<colon>\s{{0,200}})
    | (?P<member>,?\s{{0,40}}(?:-\s)?{QUOTE}?[vV]alue{QUOTE}?\s?[:=]\s{{0,8}})
    | [ ]{{0,4}}(?P<pair>,\s{{0,20}}(?:\w{{1,3}})?(?={QUOTE}))
    | (?P<entity>&gt;)
    | (?P<call>\((?={QUOTE}))
    | (?P<bracket>[ ]?\((?=\w))
    | (?P<cell>[ ]{{0,40}}[|│][ ]{{1,4}})
    | (?P<prose>[ ]{{1,2}}(?:—|–|-|is|was|are|это|равен|как)[ ]{{1,2}}(?:now[ ]|set[ ]to[ ]|:[ ])?)
    | (?P<space>[ \t]{{1,8}}|[ \t]{{0,4}}\\?\n[ \t]{{1,8}}(?=\S))
    )"""
)
_ELEMENT = re.compile(
    r"(?P<close>)(?:(?:\s[^<>\n]{0,100})?>(?:</[\w:]{1,20}>)?|</[\w:]{1,20}>)"
    r"\s{0,40}(?:<!\[CDATA\[|<(?:string|td|dd|value)>)?"
)
_ELEMENT_BEFORE = re.compile(r"<(?:[\w\-]{1,30}:)?\Z|<(?:key|td|dt|th|name)>\Z")
_DOCSTRING = ('"""', "'''", 'r"""')
_COMPARISON = re.compile(r"[ ]==[ ]|===")
_ELEMENT_END = re.compile(r"[^<\n]{0,200}(?:<|\]\]>)")
_PAIR_END = re.compile(r",?\s{0,8}[)\]]")
_SETTERS = ("set", "with", "put", "use", "define", "add")
_FLAG_BEFORE = " \t\n\"'`[(,="
_SPACED_BEFORE = re.compile(r"(?:(?:machine|login|account)\s{1,8}+\S{1,80}+|default)\s{1,8}+\Z")
_SQL_BEFORE = re.compile(
    r"(?:with|encrypted|set|user|role|login|#define)\s[^\n;]{0,120}\Z",
    re.IGNORECASE,
)
_SET_COMMAND = re.compile(
    r"(?:^|[\n;&|])\s{0,8}(?:[$>#]\s)?"
    r"(?:setx|setenv|set -[gUx]{1,3}|export|config set|[\w\-]{1,20}+(?: [\w\-]{1,20}+){0,2} set)"
    r"\s[^\n]{0,60}\Z"
    r"|#define\s\Z"
)


@dataclass(frozen=True, slots=True)
class Tie:
    """How a value is tied to its name: `position` is its begin, `closed` says that the name was quoted."""

    link: Link
    position: int
    closed: bool = False
    colon: bool = False
    next_line: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a text that may announce a secret, with the number of dashes before it."""

    start: int
    end: int
    dashes: int


def tie_after(text: str, name: Name, end: int) -> Tie | None:
    """Return what ties a value to `name`, whose qualifiers end at `end`; None if nothing does."""
    if _ELEMENT_BEFORE.search(text, max(0, name.start - 32), name.start):
        element = _ELEMENT.match(text, end)
        return None if element is None else _tie_in_element(text, element)
    separator = _SEPARATOR.match(text, end)
    if separator is None:
        return None
    position, closed, kind = separator.end(), bool(separator["close"]), separator.lastgroup
    before = text[name.start - 1] if name.start else ""
    if kind == "equals" or kind == "annotated":
        return _tie_by_equals(text, end, separator)
    if kind == "colon":
        return _tie_by_colon(text, name, before, separator)
    if kind == "member":
        return Tie(Link.ASSIGNED, position, closed=True)
    if kind == "pair":
        return _tie_in_pair(text, name, separator)
    if kind == "entity":
        opened = text[max(0, name.start - 4) : name.start] == "&lt;"
        return Tie(Link.ASSIGNED, position, closed=True) if opened else None
    if kind == "call":
        setter = before == "." or _first_word(text, name) in _SETTERS
        return Tie(Link.ASSIGNED, position) if setter else None
    if kind in ("cell", "prose"):
        return Tie(Link.PROSE, position, closed)
    if kind == "bracket":
        return None if closed else Tie(Link.SPACE, position)
    return _tie_by_space(text, name, separator)


def _tie_in_pair(text: str, name: Name, separator: re.Match[str]) -> Tie | None:
    """A comma ties the two members of a pair, `("token", "…")`, but not those of a longer list."""
    quote = separator["close"]
    opened = name.start - len(quote)
    if not quote or ")" in quote or "]" in quote or text[opened - 1 : opened] not in ("(", "["):
        return None
    value = value_at(text, separator.end())
    if value is None or not _PAIR_END.match(text, value.after):
        return None
    return Tie(Link.PROSE, separator.end(), closed=True)


def _tie_in_element(text: str, element: re.Match[str]) -> Tie | None:
    """An element ties its content, if the content ends in a tag (or is cut off): `<token>` alone does not."""
    value = value_at(text, element.end())
    if value is None or "\n" in element[0].rpartition(">")[2]:
        return None
    if value.after < len(text) and not _ELEMENT_END.match(text, value.after):
        return None
    return Tie(Link.ASSIGNED, element.end(), closed=True)


def _first_word(text: str, name: Name) -> str:
    last = text[name.start : name.end].rpartition(".")[2].lower()
    return next((setter for setter in _SETTERS if last.startswith(setter)), "")


def _tie_by_equals(text: str, end: int, separator: re.Match[str]) -> Tie | None:
    position, closed = separator.end(), bool(separator["close"])
    if ")" in separator["close"]:
        return None  # code: "len(password) == 0"
    if _COMPARISON.search(separator[0]):
        return Tie(Link.SPACE, position, closed)
    if "\n" in (separator["equals"] or "") and not opens_quote(text, position):
        return None
    between = text[end + len(separator["close"]) : position]
    spaced = between != between.strip() and separator["close"] in ("", "]")
    return Tie(Link.SPACED if spaced else Link.ASSIGNED, position, closed)


def _tie_by_colon(text: str, name: Name, before: str, separator: re.Match[str]) -> Tie | None:
    position, closed = separator.end(), bool(separator["close"])
    quoted = opens_quote(text, position)
    if before == "/" and not closed and text[name.start - 2 : name.start - 1] != ":":
        return None  # a path and its error: "/run/secrets/token: Permission denied"
    if ")" in separator["close"] or ("\n" in separator["colon"] and text.startswith(_DOCSTRING, position)):
        return None  # code: "class Word(Token):" and its docstring
    if "\n" in separator["colon"] and not quoted:
        return Tie(Link.PROSE, position, closed, colon=True, next_line=True)
    return Tie(Link.ASSIGNED if closed and quoted else Link.COLON, position, closed, colon=True)


def _tie_by_space(text: str, name: Name, separator: re.Match[str]) -> Tie | None:
    """A space ties a value to a flag (`--token x`), a .netrc word, SQL, `set` commands, or by its shape."""
    position = separator.end()
    if separator["close"]:
        return None
    quoted = opens_quote(text, position)
    first_dash = name.start - name.dashes
    if name.dashes and (first_dash == 0 or text[first_dash - 1] in _FLAG_BEFORE):
        if text[position : position + 1] in ("-", "|", "&", ";", ">"):
            return None
        return Tie(Link.ASSIGNED if name.dashes > 1 or quoted else Link.PROSE, position)
    window = max(0, name.start - 220)
    if text[name.start : name.end] in ("password", "passwd") and _SPACED_BEFORE.search(
        text, window, name.start
    ):
        return Tie(Link.ASSIGNED, position)
    if "\n" in separator[0]:
        return None
    if "\t" in separator[0]:
        return Tie(Link.PROSE, position)  # the next cell of a table
    if quoted and _SQL_BEFORE.search(text, window, name.start):
        return Tie(Link.ASSIGNED, position)
    if _SET_COMMAND.search(text, max(0, name.start - 110), name.start):
        return Tie(Link.PROSE, position)
    return Tie(Link.SPACE, position)
