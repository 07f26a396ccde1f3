"""Credentials in HTTP headers: Authorization of every scheme, cookies, and bare `Bearer …` anywhere.

A header is met in dumps, curl commands, JSON, Python and Go representations; what differs is only where its
value ends. A header inside a quoted string ends with that string, whatever it holds in between.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from temporality.actors.redaction.extents import QUOTE, closing_quote, line_end, opens_quote, value_at
from temporality.actors.redaction.finding import Finding, Source, mark_at, positions
from temporality.actors.redaction.names import Meaning, Strength
from temporality.actors.redaction.shapes import is_call
from temporality.actors.redaction.values import Context, Link, is_secret

_AFTER_NAME = re.compile(
    rf"(?P<close>{QUOTE}?\]?)(?:\s{{0,20}}(?::|=>|=|%(?:25){{0,2}}3[AaDd])|(?<=[\"'])[ ]?,)"
    rf"(?P<gap>\s{{0,40}})"
    rf"|(?P<member>{QUOTE}\s{{0,8}},\s{{0,40}}{QUOTE}[vV]alue{QUOTE}\s{{0,8}}:\s{{0,8}})"
)
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9\-_]{1,24})(?P<gap>(?:\\? |%20|\+|\t){1,4})(?=\S)")
_PARAMETERS = (
    "digest",
    "aws4-hmac-sha256",
    "oauth",
    "hawk",
    "signature",
    "mac",
    "sharedkey",
    "sharedkeylite",
)
_PARAMETER = re.compile(r"""([A-Za-z_\-]{1,40}+)=\\{0,7}["']?([^\s"',\\]*+)""")
_OPEN_PARAMETERS = frozenset(
    "username realm nonce uri qop algorithm nc signedheaders headers version oauth_version oauth_timestamp "
    "oauth_signature_method ts".split()
)
_TOKEN = Meaning("authorization", Strength.TOKEN)
_BARE_SCHEME = re.compile(r"(?:bearer|basic)(?:[ \t]{1,4}|%20|\+)", re.IGNORECASE)
_BEARER_VALUE = re.compile(r"[A-Za-z0-9._~+/\-]{6,}+={0,3}")
_COOKIE_PAIR = re.compile(r"""([!#$%&'*+.^_`|~\w\-]{1,80}?)=("?[^\s;,"'\\]{1,}+)""")
_ATTRIBUTES = frozenset(
    "path domain expires max-age samesite secure httponly priority version comment".split()
)
_COOKIE_FLAG = re.compile(rf"(?:^|\s)(?:-b|--cookie)[ =](?P<open>{QUOTE})?")


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int


def find_headers(source: Source) -> Iterator[Finding]:
    """Yield the credentials of Authorization and cookie headers, and of bare Bearer and Basic schemes."""
    done = 0
    for at in positions(source.lower, "authorization"):
        span = _header_span(source.text, at, at + len("authorization")) if at >= done else None
        if span is not None:
            yield from _authorization(source.text, span)
            done = span.end
    done = 0
    for at in positions(source.lower, "cookie"):
        span = _cookie_span(source.text, source.lower, at) if at >= done else None
        if span is not None:
            yield from _pairs(source.text, span.start, span.end)
            done = span.end
    if "bearer" in source.lower or "basic" in source.lower:
        yield from _bare_schemes(source.text)
    if "curl" in source.lower:
        for flag in _COOKIE_FLAG.finditer(source.text):
            end = _value_end(source.text, flag.end(), flag["open"])
            yield from _pairs(source.text, flag.end(), end)


def _header_span(text: str, start: int, end: int) -> _Span | None:
    """Return the value of the header whose name stands at `start` to `end`."""
    after = _AFTER_NAME.match(text, end)
    return None if after is None else _header_value(text, start, after)


def _authorization(text: str, span: _Span) -> Iterator[Finding]:
    if mark_at(text, span.start) or is_call(text, span.start):
        return
    scheme = _SCHEME.match(text, span.start, span.end)
    if scheme is None:
        extent = value_at(text, span.start)
        if extent is None:
            return
        value = text[extent.start : min(extent.end, span.end)]
        if is_secret(value, Context(_TOKEN, Link.COLON, False)):
            yield Finding("authorization", extent.start, extent.start + len(value))
        return
    begin = scheme.end()
    if mark_at(text, begin):
        return
    if scheme["scheme"].lower() in _PARAMETERS:
        yield from _parameters(text, begin, span.end)
        return
    extent = value_at(text, begin)
    if extent is None:
        return
    stop = min(extent.end, span.end)
    known = scheme["scheme"].lower() in (
        "bearer",
        "basic",
        "token",
        "apikey",
        "api-key",
        "negotiate",
        "bot",
        "jwt",
    )
    rest = text[stop : span.end].strip(" .,;)]}>")
    link = Link.ASSIGNED if known and not rest[:1].isalpha() else Link.COLON
    if is_secret(text[extent.start : stop], Context(_TOKEN, link, False, following=rest)):
        yield Finding("authorization", extent.start, stop)


def _parameters(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield the values of a scheme's parameters, those that only describe the request apart."""
    found = False
    for pair in _PARAMETER.finditer(text, start, end):
        found = True
        if pair[1].lower() not in _OPEN_PARAMETERS and pair.end(2) > pair.start(2):
            yield Finding("authorization", *pair.span(2))
    if not found:
        yield Finding("authorization", start, end)


def _header_value(text: str, name_start: int, after: re.Match[str]) -> _Span | None:
    """Return the characters of a header's value: up to its quote, the enclosing quote, or the line's end."""
    position = after.end()
    if after["member"] is None and "\n" in after["gap"] and not opens_quote(text, position):
        return None
    while text[position : position + 1] in ("[", "("):
        position += 1
    if opens_quote(text, position):
        extent = value_at(text, position)
        return None if extent is None else _Span(extent.start, extent.end)
    if after["member"] is not None:
        extent = value_at(text, position - 1)
        return _Span(position, extent.end if extent is not None else line_end(text, position))
    start = name_start
    while start and (text[start - 1].isalnum() or text[start - 1] in "-_"):
        start -= 1
    enclosing = _enclosing_quote(text, start) if not after["close"] else ""
    return _Span(position, _value_end(text, position, enclosing))


def _enclosing_quote(text: str, start: int) -> str:
    found = re.compile(rf"(?:{QUOTE})\Z").search(text, max(0, start - 18), start)
    return found[0] if found is not None else ""


def _value_end(text: str, position: int, quote: str | None) -> int:
    if quote:
        closing = closing_quote(text, quote, position)
        if closing is not None:
            return closing[0]
    end = line_end(text, position)
    escaped = text.find("\\r\\n", position, end)
    if escaped < 0:
        escaped = text.find("\\n", position, end)
    end = escaped if escaped >= 0 else end
    while end > position and text[end - 1] in " \t\r":
        end -= 1
    return end


def _cookie_span(text: str, lower: str, at: int) -> _Span | None:
    end = at + len("cookie")
    if lower[end : end + 1] == "s":
        end += 1
    set_cookie = lower[max(0, at - 4) : at] in ("set-", "set_")
    return _header_span(text, at - 4 if set_cookie else at, end)


def _pairs(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield the values of `name=value` pairs, cookie attributes apart."""
    for pair in _COOKIE_PAIR.finditer(text, start, end):
        value_start, value_end = pair.span(2)
        if text[value_start] == '"':
            value_start += 1
        while value_end - 1 > value_start and text[value_end - 1] in ")]}>.":
            value_end -= 1
        value = text[value_start:value_end]
        if pair[1].lower() in _ATTRIBUTES or not value:
            continue
        if is_secret(value, Context(Meaning("cookie", Strength.PASSWORD), Link.ASSIGNED, True)):
            yield Finding("cookie", value_start, value_end)


def _bare_schemes(text: str) -> Iterator[Finding]:
    for scheme in _BARE_SCHEME.finditer(text):
        value = _BEARER_VALUE.match(text, scheme.end())
        if value is None:
            continue
        end = value.end()
        while end > value.start() and text[end - 1] in ".-~":
            end -= 1
        word = text[value.start() : end]
        basic = scheme[0][:2].lower() == "ba"
        random = any(char.isdigit() for char in word) or (len(word) >= 20 and word != word.lower())
        if basic:
            random = (random and len(word) >= 8) or (word.endswith("=") and len(word) >= 8)
            random = random and word[1:] != word[1:].lower()
        if random and text[end : end + 2] not in ('="', "='"):
            yield Finding("authorization", value.start(), end)
