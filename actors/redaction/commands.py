"""Credentials whose place, not whose name, gives them away: command lines and credential files."""

import re
from collections.abc import Iterator

from temporality.actors.redaction.extents import bare_value, quoted_value, value_at
from temporality.actors.redaction.finding import Finding, Source, mark_at
from temporality.actors.redaction.names import Meaning, Strength
from temporality.actors.redaction.values import Context, Link, is_secret

_PASSWORD = Meaning("password", Strength.PASSWORD)
_COMMAND_USER = re.compile(
    r"""(?:\s|["'])(?:-u|-U|-a|--user|--proxy-user|--auth|--creds?|--userpwd)(?:[ =]{1,3})(?P<quote>["']?)(?P<user>[^\s:"'=]{0,80}):"""
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
_PASS_ARGUMENT = re.compile(
    r"(?:-pass(?:in|out)?|-passphrase)[ =](?:pass:)?|\bsshpass\s{1,4}-p\s{0,4}|\bpass:(?=[^\s:]{4})"
)
_PLAIN_TEXT = re.compile(
    r"""ConvertTo-SecureString\s{1,8}(?:-String\s{1,8})?(?=["'])|NetworkCredential\(\s?["'][^"'\n]{0,80}["'],\s?(?=["'])"""
)
_PGPASS = re.compile(
    r"""(?m)^[ \t]{0,8}(?:\*|localhost|[\w\-]{1,60}(?:\.[\w\-]{1,60}){1,8}|[0-9.]{7,15}):(?:\*|[0-9]{4,5}):(?:\*|[\w\-]{1,63}):(?:\*|[\w\-.@]{1,63}):(\S{1,256})"""
)
_REDIS = re.compile(
    r"(?m)(?:^|[>\s\"'])(?:AUTH|requirepass|masterauth|sentinel auth-pass \w{1,40})[ \t]{1,4}(?:[a-z]{1,20}[ ])?(?=\S)"
)
_NET_USER = re.compile(r"(?i)\bnet user [\w.\-\\]{1,64} (?![/*])")
_ECHO_LOGIN = re.compile(
    r"\becho (?:-n )?(?=[^|\n]{1,200}\|[^\n]{0,60}(?:--password-stdin|passwd --stdin|chpasswd|sudo -S))"
)
_ENCODED_BASIC = re.compile(r"""["']auth["']\s{0,8}:\s{0,8}["'](?=[A-Za-z0-9+/]{8,}={0,2}["'])""")


def find_in_commands(source: Source) -> Iterator[Finding]:
    """Yield credentials given to commands by position, and those of .pgpass lines."""
    text, lower = source.text, source.lower
    if any(command in lower for command in _USER_COMMANDS):
        yield from _user_arguments(text)
    if "pass" in lower:
        yield from _after(text, _PASS_ARGUMENT)
    if "securestring" in lower or "networkcredential" in lower:
        yield from _after(text, _PLAIN_TEXT)
    if ":" in text:
        yield from _pgpass(text)
    if "AUTH " in text or "requirepass" in lower or "masterauth" in lower:
        yield from _after(text, _REDIS)
    if "net user " in lower:
        yield from _after(text, _NET_USER)
    if "echo " in lower:
        yield from _after(text, _ECHO_LOGIN)
    if "auth" in lower:
        for found in _ENCODED_BASIC.finditer(text):
            yield from _value(text, found.end() - 1)


def _user_arguments(text: str) -> Iterator[Finding]:
    for found in _COMMAND_USER.finditer(text):
        start = found.end()
        extent = quoted_end(text, found["quote"], start) if found["quote"] else None
        if extent is None:
            bare = bare_value(text, start, greedy=True)
            extent = (start, bare.end) if bare is not None else None
        if extent is None or extent[0] == extent[1] or mark_at(text, start):
            continue
        value = text[extent[0] : extent[1]]
        if value.isdigit() and found["user"].isdigit() or value.startswith("//"):
            continue
        if is_secret(value, Context(_PASSWORD, Link.ASSIGNED, True)):
            yield Finding("password", *extent)


def quoted_end(text: str, quote: str, start: int) -> tuple[int, int]:
    """Return the rest of a quoted string from `start` on."""
    opening = re.compile(r"""(?P<quote>["'])""").match(text, text.rfind(quote, 0, start))
    if opening is None:
        return start, start
    return start, max(start, quoted_value(text, opening).end)


def _after(text: str, pattern: re.Pattern[str]) -> Iterator[Finding]:
    for found in pattern.finditer(text):
        yield from _value(text, found.end())


def _value(text: str, position: int) -> Iterator[Finding]:
    extent = value_at(text, position, greedy=True)
    if extent is None or mark_at(text, extent.start):
        return
    if is_secret(text[extent.start : extent.end], Context(_PASSWORD, Link.ASSIGNED, True)):
        yield Finding("password", extent.start, extent.end)


def _pgpass(text: str) -> Iterator[Finding]:
    for found in _PGPASS.finditer(text):
        if not mark_at(text, found.start(1)):
            yield Finding("password", *found.span(1))
