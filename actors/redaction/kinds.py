"""Every kind of secret that a mark can name, and what it stands for: the table of `docs/redaction.md`."""

from collections.abc import Mapping

from temporality.actors.redaction.vendors import VENDORS

OPEN = "open"
"""The kind of what reaches from before a cut into the kept text, and so can't be recognised."""

KINDS: Mapping[str, str] = {
    "password": "the value of a name that says password, passphrase, pwd, pass, пароль, and the like, and of"
    " commands that take one by position",
    "token": "the value of a name that says token, auth, jwt, otp, signature, токен",
    "secret": "the value of a name that says secret, секрет",
    "api-key": "the value of a name that says API, access, signing, encryption or account key, ключ API,"
    " ключ доступа",
    "private-key": "PEM, OpenSSH and PuTTY private keys, also truncated; private members of a JWK;"
    " values so named",
    "credential": "the value of a name that says credential or creds",
    "session": "the value of a name that says session id or sid",
    "authorization": "the credentials of Authorization headers of every scheme, and bare `Bearer …`"
    " and `Basic …`",
    "cookie": "the values in Cookie and Set-Cookie headers, attributes apart",
    "url-password": "the password in `scheme://user:password@host`, and a user that looks like a token",
    "password-hash": "bcrypt, crypt, argon2, pbkdf2 and LDAP hashes, which can be guessed offline",
    "jwt": "JSON web tokens, also without their signature",
    OPEN: "text that reaches unbroken from before a cut into the kept end of a long text",
} | {
    vendor.kind: f"tokens that begin with a prefix of {vendor.kind.rpartition('-')[0]}" for vendor in VENDORS
}
