"""Values that are secret because of the name before them.

Every keyword in the text is found by substring search and widened to the name it is part of. Only if a
separator follows the name does anything else happen: what the name means (`names`), what ties a value to it
(`separators`), where the value ends (`extents`), whether it is one (`values`). So ordinary text costs a few
substring searches, and each keyword a bounded amount of work: a value is either taken, and then not scanned
again, or short.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from temporality.actors.redaction.extents import QUOTE, Extent, block_scalar, opens_quote, value_at
from temporality.actors.redaction.finding import MARK_OPENING, Finding, Source, mark_at, positions
from temporality.actors.redaction.names import (
    KEYWORDS,
    NAME_LENGTH_MAX,
    Meaning,
    Strength,
    meaning_of,
    words_of,
)
from temporality.actors.redaction.separators import Name, Tie, tie_after
from temporality.actors.redaction.shapes import JUDGED_LENGTH_MAX, is_call
from temporality.actors.redaction.values import Context, Link, is_secret, speaks

LISTED_MAX = 64
"""Most values of one list that are looked at for one name."""

_NAME_REST = re.compile(rf"[\w.\-]{{1,{NAME_LENGTH_MAX}}}")
_QUALIFIER = re.compile(
    r"(?: (?:value|phrase|string|here|provided|given|supplied|used|received"
    r"|доступа|API|api|АПИ|апи|пользователя|администратора|бота)\b)?"
    r"(?: (?:for|of|to|on|от|для|к|на|у)(?: [\w.@/\-]{1,32}+){1,3}?)?(?= ?[:=—–]| - | is | was | это )"
)
_QUALIFYING = frozenset({"доступа", "api", "phrase", "апи"})
_WORD_BEFORE = re.compile(r"([A-Za-zА-Яа-яЁё]{2,16})[ \-]\Z")
_TIES = frozenset(" \t\n\r=:\"'`\\%&,)]>(|│?+*<→-—–")
"""What can follow a name that is tied to a value; all other names are dismissed at once."""
_COMPLETED = frozenset({"key", "keys", "id", "phrase", "code", "ключ", "ключа", "ключи", "token", "secret"})
"""Words that mean more together with the word before them: `api key`, `session id`, `секретный ключ`."""
_BLOCK = re.compile(r"[|>][+\-0-9]{0,3}[ \t]{0,8}(?:#[^\n]{0,80})?\r?\n")
_LISTED = re.compile(rf"\s{{0,40}},?\s{{0,40}}(?={QUOTE})")
_DASH_ITEM = re.compile(r"[ \t]{0,40}\r?\n?[ \t]{0,40}- (?=\S)")
_WRAPPER = re.compile(
    r"(?:new\s)?(?:[A-Za-z_]{1,20}+(?:\.|::)){0,3}"
    r"(?:SecretStr|SecretBytes|Secret|SecureString|Password|Token|ApiKey|String|str|bytes|quote|from|new|Some)"
    rf"\(\s{{0,8}}(?={QUOTE})"
)
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")


def find_assigned(source: Source) -> Iterator[Finding]:
    """Yield the values of names that say that a secret follows."""
    text, done = source.text, 0
    meanings: dict[tuple[str, bool], Meaning | None] = {}
    for at in sorted({at for keyword in KEYWORDS for at in positions(source.lower, keyword)}):
        if at < done:
            continue
        name = _name_around(text, at, done)
        done = name.end
        if text[done : done + 1] not in _TIES or _inside_mark(text, name):
            continue
        for finding, after in _values_of(text, name, meanings):
            yield finding
            done = max(done, after)


def _name_around(text: str, at: int, floor: int) -> Name:
    start, lowest = at, max(floor, at - NAME_LENGTH_MAX)
    while start > lowest and (text[start - 1].isalnum() or text[start - 1] in "_-."):
        start -= 1
    rest = _NAME_REST.match(text, at)
    end = rest.end() if rest is not None else at
    while end > at and text[end - 1] in "-.":
        end -= 1
    dashes = 0
    while start < at and text[start] in "-.":
        dashes += text[start] == "-"
        start += 1
    return Name(start, end, dashes)


def _inside_mark(text: str, name: Name) -> bool:
    opening = text.rfind(MARK_OPENING, max(0, name.start - len(MARK_OPENING)), name.end)
    return opening >= 0 and mark_at(text, opening)


def _values_of(
    text: str, name: Name, meanings: dict[tuple[str, bool], Meaning | None]
) -> Iterator[tuple[Finding, int]]:
    """Yield each secret that `name` announces, and where the scan goes on."""
    written, end = _with_neighbours(text, name)
    url_query = name.start > 0 and text[name.start - 1] in "?&#;"
    known = (written, url_query)
    if known not in meanings:
        meanings[known] = meaning_of(words_of(written), url_query=url_query)
    meaning = meanings[known]
    tie = tie_after(text, name, end) if meaning is not None else None
    if meaning is None or tie is None or mark_at(text, tie.position):
        return
    context = Context(
        meaning,
        tie.link,
        quoted=False,
        upper=text[name.start : name.end].isupper(),
        query=url_query,
        name=written.lower(),
        unpacked=text[max(0, name.start - 2) : name.start] == ", ",
    )
    for extent, seen in _extents(text, name, tie, context):
        if is_secret(text[extent.start : extent.end], seen):
            yield Finding(meaning.kind, extent.start, extent.end), extent.after


def _with_neighbours(text: str, name: Name) -> tuple[str, int]:
    """Return `name` with the words that complete it (`api key`, `ключ доступа`), and where they end."""
    written = text[name.start : name.end]
    if written.lower() in _COMPLETED and (
        earlier := _WORD_BEFORE.search(text, max(0, name.start - 18), name.start)
    ):
        written = f"{earlier[1]} {written}"
    if text[name.end : name.end + 1] != " ":
        return written, name.end
    qualifier = _QUALIFIER.match(text, name.end)
    if qualifier is None:
        return written, name.end
    qualifying = [word for word in words_of(qualifier[0]) if word in _QUALIFYING]
    return " ".join([written, *qualifying]), qualifier.end()


def _extents(text: str, name: Name, tie: Tie, context: Context) -> Iterator[tuple[Extent, Context]]:
    """Yield the value or values tied to `name`, each with what is known about it."""
    position = tie.position
    wrapper = _WRAPPER.match(text, position, position + 80)
    position = wrapper.end() if wrapper is not None else position
    block = _BLOCK.match(text, position) if tie.colon else None
    if block is not None:
        extent = block_scalar(text, block.end(), _indent(text, name.start))
        if extent is not None:
            yield extent, replace(context, link=Link.ASSIGNED, quoted=True)
        return
    if tie.next_line and text.startswith("- ", position):
        yield from _dash_items(text, position, context)
        return
    if text[position : position + 1] in ("[", "("):
        if opens_quote(text, position + 1) or text[position] == "(":
            yield from _listed(text, position + 1, context)
            return
        position += 1
    if is_call(text, position) and not opens_quote(text, position):
        return
    if not tie.closed and _closes_a_string(text, name.start, position):
        return
    yield from _single(text, position, tie, context)


def _single(text: str, position: int, tie: Tie, context: Context) -> Iterator[tuple[Extent, Context]]:
    greedy = context.meaning.strength is Strength.PASSWORD and tie.link not in (Link.PROSE, Link.SPACE)
    extent = value_at(text, position, greedy=greedy)
    if extent is None:
        return
    if extent.quoted:
        yield extent, replace(context, quoted=True)
        return
    line_end = text.find("\n", extent.after, extent.after + JUDGED_LENGTH_MAX)
    following = text[extent.after : line_end if line_end >= 0 else extent.after + 80]
    if tie.next_line and following.strip():
        return
    phrase = _phrase(text, extent, context, following)
    if phrase is not None:
        yield phrase, replace(context, quoted=True)
    else:
        yield extent, replace(context, following=following)


def _closes_a_string(text: str, name_start: int, position: int) -> bool:
    """Say whether the quote at `position` ends a string that began before the name: `input('Password: ')`."""
    quote = text[position : position + 1]
    if quote not in ("'", '"', "`") or text[position + 1 : position + 2].isalnum():
        return False
    line = max(text.rfind("\n", 0, name_start) + 1, name_start - 200)
    before = text[line:name_start]
    if quote == "'":
        before = _APOSTROPHE.sub("", before)
    return before.count(quote) % 2 == 1


def _phrase(text: str, extent: Extent, context: Context, following: str) -> Extent | None:
    """Widen a bare value to the rest of its line if it consists of words and could be a pass phrase."""
    tied = context.link in (Link.COLON, Link.SPACED, Link.ASSIGNED)
    if not tied or context.meaning.pass_alone or context.meaning.kind != "password" or following[:1] != " ":
        return None
    words = (text[extent.start : extent.end] + following).split()
    if not 3 <= len(words) <= 26:
        return None
    plain = all(word.isalpha() and word.islower() for word in words)
    if not plain and not (context.meaning.phrase and all(word.isalnum() for word in words)):
        return None
    if any(char.isdigit() for char in words[0]) and speaks(words[1:]):
        return None
    end = extent.end + len(following.rstrip())
    return Extent(extent.start, end, True, end)


def _listed(text: str, position: int, context: Context) -> Iterator[tuple[Extent, Context]]:
    """Yield the quoted values of a list or of a call's arguments."""
    for _ in range(LISTED_MAX):
        gap = _LISTED.match(text, position)
        extent = value_at(text, gap.end()) if gap is not None else None
        if extent is None:
            return
        yield extent, replace(context, quoted=True)
        position = extent.after


def _dash_items(text: str, position: int, context: Context) -> Iterator[tuple[Extent, Context]]:
    """Yield the items of a YAML list."""
    item = _DASH_ITEM.match(text, position)
    for _ in range(LISTED_MAX):
        if item is None:
            return
        extent = value_at(text, item.end())
        if extent is None:
            return
        yield extent, replace(context, quoted=extent.quoted)
        item = _DASH_ITEM.match(text, extent.after)


def _indent(text: str, position: int) -> int:
    line = text.rfind("\n", 0, position) + 1
    content = text[line:position]
    return len(content) - len(content.lstrip(" "))
