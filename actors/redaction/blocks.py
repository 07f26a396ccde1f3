"""Secrets that take several lines or a form of their own: private keys, password hashes, key parameters.

A private key is secret from its BEGIN line to its END line, also when the line breaks are escaped inside a
JSON string. Without an END (a truncated log) it ends where the lines stop being base64.
Certificates and public keys are not secret and stay.
"""

import re
from collections.abc import Iterator

from temporality.actors.redaction.finding import Finding, Source, positions

KEY_LENGTH_MAX = 32_768
"""Longest private key looked for an END line: RSA 16,384 takes about 13,000 characters."""

_BEGIN = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY[A-Z ]{0,12}-{0,5}")
_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,60}+-{0,5}")
_BREAK = r"(?:\r?\n|\\{1,4}+r\\{1,4}+n|\\{1,4}+[rn])"
_HEADER_LINE = re.compile(rf"{_BREAK}(?:[A-Z][A-Za-z\-]{{2,20}}: [^\n\\]{{1,80}})?(?={_BREAK})")
_KEY_LINE = re.compile(rf"(?:{_BREAK}|[ \t>|]){{1,8}}+[A-Za-z0-9+/=]{{1,}}+(?! [a-z])")
_EDGE_LINE = re.compile(rf"[A-Za-z0-9+/=]{{0,}}+(?:{_BREAK}|\Z)")
_PUTTY = re.compile(r"Private-Lines: [0-9]{1,4}")
_HASH = re.compile(
    r"(?:\$(?:2[abxy]?|apr1|[1567y]|gy|argon2(?:id|i|d)|scrypt|pbkdf2[\w\-]{0,12})\$[A-Za-z0-9./+$=,*\-]{8,}+"
    r"|(?:pbkdf2_sha(?:1|256|512)|bcrypt_sha256|scrypt|argon2)\$[A-Za-z0-9./+$=,\-]{16,}+"
    r"|\{S?SHA(?:256|512)?\}[A-Za-z0-9+/=]{20,}+)"
)
_HASH_LITERALS = ("$", "pbkdf2_", "bcrypt_", "scrypt$", "argon2$", "{SHA", "{SSHA")
_JWK_MEMBER = re.compile(r"""["'](?:d|p|q|dp|dq|qi|k)["']\s{0,8}:\s{0,8}["']([A-Za-z0-9_\-]{16,}+)""")


def find_blocks(source: Source) -> Iterator[Finding]:
    """Yield private keys, password hashes and private members of JSON web keys."""
    text = source.text
    if "PRIVATE KEY" in text:
        yield from _pem_keys(text)
    yield from _putty_keys(text)
    for literal in _HASH_LITERALS:
        for at in positions(text, literal):
            hashed = _HASH.match(text, at)
            if hashed is not None and (at == 0 or not text[at - 1].isalnum()):
                yield Finding("password-hash", *hashed.span())
    if '"kty"' in text or "'kty'" in text:
        for found in _JWK_MEMBER.finditer(text):
            yield Finding("private-key", *found.span(1))


def _putty_keys(text: str) -> Iterator[Finding]:
    done = 0
    for at in positions(text, "Private-Lines: "):
        found = _PUTTY.match(text, at) if at >= done else None
        if found is None:
            continue
        done = _key_lines_end(text, found.end())
        if done > found.end():
            yield Finding("private-key", found.end(), done)


def _pem_keys(text: str) -> Iterator[Finding]:
    done = 0
    for at in positions(text, "PRIVATE KEY"):
        if at < done:
            continue
        begin = _BEGIN.search(text, max(done, at - 60), at + 40)
        if begin is None:
            continue
        closing = text.find("END ", begin.end(), begin.end() + KEY_LENGTH_MAX)
        next_begin = text.find("BEGIN ", begin.end(), begin.end() + KEY_LENGTH_MAX)
        ending = _END.search(text, max(begin.end(), closing - 6), closing + 90) if closing >= 0 else None
        if ending is not None and not 0 <= next_begin < closing:
            done = ending.end()
        else:
            done = _key_lines_end(text, begin.end())
        yield Finding("private-key", begin.start(), done)


def _key_lines_end(text: str, position: int) -> int:
    """Return where the base64 lines (and the headers before them) that begin at `position` end."""
    while (header := _HEADER_LINE.match(text, position)) is not None and header.end() > position:
        position = header.end()
    longest = 0
    while (line := _KEY_LINE.match(text, position)) is not None:
        length = line.end() - line.start()
        if longest and length > longest + 2:
            break
        position, longest = line.end(), max(longest, length)
        if length < longest - 2:  # the last line is the short one
            break
    return position


def open_key_end(text: str) -> int:
    """Return how far a private key, or another run of base64, reaches into a text whose begin was cut off.

    0 if the text does not begin inside one.
    """
    ending = _END.search(text, 0, KEY_LENGTH_MAX)
    begin = text.find("BEGIN ", 0, KEY_LENGTH_MAX)
    if ending is not None and "PRIVATE" in ending[0] and not 0 <= begin < ending.start():
        return ending.end()
    position = 0
    while position < len(text) and (line := _EDGE_LINE.match(text, position)) is not None:
        if position and len(line[0]) < 40:
            break
        position = line.end()
    return position
