"""Text that speaks of secrets, or looks like one, and holds none: it must pass unchanged."""

import base64
import string
from collections.abc import Callable, Mapping
from random import Random

from temporality.actors.redaction.samples.secrets import characters

_HEX = "0123456789abcdef"
_ALNUM = string.ascii_letters + string.digits
_NAMES = ("password", "token", "secret", "api_key", "access_token", "client_secret", "apiKey", "credentials")


def _hex(rng: Random, length: int) -> str:
    return "".join(rng.choice(_HEX) for _ in range(length))


def _uuid(rng: Random) -> str:
    return "-".join(_hex(rng, size) for size in (8, 4, 4, 4, 12))


def _one(*templates: str) -> Callable[[Random], str]:
    """Return a maker that fills `{name}`, `{n}`, `{hex40}` … of one of the templates."""

    def make(rng: Random) -> str:
        return rng.choice(templates).format(
            name=rng.choice(_NAMES),
            n=rng.randint(1, 9999),
            hex7=_hex(rng, 7),
            hex32=_hex(rng, 32),
            hex40=_hex(rng, 40),
            hex64=_hex(rng, 64),
            uuid=_uuid(rng),
            b64=base64.b64encode(rng.randbytes(64)).decode(),
            id=characters(rng, _ALNUM, 10, 24),
            word=rng.choice(("alpha", "payments", "worker", "gateway", "users")),
        )

    return make


