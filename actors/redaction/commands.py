"""Credentials whose place, not whose name, gives them away: command lines and credential files.

Each row begins with a literal, so that a text without it costs one substring search, and is matched only
where the literal stands. What follows the pattern is the secret.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from temporality.actors.redaction.extents import bare_value, closing_quote, value_at
from temporality.actors.redaction.finding import Finding, Source, mark_at, positions
from temporality.actors.redaction.names import Meaning, Strength
from temporality.actors.redaction.values import Context, Link, is_secret

_PASSWORD = Meaning("password", Strength.PASSWORD)
_GIVEN = Context(_PASSWORD, Link.ASSIGNED, quoted=True)


@dataclass(frozen=True, slots=True)
class Placed:
    """A secret after `pattern`, which begins with the lower-case `literal`."""

    literal: str
    pattern: re.Pattern[str]


def _placed(literal: str, rest: str) -> Placed:
    return Placed(literal, re.compile(re.escape(literal) + rest, re.IGNORECASE))


PLACES = (
    _placed("-pass", r"(?:in|out|phrase)?[ =](?:pass:)?"),
    _placed("pass:", r"(?=[^\s:]{4})"),
    _placed("sshpass", r"\s{1,4}-p\s{0,4}"),
    _placed("convertto-securestring", r"\s{1,8}(?:-String\s{1,8})?(?=[\"'])"),
    _placed("networkcredential(", r"\s?[\"'][^\"'\n]{0,80}[\"'],\s?(?=[\"'])"),
    Placed("auth ", re.compile(r"AUTH (?:[a-z]{1,20} )?(?=[\w!@#$%^&*+.\-]{0,100}[0-9])(?=\S{6})")),
    _placed("requirepass", r"[ \t]{1,4}(?=\S)"),
    _placed("masterauth", r"[ \t]{1,4}(?=\S)"),
    _placed("net user ", r"[\w.\-\\]{1,64} (?![/*])"),
    _placed(
        "echo ",
        r"(?:-n )?(?=[^|\n]{1,200}\|[^\n]{0,60}(?:--password-stdin|passwd --stdin|chpasswd|sudo -S))",
    ),
    _placed("identified ", r"(?:with [\w'\"]{1,40} )?by (?:password )?(?=['\"])"),
    _placed("auth", r"\s?=?\s?\(\s?[\"'][^\"'\n]{0,80}[\"'],\s?(?=[\"'])"),
    _placed("sudo ", r"[^\n]{0,40}<<<\s?"),
    _placed("htpasswd -", r"[a-z]{0,4}b[a-z]{0,4} (?:\S{1,80} )?\S{1,80} (?=\S)"),
    _placed("smbclient ", r"[^\n]{0,80}-U ?['\"]?[\w.\\\-]{1,40}%"),
    _placed("rpcclient ", r"[^\n]{0,80}-U ?['\"]?[\w.\\\-]{1,40}%"),
    _placed("ldap", r"[a-z]{3,10} [^\n]{0,160}?-w ?(?=[^\s\-])"),
    _placed("snmp", r"[a-z]{3,10} [^\n]{0,160}?-[AX] ?(?=[^\s\-])"),
    _placed("wifi:", r"[^\n]{0,80}P:"),
    _placed("thin:", r"[\w.\-]{1,60}/(?=[^@\s]{1,80}@)"),
)

_USER_FLAG = re.compile(
    r"(?:-[a-zA-Z]{0,6}[uUa]|--user|--proxy-user|--auth|--creds?|--userpwd)(?:[ =]{1,3})"
    r"(?P<quote>[\"']?)(?P<user>[^\s:\"'=]{0,80}):"
)
_USER_COMMANDS = (
    "curl",
    "http",
    "wget",
    "--user",
    "--proxy-user",
    "--creds",
    "--userpwd",
    "mosquitto",
    "skopeo",
)
_PGPASS = re.compile(
    r"[ \t]{0,8}(?:\*|localhost|[\w\-]{1,60}+(?:\.[\w\-]{1,60}+){1,8}|[0-9.]{7,15}):(?:\*|[0-9]{4,5})"
    r":(?:\*|[\w\-]{1,63}):(?:\*|[\w\-.@]{1,63}):(\S{1,256})"
)
_DOCKER_AUTH = re.compile(r"""["']auth["']\s{0,8}:\s{0,8}["'](?=[A-Za-z0-9+/]{8,}+={0,2}["'])""")


def find_in_commands(source: Source) -> Iterator[Finding]:
    """Yield credentials given to commands by position, and those of .pgpass lines."""
    text, lower = source.text, source.lower
    for place in PLACES:
        for at in positions(lower, place.literal):
            found = place.pattern.match(text, at)
            if found is not None and not _continues_word(text, at):
                yield from _value(text, found.end())
    if any(command in lower for command in _USER_COMMANDS):
        for at in positions(text, " -"):
            yield from _user_argument(text, at + 1)
    for at in positions(text, ":"):
        yield from _pgpass(text, at)
    for at in positions(lower, 'auth"') + positions(lower, "auth'"):
        found = _DOCKER_AUTH.match(text, at - 1) if at else None
        if found is not None:
            yield from _value(text, found.end() - 1)


def _continues_word(text: str, at: int) -> bool:
    """Say whether the literal at `at` is the end of a longer word: `one-pass`, `bypass:`."""
    before = text[at - 1] if at else " "
    if text[at] == "-" or text.startswith("pass:", at):
        return before.isalnum() or before in "-_"
    return before.isalpha() and text[at : at + 4].lower() != "auth"


def _user_argument(text: str, at: int) -> Iterator[Finding]:
    found = _USER_FLAG.match(text, at)
    if found is None:
        return
    start = found.end()
    if found["quote"]:
        closing = closing_quote(text, found["quote"], start)
        end = closing[0] if closing is not None else start
    else:
        extent = bare_value(text, start, greedy=True)
        end = extent.end if extent is not None else start
    value = text[start:end]
    numbers = value.isdigit() and found["user"].isdigit()  # docker run -u 1000:1000
    if value and not numbers and not value.startswith("//") and is_secret(value, _GIVEN):
        yield Finding("password", start, end)


def _value(text: str, position: int) -> Iterator[Finding]:
    extent = value_at(text, position, greedy=True)
    if extent is None or mark_at(text, extent.start):
        return
    if is_secret(text[extent.start : extent.end], _GIVEN):
        yield Finding("password", extent.start, extent.end)


def _pgpass(text: str, colon: int) -> Iterator[Finding]:
    """Yield the password of a `host:port:database:user:password` line whose first colon is this one."""
    after = text[colon + 1 : colon + 2]
    if after != "*" and not after.isdigit():
        return
    line = text.rfind("\n", max(0, colon - 300), colon) + 1 if colon else 0
    if ":" in text[line:colon]:
        return
    found = _PGPASS.match(text, line)
    if found is not None and found.end() > colon and not mark_at(text, found.start(1)):
        yield Finding("password", *found.span(1))
