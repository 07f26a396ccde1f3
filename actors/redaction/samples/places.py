"""The places where secrets are met: what stands before and after one, and what names it."""

import base64
from collections.abc import Callable, Mapping
from functools import partial
from random import Random

from temporality.actors.redaction.samples.secrets import (
    ALNUM,
    BASE64,
    FOLLOWERS,
    PASSWORDS,
    SURROUNDINGS,
    TOKENS,
    VALUES,
    Sample,
    characters,
    pem,
)

_TOKEN_NAMES = (
    "token",
    "access_token",
    "accessToken",
    "refresh-token",
    "API_KEY",
    "apiKey",
    "api-key",
    "x_api_key",
    "secret",
    "client_secret",
    "clientSecret",
    "CLIENT_SECRET_PROD",
    "SECRET_ACCESS_KEY",
    "aws_secret_access_key",
    "privateKey",
    "auth_token",
    "authToken",
    "AUTH_TOKEN",
    "session_id",
    "sessionId",
    "webhook_secret",
    "signing_key",
    "ENCRYPTION_KEY",
    "DB_TOKEN",
    "SLACK_BOT_TOKEN",
    "GITHUB_TOKEN",
    "jwt_secret",
    "SECRET_KEY",
    "credential",
    "STORAGE_ACCOUNT_KEY",
    "ApiKey",
    "accessKey",
    "_authToken",
    "bot_token",
    "ID_TOKEN",
    "apikey",
    "app_secret",
    "TOKEN_2",
    "SERVICE_SECRET_EU",
)
_PASSWORD_NAMES = (
    "password",
    "Password",
    "PASSWORD",
    "passwd",
    "pwd",
    "DB_PASSWORD",
    "DB_PASSWORD_PROD",
    "dbPassword",
    "db-password",
    "user.password",
    "MYSQL_ROOT_PASSWORD",
    "PGPASSWORD",
    "passphrase",
    "pass_phrase",
    "rootPassword",
    "smtp_passwd",
    "spring.datasource.password",
    "REDIS_PASS",
    "adminPwd",
    "keystorePassword",
    "пароль",
)

ASSIGNMENTS: Mapping[str, tuple[str, str]] = {
    "env": ("{name}=", ""),
    "export": ("export {name}=", ""),
    "export quoted": ('export {name}="', '"'),
    "yaml": ("server:\n  {name}: ", "\n  port: 8080"),
    "yaml quoted": ("{name}: '", "'\nuser: bob"),
    "toml": ('[db]\n{name} = "', '"\nhost = "x"'),
    "ini": ("{name} = ", "\nhost = x"),
    "json": ('{{"user": "bob", "{name}": "', '", "port": 1}}'),
    "json compact": ('{{"{name}":"', '"}}'),
    "json in json": ('{{"body": "{{\\"{name}\\": \\"', '\\"}}"}}'),
    "python repr": ("{{'user': 'bob', '{name}': '", "', 'port': 1}}"),
    "keyword argument": ("connect({name}='", "', port=1)"),
    "flag": ("tool --{name} ", " --verbose"),
    "flag with equals": ("tool --{name}=", " --verbose"),
    "docker": ("docker run -e {name}=", " image"),
    "query": ("GET https://api.example.com/v1?{name}=", "&page=2 HTTP/1.1"),
    "logfmt": ("level=info {name}=", " user=bob"),
    "sentence": ("the {name}: ", " was refused"),
    "xml": ("<{name}>", "</{name}>"),
    "javascript": ("const {name} = '", "';"),
    "windows": ("set {name}=", "\r\necho"),
    "powershell": ('$env:{name} = "', '"'),
}
"""Places for a named value: what stands before it and after it."""


def token_sample(kind: str, rng: Random) -> Sample:
    """Make a vendor's token somewhere in a text, with some follower."""
    after = rng.choice(FOLLOWERS)
    return Sample(kind, rng.choice(SURROUNDINGS), TOKENS[kind](rng), after)


def named_sample(place: str, rng: Random) -> Sample:
    """Make a value whose name says that it is secret."""
    before, after = ASSIGNMENTS[place]
    password = rng.random() < 0.4
    name = rng.choice(_PASSWORD_NAMES if password else _TOKEN_NAMES)
    values = PASSWORDS if password else VALUES
    bare = before.endswith(("=", " ")) and place != "query"
    follower = (
        rng.choice(FOLLOWERS) if bare and place in ("env", "export", "logfmt", "sentence", "flag") else ""
    )
    secret = values[rng.choice(list(values))](rng)
    if place == "query":
        secret = characters(rng, ALNUM, 12, 40)
    return Sample(place, before.format(name=name), secret, follower + after.format(name=name))


def _header(scheme: str, value: Callable[[Random], str]) -> Callable[[Random], Sample]:
    def make(rng: Random) -> Sample:
        name = rng.choice(("Authorization", "authorization", "AUTHORIZATION", "Proxy-Authorization"))
        before, after = rng.choice(
            (
                ("{n}: ", "\nHost: x"),
                ("curl -H '{n}: ", "' https://x"),
                ('curl -H "{n}: ', '" https://x'),
                ('{{"{n}": "', '"}}'),
                ("{{'{n}': '", "', 'Accept': '*/*'}}"),
                ("> {n}: ", "\r\n> Accept: */*"),
                ('headers: {{\\"{n}\\": \\"', '\\"}}'),
                ("[('{n}', '", "')]"),
            )
        )
        written = rng.choice((scheme, scheme.lower(), scheme.upper()))
        return Sample(f"header {scheme}", before.format(n=name) + written + " ", value(rng), after.format())

    return make


