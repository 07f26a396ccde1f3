"""Secrets of many kinds, each put into the places where such a secret is met."""

import base64
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

FOLLOWERS = (
    "",
    ")",
    ".",
    ";",
    ",",
    '"',
    "'",
    "]",
    "}",
    ">",
    "\n",
    " ",
    ").",
    '",',
    "'}",
    "\n\n",
    " and more",
    "),",
)
"""What may stand right after a secret in text that is cut, quoted or punctuated."""

_ALNUM = string.ascii_letters + string.digits
_LOWER = string.ascii_lowercase + string.digits
_HEX = "0123456789abcdef"
_UPPER = string.ascii_uppercase + string.digits
_URLSAFE = _ALNUM + "_-"
_BASE64 = _ALNUM + "+/"
_SYMBOLS = "!@#$%^*_+-=?~"


@dataclass(frozen=True, slots=True)
class Sample:
    """A text that holds `secret` between `before` and `after`, which must both survive redaction."""

    kind: str
    before: str
    secret: str
    after: str

    @property
    def text(self) -> str:
        return self.before + self.secret + self.after


def characters(rng: Random, alphabet: str, least: int, most: int | None = None) -> str:
    """Return random characters of `alphabet`, with a letter first and a digit among them where it has any."""
    length = rng.randint(least, most or least)
    made = [rng.choice(alphabet) for _ in range(length)]
    letters = [char for char in alphabet if char.isalpha()]
    digits = [char for char in alphabet if char.isdigit()]
    if letters:
        made[0] = rng.choice(letters)
    if digits and length > 2:
        made[rng.randrange(1, length - 1)] = rng.choice(digits)
    if length > 1:
        made[-1] = rng.choice([char for char in alphabet if char.isalnum()])
    return "".join(made)


def _prefixed(prefixes: str, alphabet: str, least: int, most: int | None = None) -> Callable[[Random], str]:
    return lambda rng: rng.choice(prefixes.split()) + characters(rng, alphabet, least, most)