ORDINARY: Mapping[str, Callable[[Random], str]] = {
    "commit": _one(
        "commit {hex40}\nAuthor: Bob",
        "HEAD is now at {hex7} Fix token parser",
        "{hex40}..{hex40}",
        "fatal: bad object {hex40}",
        "key {hex40}",
    ),
    "digest": _one(
        "sha256:{hex64}",
        "Digest: sha256:{hex64}",
        "md5 {hex32}",
        "{hex64}  dist/x.whl",
        'ETag: "{hex32}"',
        'etag: W/"{hex32}"',
    ),
    "integrity": _one('integrity="sha512-{b64}"', '"integrity": "sha512-{b64}",', "--hash=sha256:{hex64}"),
    "uuid": _one("request {uuid} failed", "id={uuid}", '"id": "{uuid}"', "user_id: {uuid}", "trace {uuid}."),
    "path": _one(
        "/home/bob/secrets/{word}.py:{n}",
        "/etc/ssl/private/{word}.key",
        "cat: /run/secrets/token: Permission denied",
        "C:\\Users\\bob\\token\\x.txt",
        "src/auth/password_reset.py:{n}: error: bad",
        "open('/var/run/secrets/api_key')",
        "./tokens/{word}.json",
        "PWD=/home/bob/{word}",
    ),
    "column": _one(
        "password_hash",
        "token_id integer",
        "SELECT api_key FROM users",
        "SELECT password, token FROM t WHERE id = {n}",
        "password VARCHAR(255) NOT NULL",
        'column "password_hash" does not exist',
        "ALTER TABLE t ADD COLUMN secret text",
        "INSERT INTO users (name, password) VALUES (?, ?)",
        "token_hash bytea",
    ),
    "missing": _one(
        "Missing required parameter: {name}",
        "missing {name}",
        "KeyError: '{name}'",
        "{name} is required",
        "{name} not found",
        "Field '{name}' is missing",
        "error: the following arguments are required: --{name}",
        "undefined variable {name}",
        "AttributeError: 'Config' object has no attribute '{name}'",
        "unexpected keyword argument '{name}'",
    ),
    "parser": _one(
        "invalid token at line {n}",
        "Unexpected token '}}'",
        "Unexpected token < in JSON at position {n}",
        "SyntaxError: Unexpected token: ')'",
        "token limit exceeded: {n}",
        "unexpected token: identifier (foo)",
        "unterminated string token at {n}",
        "Invalid token: unexpected character",
    ),
    "validation": _one(
        "password: required",
        "password must be at least 8 characters",
        "secret not found",
        "{name}: is required",
        '{{"{name}": ["This field is required."]}}',
        "password: must contain a digit",
        "token: expired",
        "{name}: invalid",
        "password: Field required",
        "token is invalid or expired",
        "password: must be at least 8 characters",
        "secret: not found",
    ),
    "counts": _one(
        "pass: {n} fail: 3",
        "pass: 12, fail: 0",
        "tokens: {n}",
        "max_tokens={n}",
        '"total_tokens": {n}',
        "prompt_tokens={n}, completion_tokens={n}",
        "token_count: {n}",
        "passed={n} failed=0",
        "tokens used: {n}",
        "pass=12 fail=3",
    ),
    "ordinary key": _one(
        "key: value",
        "key=value",
        "key: {word}",
        "primary_key: id",
        "foreign key: user_id",
        "sort_key={word}",
        "cache_key: users:{n}",
        "key_error",
        "keyboard: us",
        '"key": "{word}"',
        "public_key: ssh",
        "Press any key: continue",
    ),
    "annotation": _one(
        "token: str",
        "password: string",
        "def f(token: str, password: str | None = None) -> None:",
        "api_key: Optional[str] = None",
        "secret: bytes",
        "password: String!",
        "token: AuthToken",
        "{name}: SecretStr",
        "let token: String;",
        "password?: string;",
    ),
    "code": _one(
        "password = getpass()",
        'api_key = os.environ["API_KEY"]',
        "token = response.json()['token']",
        "secret = config.secret",
        "password = getpass.getpass('Password: ')",
        "const token = req.headers.authorization;",
        "self.token = token",
        "password=password",
        'token = os.getenv("TOKEN")',
        "apiKey: process.env.API_KEY",
        "if (token == null) return",
        "token = next_token()",
        "password = input('Enter password: ')",
        "client_secret=settings.CLIENT_SECRET",
    ),
    "placeholder": _one(
        "API_KEY=${{TOKEN}}",
        "api_key=$API_KEY",
        "token: <your-token>",
        "password: ****",
        "Authorization: Bearer <token>",
        "Authorization: Bearer ${{TOKEN}}",
        "password=********",
        "TOKEN=your-token-here",
        "api_key: YOUR_API_KEY",
        "{name}: {{{{ {name} }}}}",
        "https://user:${{PASS}}@host/x",
        "password=<password>",
        "token: [REDACTED]",
        "secret: null",
        '"token": ""',
        "X-Api-Key: $KEY",
        "docker run -e TOKEN=$TOKEN image",
        "curl -u $USER:$PASS https://x",
        'curl -H "Authorization: Bearer $TOKEN" https://x',
    ),
    "version": _one(
        "version: 1.{n}.3",
        "python 3.11.{n}",
        "v2.0.0-rc.{n}",
        "requests==2.31.0",
        "pypi-simple 1.4",
        "node v20.{n}.0",
    ),
    "e-mail": _one(
        "bob@example.com",
        "mailto:bob@example.com",
        "From: Bob <bob.smith@example.com>",
        "contact: {word}@example.org.",
    ),
    "date": _one(
        "2026-11-30T12:00:00Z",
        "expires: 2026-11-30",
        "token expires at 2026-11-30T12:00:00",
        "password changed 2026-01-02 10:00:00",
    ),
    "id": _one(
        "msg_{id}",
        "call_{n}",
        "run_{id}",
        "toolu_{id}",
        "chatcmpl-{id}",
        "request_id: req_{id}",
        "token_id={n}",
        "key_id: {id}",
    ),
    "url": _one(
        "https://example.com/a/b?page={n}&size=10",
        "http://localhost:8080/token",
        "https://example.com/reset-password?lang=en",
        "https://github.com/bob/secret-scanner/issues/{n}",
        "http://host:8080/path?email=a@example.com",
        "https://x/?code=404",
        "git@github.com:bob/x.git",
    ),
    "prose": _one(
        "The password was wrong.",
        "keep the auth information in the URL",
        "An OAuth access token that expired",
        "a single-pass entry at {word}",
        "from .auth import AuthBase, HTTPBasicAuth",
        'class Word(Token):\n    """Token for matching words."""',
        "Processed session termination for sessionid: 0x14ed93111f2{n}",
        "Use a strong password; never share your token.",
        "Authentication token has expired, please log in again",
        "The secret to good code is reading.",
        "Enter password:",
        "Password for bob: ",
        "[sudo] password for bob: ",
        "Bearer authentication is required",
        "Basic authentication failed",
        'WWW-Authenticate: Bearer realm="example"',
        "no API key provided",
        "Токен просрочен",
        "Неверный пароль",
        "пароль: не указан",
        "Введите пароль:",
        "authorization: denied",
        "Authorization: required",
    ),
    "metadata name": _one(
        "token_type: bearer",
        '"token_type": "Bearer"',
        "secret_name: {word}",
        "auth_method: password",
        "token_url: https://x/token",
        "password_policy: strict",
        "secretRef: {word}",
        "tokenEndpoint=https://x/t",
        "credential_helper=store",
        "--token-file ./t",
        "--password-stdin",
        "secretKeyRef:\n  name: {word}",
        "session_count={n}",
        "auth: none",
        "passwordField: pw_input",
    ),
    "public key": lambda rng: (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5" + base64.b64encode(rng.randbytes(51)).decode() + " bob@host"
    ),
    "certificate": lambda rng: (
        "-----BEGIN CERTIFICATE-----\n"
        + base64.encodebytes(rng.randbytes(300)).decode()
        + "-----END CERTIFICATE-----"
    ),
    "image": lambda rng: "data:image/png;base64," + base64.b64encode(rng.randbytes(400)).decode(),
    "address": _one(
        "0x7f{hex7}a0", "at 10.0.0.{n}:8080", "fe80::1ff:fe23:4567:890a", "02:42:ac:11:00:02", "::1:{n}"
    ),
    "traceback": _one(
        'File "/x/{word}.py", line {n}, in get_token\n    raise KeyError("token")',
        "TokenError: token expired (exp={n})",
        "PasswordTooShort: min 8",
        "jwt.exceptions.DecodeError: Not enough segments",
        "panic: runtime error: index {n}",
    ),
    "json schema": _one(
        '"password": {{"type": "string"}}',
        '{{"type": "password"}}',
        '<input type="password" name="pw">',
        '"required": ["token", "password"]',
        "- name: token\n  in: query\n  required: true",
        '"properties": {{"api_key": {{"type": "string", "minLength": 8}}}}',
    ),
    "log": _one(
        "{n} INFO token refreshed for user {n}",
        "auth: login ok user=bob",
        "sshd[{n}]: Failed password for root from 10.0.0.1 port {n} ssh2",
        "sshd[{n}]: Accepted password for bob",
        "session opened for user root by (uid=0)",
        "token bucket: rate={n} burst=10",
        "pam_unix(sshd:auth): authentication failure; logname= uid=0",
    ),
    "git": _one(
        "diff --git a/token.py b/token.py\nindex {hex7}..{hex7} 100644",
        "Merge branch 'secret-rotation'",
        "tag: v1.{n}",
        "error: pathspec 'token' did not match",
    ),
}