def _placed(
    kind: str, places: tuple[tuple[str, str], ...], value: Callable[[Random], str]
) -> Callable[[Random], Sample]:
    def make(rng: Random) -> Sample:
        before, after = rng.choice(places)
        return Sample(kind, before, value(rng), after)

    return make


def _basic(rng: Random) -> str:
    return base64.b64encode(f"bob:{characters(rng, ALNUM, 6, 20)}".encode()).decode()


_OPAQUE = VALUES["url-safe"]

PLACED: Mapping[str, Callable[[Random], Sample]] = {
    "bearer": _header("Bearer", _OPAQUE),
    "basic": _header("Basic", _basic),
    "token scheme": _header("Token", VALUES["hexadecimal"]),
    "api key scheme": _header("ApiKey", _OPAQUE),
    "digest": _placed(
        "digest",
        (('Authorization: Digest username="bob", realm="r", nonce="1", response="', '"\nHost: x'),),
        VALUES["hexadecimal"],
    ),
    "bare bearer": _placed(
        "bare bearer",
        (("sent Bearer ", ")"), ("bearer ", "."), ("with 'Bearer ", "'")),
        VALUES["letters and digits"],
    ),
    "api key header": _placed(
        "api key header",
        (
            ("X-Api-Key: ", "\n"),
            ("-H 'x-api-key: ", "' x"),
            ('"X-API-Key": "', '"'),
            ("X-Auth-Token: ", "\r\n"),
            ("Private-Token: ", "\n"),
        ),
        _OPAQUE,
    ),
    "cookie": _placed(
        "cookie",
        (("Cookie: sid=", "; Path=/"), ("cookie: session=", "\n"), ("-H 'Cookie: session=", "'")),
        _OPAQUE,
    ),
    "set-cookie": _placed(
        "set-cookie",
        (("Set-Cookie: sid=", "; Path=/; HttpOnly"), ('"set-cookie": "JSESSIONID=', '; Path=/"')),
        VALUES["letters and digits"],
    ),
    "url password": _placed(
        "url password",
        (
            ("git clone https://bob:", "@git.example.com/x.git"),
            ("postgres://app:", "@db:5432/x"),
            ("redis://:", "@cache:6379/0"),
            ("amqp://guest:", "@mq/vh)."),
            ('"mongodb+srv://u:', '@c.example.net/d?w=1"'),
        ),
        VALUES["letters and digits"],
    ),
    "url password with symbols": _placed(
        "url password with symbols",
        (("mysql://root:", "@db:3306/x"), ("(postgres://app:", "@db/x)")),
        lambda rng: characters(rng, ALNUM + "!$*@_+-", 10, 20),
    ),
    "signed url": _placed(
        "signed url",
        (
            ("https://b.s3.amazonaws.com/k?X-Amz-Expires=9&X-Amz-Signature=", "&x=1"),
            ("https://a.blob.core.windows.net/c?sv=2024&sig=", "&se=1"),
            ("https://x/cb#access_token=", "&state=1"),
            ("https://x/cb?code=", "&state=1"),
            ("https://maps.example.com/js?key=", ")"),
        ),
        VALUES["letters and digits"],
    ),
    "azure storage": _placed(
        "azure storage",
        (("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=", ";EndpointSuffix=core.windows.net"),),
        lambda rng: base64.b64encode(rng.randbytes(64)).decode(),
    ),
    "connection string": _placed(
        "connection string",
        (
            ("Server=db;User Id=sa;Password=", ";Encrypt=True"),
            ("host=db user=a password=", " dbname=x"),
            ("Uid=a;Pwd=", ";"),
        ),
        VALUES["letters and digits"],
    ),
    "private key": _placed("private key", (("", "\n"), ("key:\n", "\nnext"), ("stderr: ", "")), pem),
    "private key in json": _placed(
        "private key in json", (('{"private_key": "', '", "x": 1}'),), lambda rng: pem(rng, newline="\\n")
    ),
    "truncated private key": _placed(
        "truncated private key", (("key:\n", "\n... and so on"), ("", "")), lambda rng: pem(rng, ended=False)
    ),
    "aws secret": _placed(
        "aws secret",
        (("aws_secret_access_key = ", "\n"), ("AWS_SECRET_ACCESS_KEY=", ")"), ("SecretAccessKey: ", ",")),
        lambda rng: characters(rng, BASE64, 40),
    ),
    "russian sentence": _placed(
        "russian sentence",
        (
            ("пароль: ", ", запишите"),
            ("Токен доступа — ", "."),
            ("секретный ключ: ", ""),
            ("ключ API: ", ")"),
            ("ключ доступа = ", ";"),
        ),
        VALUES["letters and digits"],
    ),
    "password hash": _placed(
        "password hash",
        (("bob:", "\n"), ("hash ", ")")),
        lambda rng: "$2b$12$" + characters(rng, ALNUM + "./", 53),
    ),
    "quoted with escapes": _placed(
        "quoted with escapes",
        (('"password": "', '", "x": 1'), ("password='", "'"), ('PASSWORD="', '"')),
        lambda rng: characters(rng, ALNUM, 4, 8) + '\\"' * (1) + " " + characters(rng, ALNUM, 4, 8),
    ),
}
"""Secrets met in one kind of place only."""


def every_kind() -> dict[str, Callable[[Random], Sample]]:
    """Return all kinds by name, each with the function that makes a sample of it."""
    kinds: dict[str, Callable[[Random], Sample]] = {}
    for kind in TOKENS:
        kinds[f"token: {kind}"] = partial(token_sample, kind)
    for place in ASSIGNMENTS:
        kinds[f"named: {place}"] = partial(named_sample, place)
    return kinds | {f"placed: {kind}": make for kind, make in PLACED.items()}