def jwt(rng: Random) -> str:
    """Make a JSON web token."""
    parts = (
        f'{{"alg":"HS256","kid":"{rng.randrange(999)}"}}',
        f'{{"sub":"{characters(rng, _LOWER, 12)}","iat":{rng.randrange(10**9)}}}',
    )
    head, body = (base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    return f"{head}.{body}.{characters(rng, _URLSAFE, 43)}"


def pem(rng: Random, kind: str = "", newline: str = "\n", ended: bool = True) -> str:
    """Make a private key block; one that is not `ended` lacks its END line."""
    label = kind or rng.choice(("", "RSA ", "EC ", "OPENSSH ", "DSA ", "ENCRYPTED "))
    lines = [characters(rng, _BASE64, 64) for _ in range(rng.randint(3, 26))]
    lines.append(characters(rng, _BASE64, 20, 50) + "=")
    lines.insert(0, f"-----BEGIN {label}PRIVATE KEY-----")
    if ended:
        lines.append(f"-----END {label}PRIVATE KEY-----")
    return newline.join(lines)


TOKENS: Mapping[str, Callable[[Random], str]] = {
    "github": _prefixed("ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM, 36),
    "github fine-grained": lambda rng: (
        "github_pat_" + characters(rng, _ALNUM, 22) + "_" + characters(rng, _ALNUM, 59)
    ),
    "gitlab": _prefixed("glpat- gldt- glrt-", _URLSAFE, 20),
    "slack": lambda rng: (
        rng.choice(("xoxb-", "xoxp-", "xoxa-"))
        + f"{rng.randrange(10**11, 10**12)}-"
        + characters(rng, _ALNUM, 24)
    ),
    "slack app": lambda rng: "xapp-1-" + characters(rng, _UPPER, 11) + "-" + characters(rng, _HEX, 64),
    "stripe": _prefixed("sk_live_ rk_live_ sk_test_", _ALNUM, 24, 99),
    "stripe webhook": _prefixed("whsec_", _ALNUM, 32),
    "openai": _prefixed("sk- sk-proj- sk-svcacct-", _ALNUM, 48, 120),
    "anthropic": _prefixed("sk-ant-api03- sk-ant-", _URLSAFE, 80, 95),
    "aws access key": _prefixed("AKIA ASIA", string.ascii_uppercase + "234567", 16),
    "google api": _prefixed("AIza", _URLSAFE, 35),
    "google oauth": _prefixed("ya29.", _URLSAFE, 60, 140),
    "google client": _prefixed("GOCSPX-", _URLSAFE, 28),
    "npm": _prefixed("npm_", _ALNUM, 36),
    "pypi": _prefixed("pypi-AgEIcHlwaS5vcmc", _URLSAFE, 80, 150),
    "hugging face": _prefixed("hf_", _ALNUM, 34),
    "sendgrid": lambda rng: f"SG.{characters(rng, _URLSAFE, 22)}.{characters(rng, _URLSAFE, 43)}",
    "twilio": _prefixed("SK", _HEX, 32),
    "mailgun": _prefixed("key-", _HEX, 32),
    "telegram bot": lambda rng: f"{rng.randrange(10**9, 10**10)}:AA{characters(rng, _URLSAFE, 33)}",
    "discord bot": lambda rng: (
        f"M{characters(rng, _ALNUM, 23)}.{characters(rng, _ALNUM, 6)}.{characters(rng, _URLSAFE, 38)}"
    ),
    "digitalocean": _prefixed("dop_v1_", _HEX, 64),
    "databricks": _prefixed("dapi", _HEX, 32),
    "shopify": _prefixed("shpat_ shpss_", _HEX, 32),
    "square": _prefixed("sq0atp- sq0csp- EAAA", _URLSAFE, 22, 60),
    "linear": _prefixed("lin_api_", _ALNUM, 40),
    "notion": _prefixed("ntn_ secret_", _ALNUM, 43),
    "atlassian": _prefixed("ATATT3xFfGF0", _URLSAFE, 160, 180),
    "docker": _prefixed("dckr_pat_", _URLSAFE, 27),
    "vault": _prefixed("hvs. hvb.", _URLSAFE, 90, 100),
    "supabase": _prefixed("sbp_", _HEX, 40),
    "grafana": lambda rng: f"glsa_{characters(rng, _ALNUM, 32)}_{characters(rng, _HEX, 8)}",
    "new relic": _prefixed("NRAK-", _UPPER, 27),
    "age": _prefixed("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "jwt": jwt,
}
"""Tokens that give themselves away: found wherever they stand."""

SURROUNDINGS = (
    "login failed with ",
    "using ",
    "(",
    "got '",
    "x\n",
    "key = ",
    '{"a": "',
    "Invalid credentials: ",
    "curl https://api.example.com/v1/ping -H ",
    "токен ",
    "\\n",
    "found <",
    "`",
)

VALUES: Mapping[str, Callable[[Random], str]] = {
    "letters and digits": lambda rng: characters(rng, _ALNUM, 16, 48),
    "hexadecimal": lambda rng: characters(rng, _HEX, 32, 64),
    "lower case": lambda rng: characters(rng, _LOWER, 12, 40),
    "url-safe": lambda rng: characters(rng, _URLSAFE, 20, 64),
    "base64": lambda rng: base64.b64encode(rng.randbytes(rng.randint(18, 48))).decode(),
    "uuid": lambda rng: "-".join(characters(rng, _HEX, size) for size in (8, 4, 4, 4, 12)),
}
PASSWORDS: Mapping[str, Callable[[Random], str]] = {
    "symbols": lambda rng: characters(rng, _ALNUM + _SYMBOLS, 8, 24),
    "short": lambda rng: characters(rng, _ALNUM, 3, 7),
    "word and number": lambda rng: (
        rng.choice(("hunter", "Summer", "dragon", "letmein", "qwerty"))
        + str(rng.randrange(10, 9999))
        + rng.choice("!#$_")
        + "x"
    ),
    "digits": lambda rng: str(rng.randrange(100_000, 10**9)),
}

_TOKEN_NAMES = (
    "token", "access_token", "accessToken", "refresh-token", "API_KEY", "apiKey", "api-key", "x_api_key", "secret",
    "client_secret", "clientSecret", "CLIENT_SECRET_PROD", "SECRET_ACCESS_KEY", "aws_secret_access_key", "privateKey",
    "auth_token", "authToken", "AUTH_TOKEN", "session_id", "sessionId", "webhook_secret", "signing_key", "ENCRYPTION_KEY",
    "DB_TOKEN", "SLACK_BOT_TOKEN", "GITHUB_TOKEN", "jwt_secret", "SECRET_KEY", "credential", "STORAGE_ACCOUNT_KEY", "ApiKey",
    "accessKey", "_authToken", "bot_token", "ID_TOKEN", "apikey", "app_secret", "TOKEN_2", "SERVICE_SECRET_EU",
)  # fmt: skip
_PASSWORD_NAMES = (
    "password", "Password", "PASSWORD", "passwd", "pwd", "DB_PASSWORD", "DB_PASSWORD_PROD", "dbPassword", "db-password",
    "user.password", "MYSQL_ROOT_PASSWORD", "PGPASSWORD", "passphrase", "pass_phrase", "rootPassword", "smtp_passwd",
    "spring.datasource.password", "REDIS_PASS", "adminPwd", "keystorePassword", "пароль",
)  # fmt: skip

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
    bare = before.endswith(("=", " ")) and place not in ("query",)
    follower = (
        rng.choice(FOLLOWERS) if bare and place in ("env", "export", "logfmt", "sentence", "flag") else ""
    )
    secret = values[rng.choice(list(values))](rng)
    if place == "query":
        secret = characters(rng, _ALNUM, 12, 40)
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
    return base64.b64encode(f"bob:{characters(rng, _ALNUM, 6, 20)}".encode()).decode()


_OPAQUE = VALUES["url-safe"]

PLACED: Mapping[str, Callable[[Random], Sample]] = {
    "bearer": _header("Bearer", _OPAQUE),
    "basic": _header("Basic", _basic),
    "token scheme": _header("Token", VALUES["hexadecimal"]),
    "api key scheme": _header("ApiKey", _OPAQUE),
    "digest": _placed(
        "digest", (('Authorization: Digest username="bob", realm="r", nonce="1", response="', '"\nHost: x'),), VALUES["hexadecimal"]
    ),
    "bare bearer": _placed("bare bearer", (("sent Bearer ", ")"), ("bearer ", "."), ("with 'Bearer ", "'")), VALUES["letters and digits"]),
    "api key header": _placed(
        "api key header",
        (("X-Api-Key: ", "\n"), ("-H 'x-api-key: ", "' x"), ('"X-API-Key": "', '"'), ("X-Auth-Token: ", "\r\n"), ("Private-Token: ", "\n")),
        _OPAQUE,
    ),
    "cookie": _placed(
        "cookie", (("Cookie: sid=", "; Path=/"), ("cookie: session=", "\n"), ("-H 'Cookie: session=", "'")), _OPAQUE
    ),
    "set-cookie": _placed(
        "set-cookie", (("Set-Cookie: sid=", "; Path=/; HttpOnly"), ('"set-cookie": "JSESSIONID=', '; Path=/"')), VALUES["letters and digits"]
    ),
    "url password": _placed(
        "url password",
        (("git clone https://bob:", "@git.example.com/x.git"), ("postgres://app:", "@db:5432/x"), ("redis://:", "@cache:6379/0"),
         ("amqp://guest:", "@mq/vh)."), ('"mongodb+srv://u:', '@c.example.net/d?w=1"')),
        VALUES["letters and digits"],
    ),
    "url password with symbols": _placed(
        "url password with symbols", (("mysql://root:", "@db:3306/x"), ("(postgres://app:", "@db/x)")),
        lambda rng: characters(rng, _ALNUM + "!$*@_+-", 10, 20),
    ),
    "signed url": _placed(
        "signed url",
        (("https://b.s3.amazonaws.com/k?X-Amz-Expires=9&X-Amz-Signature=", "&x=1"), ("https://a.blob.core.windows.net/c?sv=2024&sig=", "&se=1"),
         ("https://x/cb#access_token=", "&state=1"), ("https://x/cb?code=", "&state=1"), ("https://maps.example.com/js?key=", ")")),
        VALUES["letters and digits"],
    ),
    "azure storage": _placed(
        "azure storage", (("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=", ";EndpointSuffix=core.windows.net"),),
        lambda rng: base64.b64encode(rng.randbytes(64)).decode(),
    ),
    "connection string": _placed(
        "connection string", (("Server=db;User Id=sa;Password=", ";Encrypt=True"), ("host=db user=a password=", " dbname=x"), ("Uid=a;Pwd=", ";")),
        VALUES["letters and digits"],
    ),
    "private key": _placed("private key", (("", "\n"), ("key:\n", "\nnext"), ("stderr: ", "")), pem),
    "private key in json": _placed("private key in json", (('{"private_key": "', '", "x": 1}'),), lambda rng: pem(rng, newline="\\n")),
    "truncated private key": _placed("truncated private key", (("key:\n", "\n... and so on"), ("", "")), lambda rng: pem(rng, ended=False)),
    "aws secret": _placed("aws secret", (("aws_secret_access_key = ", "\n"), ("AWS_SECRET_ACCESS_KEY=", ")"), ("SecretAccessKey: ", ",")), lambda rng: characters(rng, _BASE64, 40)),
    "russian sentence": _placed(
        "russian sentence", (("пароль: ", ", запишите"), ("Токен доступа — ", "."), ("секретный ключ: ", ""), ("ключ API: ", ")"), ("ключ доступа = ", ";")),
        VALUES["letters and digits"],
    ),
    "password hash": _placed("password hash", (("bob:", "\n"), ("hash ", ")")), lambda rng: "$2b$12$" + characters(rng, _ALNUM + "./", 53)),
    "quoted with escapes": _placed(
        "quoted with escapes", (('"password": "', '", "x": 1'), ("password='", "'"), ('PASSWORD="', '"')),
        lambda rng: characters(rng, _ALNUM, 4, 8) + '\\"' * (1) + " " + characters(rng, _ALNUM, 4, 8),
    ),
}  # fmt: skip
"""Secrets met in one kind of place only."""


def every_kind() -> dict[str, Callable[[Random], Sample]]:
    """Return all kinds by name, each with the function that makes a sample of it."""
    kinds: dict[str, Callable[[Random], Sample]] = {}
    for kind in TOKENS:
        kinds[f"token: {kind}"] = lambda rng, kind=kind: token_sample(kind, rng)  # type: ignore[misc]
    for place in ASSIGNMENTS:
        kinds[f"named: {place}"] = lambda rng, place=place: named_sample(place, rng)  # type: ignore[misc]
    return kinds | {f"placed: {kind}": make for kind, make in PLACED.items()}
