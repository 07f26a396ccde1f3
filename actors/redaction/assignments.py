"""Values that are secret because of the name before them.

Every keyword in the text is found by substring search and widened to the name it is part of. Only if a
separator follows the name does anything else happen: what the name means (`names`), where the value ends
(`extents`), whether it is one (`values`). So ordinary text costs a few substring searches, and each keyword a
bounded amount of work: a value is either taken, and then not scanned again, or short.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from temporality.actors.redaction.extents import QUOTE, Extent, block_scalar, opens_quote, value_at
from temporality.actors.redaction.finding import Finding, Source, mark_at, positions
from temporality.actors.redaction.names import (
    KEYWORDS,
    NAME_LENGTH_MAX,
    Meaning,
    Strength,
    meaning_of,
    words_of,
)
from temporality.actors.redaction.values import JUDGED_LENGTH_MAX, Context, Link, is_call, is_secret

_EQUALS = r"(?:[?+|]{0,2}={1,2}(?!=)>?|:=|=>|%(?:25){0,3}3[Dd]|\\{1,4}u003[dD])"
_COLON = r"(?::(?![:/]{1,2}[^\s])|%(?:25){0,3}3[Aa]|→|->)"
_SEPARATOR = re.compile(
    rf"""(?x)
    (?P<close>{QUOTE}?[\])]{{0,2}})
    (?:
      [ \t]{{0,20}}(?P<equals>{_EQUALS})(?P<gap>\s{{0,80}})
    | [ \t]{{0,20}}(?P<annotated>:[ \t]?[A-Za-z_&*?][A-Za-z_.\[\]|,?<> ]{{0,40}}?[ ]?=)(?![=>])(?P<gap2>[ \t]{{0,8}})(?={QUOTE})
    | \s{{0,20}}(?P<colon>{_COLON})(?P<gap3>\s{{0,200}})
    | [ ]{{0,4}}(?P<pair>,\s{{0,20}}(?:\w{{1,3}})?(?={QUOTE}))
    | (?P<member>{QUOTE}?,?\s{{0,40}}(?:-\s)?{QUOTE}?[vV]alue{QUOTE}?\s?[:=]\s{{0,8}})
    | (?P<entity>&gt;)
    | (?P<call>\((?={QUOTE}))
    | (?P<cell>[ ]{{0,40}}[|│][ ]{{1,4}})
    | (?P<prose>[ ]{{1,2}}(?:—|–|-|is|was|are|это|равен|как)[ ]{{1,2}}(?:now[ ]|set[ ]to[ ]|:[ ])?)
    | (?P<space>[ \t]{{1,8}}|[ \t]*\\?\n[ \t]{{1,8}}(?=\S))
    )"""
)
_ELEMENT = re.compile(
    r"(?P<close>)(?:\s[^<>\n]{0,100})?>(?:</[\w:]{1,20}>)?\s{0,40}(?:<!\[CDATA\[|<(?:string|td|dd|value)>)?"
)
_ELEMENT_BEFORE = re.compile(r"<(?:[\w\-]{1,30}:)?\Z|<(?:key|td|dt|th|name)>\Z")
_QUALIFIER = re.compile(
    r"(?: (?:value|phrase|string|here|доступа|API|api|АПИ|апи|пользователя|администратора|бота)\b)?"
    r"(?: (?:for|of|to|on|от|для|к|на|у)(?: [\w.@/\-]{1,32}){1,3}?)?(?= ?[:=—–]| - | is | was | это )"
)
_WORD_BEFORE = re.compile(r"([A-Za-zА-Яа-яЁё]{2,16})[ \-]\Z")
_FIRST_LINE = re.compile(r"(?P<scalar>[|>][+\-0-9]{0,3}[ \t]*(?:#[^\n]{0,80})?\r?\n)")
_SETTERS = ("set", "with", "put", "use", "define", "add")
_LISTED = re.compile(rf"\s{{0,40}},?\s{{0,40}}(?={QUOTE})")
_WRAPPER = re.compile(
    rf"(?:new\s)?(?:[A-Za-z_]{{1,20}}(?:\.|::)){{0,3}}"
    rf"(?:SecretStr|SecretBytes|Secret|SecureString|Password|Token|ApiKey|String|str|bytes|quote|from|new|Buffer|Some)"
    rf"\(\s{{0,8}}(?={QUOTE})"
)
_SPACED_BEFORE = re.compile(r"(?:machine|login|account|default)\s[^\n]{0,200}\Z")
_SQL_BEFORE = re.compile(
    r"(?:with|identified|by|encrypted|set|user|role|login|#define)\s[^\n;]{0,120}\Z", re.IGNORECASE
)
_SET_COMMAND = re.compile(
    r"(?:^|[\n;&|])\s{0,8}(?:[$>#]\s)?(?:setx|setenv|fish_set|set -[gUx]{1,3}|export|config set|[\w\- ]{1,40}\bset)\s[^\n]{0,60}\Z|#define\s\Z"
)
_MODULE_NAME_LEFT = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")


@dataclass(frozen=True, slots=True)
class _Name:
    start: int
    end: int
    dashes: int
    words: list[str]


def find_assigned(source: Source) -> Iterator[Finding]:
    """Yield the values of names that say that a secret follows."""
    text, done = source.text, 0
    starts = sorted({at for keyword in KEYWORDS for at in positions(source.lower, keyword)})
    for at in starts:
        if at < done:
            continue
        name = _name_around(text, at, done)
        done = name.end
        if _inside_mark(text, name):
            continue
        for finding, after in _values_of(text, name):
            yield finding
            done = max(done, after)


def _is_name(char: str) -> bool:
    return char.isalnum() or char in "_-."


def _name_around(text: str, at: int, floor: int) -> _Name:
    start = at
    lowest = max(floor, at - NAME_LENGTH_MAX)
    while start > lowest and _is_name(text[start - 1]):
        start -= 1
    end = at
    highest = min(len(text), at + NAME_LENGTH_MAX)
    while end < highest and _is_name(text[end]):
        end += 1
    while end > at and text[end - 1] in "-.":
        end -= 1
    dashes = 0
    while start < at and text[start] in "-.":
        dashes += text[start] == "-"
        start += 1
    return _Name(start, end, dashes, words_of(text[start:end]))


def _inside_mark(text: str, name: _Name) -> bool:
    opening = text.rfind("[redacted:", max(0, name.start - 10), name.end)
    return opening >= 0 and mark_at(text, opening)


def _values_of(text: str, name: _Name) -> Iterator[tuple[Finding, int]]:
    """Yield each secret that `name` announces, and where the scan goes on."""
    before = text[name.start - 1] if name.start else ""
    url_query = before != "" and before in "?&#;"
    words = name.words
    if len(words) <= 2 and (earlier := _WORD_BEFORE.search(text, max(0, name.start - 18), name.start)):
        words = words_of(earlier[1]) + words if words[0] in _COMPLETED else words
    qualifier = _QUALIFIER.match(text, name.end)
    end = qualifier.end() if qualifier is not None else name.end
    if qualifier is not None and qualifier[0]:
        words = words + [
            word for word in words_of(qualifier[0]) if word in ("доступа", "api", "phrase", "апи")
        ]
    element = _ELEMENT_BEFORE.search(text, max(0, name.start - 32), name.start) is not None
    separator = (_ELEMENT if element else _SEPARATOR).match(text, end)
    if separator is None:
        return
    meaning = meaning_of(words, url_query=url_query)
    if meaning is None:
        return
    link = Link.ASSIGNED if element else _link(text, name, separator, meaning, before)
    if link is None:
        return
    upper = text[name.start : name.end].isupper()
    position = separator.end()
    for extent, context in _extents(
        text, name, position, separator, Context(meaning, link, False, upper, url_query)
    ):
        if is_secret(text[extent.start : extent.end], context):
            yield Finding(meaning.kind, extent.start, extent.end), extent.after
        else:
            return


_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
_COMPLETED = frozenset({"key", "keys", "id", "phrase", "code", "ключ", "ключа", "ключи", "token", "secret"})


def _link(text: str, name: _Name, separator: re.Match[str], meaning: Meaning, before: str) -> Link | None:
    """Say how the separator ties the value to the name; None if it doesn't."""
    kind = separator.lastgroup
    closed = bool(separator["close"])
    if separator["equals"] or separator["annotated"]:
        gap = separator["gap"] or ""
        if "\n" in gap and not opens_quote(text, separator.end()):
            return None
        spaced = text[name.end : separator.end()].strip() != text[name.end : separator.end()]
        spaced = spaced or separator[0].replace(separator["close"], "", 1)[:1] in " \t"
        return Link.SPACED if spaced and not closed else Link.ASSIGNED
    if separator["colon"]:
        gap = separator["gap3"]
        if "\n" in gap and not opens_quote(text, separator.end()):
            return None
        if before == "/" and not closed and not text[name.start - 2 : name.start - 1] == ":":
            return None
        return Link.ASSIGNED if closed and opens_quote(text, separator.end()) else Link.COLON
    if kind == "pair":
        return Link.PROSE if closed else None
    if kind == "member":
        return Link.ASSIGNED
    if kind == "entity":
        return Link.ASSIGNED if text[max(0, name.start - 4) : name.start] == "&lt;" else None
    if kind == "call":
        setter = name.words[:1] and name.words[0] in _SETTERS or before == "."
        return Link.ASSIGNED if setter or text[max(0, name.start - 1) : name.start] == "." else None
    if kind == "cell":
        return Link.PROSE
    if kind == "prose":
        return Link.PROSE
    return _link_by_space(text, name, separator, meaning)


def _link_by_space(text: str, name: _Name, separator: re.Match[str], meaning: Meaning) -> Link | None:
    """A space ties a value to a flag (`--token x`), a .netrc word, an SQL clause or a `set` command only."""
    if separator["close"]:
        return None
    if name.dashes and (
        name.start < 2 or text[name.start - name.dashes - 1 : name.start - name.dashes] in " \t\n\"'`[(,="
    ):
        if text[separator.end() : separator.end() + 1] in "-|&;>":
            return None
        return Link.ASSIGNED if name.dashes > 1 or opens_quote(text, separator.end()) else Link.PROSE
    window = max(0, name.start - 220)
    if meaning.strength is Strength.PASSWORD and _SPACED_BEFORE.search(text, window, name.start):
        return Link.ASSIGNED
    if opens_quote(text, separator.end()) and _SQL_BEFORE.search(text, window, name.start):
        return Link.ASSIGNED
    if _SET_COMMAND.search(text, max(0, name.start - 110), name.start):
        return Link.PROSE
    return None


def _extents(
    text: str, name: _Name, position: int, separator: re.Match[str], context: Context
) -> Iterator[tuple[Extent, Context]]:
    """Yield the value or values that begin at `position`, each with what is known about it."""
    if mark_at(text, position):
        return
    link = context.link
    greedy = context.meaning.strength is Strength.PASSWORD and link is not Link.PROSE
    wrapper = _WRAPPER.match(text, position, position + 80)
    if wrapper is not None:
        position = wrapper.end()
    scalar = _FIRST_LINE.match(text, position) if separator.lastgroup == "gap3" else None
    if scalar is not None:
        extent = block_scalar(text, scalar.end(), _indent(text, name.start))
        if extent is not None:
            yield extent, Context(context.meaning, Link.ASSIGNED, True)
        return
    if text[position : position + 1] in ("[", "("):
        yield from _listed(text, position + 1, context)
        if opens_quote(text, position + 1) or text[position] == "(":
            return
        position += 1
    if is_call(text, position) and not opens_quote(text, position):
        return
    if link is not Link.ASSIGNED and _closes_a_string(text, name.start, position):
        return
    extent = value_at(text, position, greedy=greedy)
    if extent is None:
        return
    line_end = text.find("\n", extent.end, extent.end + JUDGED_LENGTH_MAX)
    following = text[extent.after : line_end if line_end >= 0 else extent.after + 80]
    if extent.quoted:
        yield extent, Context(context.meaning, link, True, context.upper, context.query)
        return
    whole = _phrase(text, extent, context, following)
    yield (
        whole or extent,
        Context(context.meaning, link, whole is not None, context.upper, context.query, following),
    )


def _closes_a_string(text: str, name_start: int, position: int) -> bool:
    """Say whether the quote at `position` ends a string that began before the name: `input('Password: ')`."""
    quote = text[position : position + 1]
    if quote not in ("'", '"', "`"):
        return False
    line = max(text.rfind("\n", 0, name_start) + 1, name_start - 200)
    before = text[line:name_start]
    if quote == "'":
        before = _APOSTROPHE.sub("", before)
    return before.count(quote) % 2 == 1


def _phrase(text: str, extent: Extent, context: Context, following: str) -> Extent | None:
    """Widen a bare value to the rest of its line if the name asks for several words."""
    if context.link is Link.PROSE or context.meaning.kind != "password" or not following[:1] == " ":
        return None
    words = (text[extent.start : extent.end] + following).split()
    if not 3 <= len(words) <= 26 or not all(word.isalpha() and word.islower() for word in words):
        return None
    return Extent(
        extent.start, extent.end + len(following.rstrip()), True, extent.end + len(following.rstrip())
    )


def _listed(text: str, position: int, context: Context) -> Iterator[tuple[Extent, Context]]:
    for _ in range(64):
        gap = _LISTED.match(text, position)
        if gap is None:
            return
        extent = value_at(text, gap.end())
        if extent is None:
            return
        yield extent, Context(context.meaning, context.link, True)
        position = extent.after


def _indent(text: str, position: int) -> int:
    line = text.rfind("\n", 0, position) + 1
    content = text[line:position]
    return len(content) - len(content.lstrip(" "))
