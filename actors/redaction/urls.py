"""Passwords in URLs: `scheme://user:password@host`.

The user stays, because it helps to understand an error, unless it looks like a token itself. Secrets in the
query and the fragment are values with a name, and found as such.
"""

import re
from collections.abc import Iterator

from temporality.actors.redaction.finding import Finding, Source, mark_at, positions
from temporality.actors.redaction.names import Meaning, Strength
from temporality.actors.redaction.values import Context, Link, is_secret

USER_INFO_LENGTH_MAX = 2_048
"""Longest user-info looked at: tokens as passwords take a few hundred characters."""

_CREDENTIALS = re.compile(
    r"""(?P<user>[^\s/:@?\#"'<>\\`]{0,256}+)(?::|%3A)(?P<password>[^\s"'<>\\`/]{1,2048}+|)(?P<slashed>[^\s"'<>\\`@]{0,256}+@(?=[\w\[]))?"""
)
_USER_ONLY = re.compile(r"""([^\s/:@?\#"'<>\\`]{16,512}+)@(?=[\w\[])""")
_PORT_FIRST = re.compile(r"[0-9]{1,5}(?:[/?#]|\Z)")
_DSN = re.compile(r"""(?<![\w.\-/])[\w.\-]{1,64}:([^\s:"'<>]{1,128}?)@(?:tcp|unix)\(""")
_MEANING = Meaning("url-password", Strength.PASSWORD)


def find_url_passwords(source: Source) -> Iterator[Finding]:
    """Yield passwords, and users that look like tokens, in the user-info of URLs."""
    text = source.text
    for literal in ("://", "%3A%2F%2F", ":\\/\\/"):
        for at in positions(text, literal):
            if at and (text[at - 1].isalnum() or text[at - 1] in "+.-"):
                yield from _user_info(text, at + len(literal))
    if "@tcp(" in text or "@unix(" in text:
        for found in _DSN.finditer(text):
            yield Finding("url-password", *found.span(1))


def _user_info(text: str, position: int) -> Iterator[Finding]:
    authority_end = _authority_end(text, position)
    colon = text.find(":", position, authority_end)
    at_sign = text.rfind("@", position, authority_end)
    if at_sign < 0 or (0 <= colon < at_sign and _PORT_FIRST.match(text, colon + 1, at_sign)):
        return
    slash = text.find("/", position, at_sign)
    if colon < 0 or colon > at_sign or 0 <= slash < colon:
        if slash < 0 and _looks_like_token(text[position:at_sign]):
            yield Finding("url-password", position, at_sign)
        return
    if slash >= 0:  # a slash inside the password, or an e-mail address in the path
        at_sign = text.find("@", slash, authority_end)
    password = text[colon + 1 : at_sign]
    user = text[position:colon]
    if mark_at(text, colon + 1):
        return
    if not password or password.lower() in ("x-oauth-basic", "x-oauth-token"):
        if user:
            yield Finding("url-password", position, colon)
        return
    if is_secret(password, Context(_MEANING, Link.ASSIGNED, True, upper=True)):
        yield Finding("url-password", colon + 1, at_sign)
    if _looks_like_token(user):
        yield Finding("url-password", position, colon)


_AUTHORITY = re.compile(r"""[^\s"'<>\\`]{0,2048}+""")
_NEXT_URL = re.compile(r"[,;|][a-z][a-z0-9+]{1,12}://")


def _authority_end(text: str, position: int) -> int:
    """Return where user-info and host must have ended: at white space, a quote, or a second URL."""
    found = _AUTHORITY.match(text, position)
    end = found.end() if found is not None else position
    another = text.find("://", position, end)
    while another > position and (text[another - 1].isalnum() or text[another - 1] in ",;|+"):
        another -= 1
    end = another if another > position else end
    for stop in ("?", "#"):
        query = text.find(stop, position, end)
        if query >= 0 and "@" in text[position:query]:
            end = query
    return end


def _looks_like_token(user: str) -> bool:
    digits = sum(char.isdigit() for char in user)
    return len(user) >= 20 and digits >= 2 and user.replace("_", "").replace("-", "").isalnum()
