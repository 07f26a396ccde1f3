"""Made-up secrets: vendors' tokens, private keys, random values and passwords."""

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

ALNUM = string.ascii_letters + string.digits
_LOWER = string.ascii_lowercase + string.digits
_HEX = "0123456789abcdef"
_UPPER = string.ascii_uppercase + string.digits
_URLSAFE = ALNUM + "_-"
BASE64 = ALNUM + "+/"
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
    lines = [characters(rng, BASE64, 64) for _ in range(rng.randint(3, 26))]
    lines.append(characters(rng, BASE64, 20, 50) + "=")
    lines.insert(0, f"-----BEGIN {label}PRIVATE KEY-----")
    if ended:
        lines.append(f"-----END {label}PRIVATE KEY-----")
    return newline.join(lines)


TOKENS: Mapping[str, Callable[[Random], str]] = {
    "github": _prefixed("ghp_ gho_ ghu_ ghs_ ghr_", ALNUM, 36),
    "github fine-grained": lambda rng: (
        "github_pat_" + characters(rng, ALNUM, 22) + "_" + characters(rng, ALNUM, 59)
    ),
    "gitlab": _prefixed("glpat- gldt- glrt-", _URLSAFE, 20),
    "slack": lambda rng: (
        rng.choice(("xoxb-", "xoxp-", "xoxa-"))
        + f"{rng.randrange(10**11, 10**12)}-"
        + characters(rng, ALNUM, 24)
    ),
    "slack app": lambda rng: "xapp-1-" + characters(rng, _UPPER, 11) + "-" + characters(rng, _HEX, 64),
    "stripe": _prefixed("sk_live_ rk_live_ sk_test_", ALNUM, 24, 99),
    "stripe webhook": _prefixed("whsec_", ALNUM, 32),
    "openai": _prefixed("sk- sk-proj- sk-svcacct-", ALNUM, 48, 120),
    "anthropic": _prefixed("sk-ant-api03- sk-ant-", _URLSAFE, 80, 95),
    "aws access key": _prefixed("AKIA ASIA", string.ascii_uppercase + "234567", 16),
    "google api": _prefixed("AIza", _URLSAFE, 35),
    "google oauth": _prefixed("ya29.", _URLSAFE, 60, 140),
    "google client": _prefixed("GOCSPX-", _URLSAFE, 28),
    "npm": _prefixed("npm_", ALNUM, 36),
    "pypi": _prefixed("pypi-AgEIcHlwaS5vcmc", _URLSAFE, 80, 150),
    "hugging face": _prefixed("hf_", ALNUM, 34),
    "sendgrid": lambda rng: f"SG.{characters(rng, _URLSAFE, 22)}.{characters(rng, _URLSAFE, 43)}",
    "twilio": _prefixed("SK", _HEX, 32),
    "mailgun": _prefixed("key-", _HEX, 32),
    "telegram bot": lambda rng: f"{rng.randrange(10**9, 10**10)}:AA{characters(rng, _URLSAFE, 33)}",
    "discord bot": lambda rng: (
        f"M{characters(rng, ALNUM, 23)}.{characters(rng, ALNUM, 6)}.{characters(rng, _URLSAFE, 38)}"
    ),
    "digitalocean": _prefixed("dop_v1_", _HEX, 64),
    "databricks": _prefixed("dapi", _HEX, 32),
    "shopify": _prefixed("shpat_ shpss_", _HEX, 32),
    "square": _prefixed("sq0atp- sq0csp- EAAA", _URLSAFE, 22, 60),
    "linear": _prefixed("lin_api_", ALNUM, 40),
    "notion": _prefixed("ntn_ secret_", ALNUM, 43),
    "atlassian": _prefixed("ATATT3xFfGF0", _URLSAFE, 160, 180),
    "docker": _prefixed("dckr_pat_", _URLSAFE, 27),
    "vault": _prefixed("hvs. hvb.", _URLSAFE, 90, 100),
    "supabase": _prefixed("sbp_", _HEX, 40),
    "grafana": lambda rng: f"glsa_{characters(rng, ALNUM, 32)}_{characters(rng, _HEX, 8)}",
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
    "letters and digits": lambda rng: characters(rng, ALNUM, 16, 48),
    "hexadecimal": lambda rng: characters(rng, _HEX, 32, 64),
    "lower case": lambda rng: characters(rng, _LOWER, 12, 40),
    "url-safe": lambda rng: characters(rng, _URLSAFE, 20, 64),
    "base64": lambda rng: base64.b64encode(rng.randbytes(rng.randint(18, 48))).decode(),
    "uuid": lambda rng: "-".join(characters(rng, _HEX, size) for size in (8, 4, 4, 4, 12)),
}
PASSWORDS: Mapping[str, Callable[[Random], str]] = {
    "symbols": lambda rng: characters(rng, ALNUM + _SYMBOLS, 8, 24),
    "short": lambda rng: characters(rng, ALNUM, 3, 7),
    "word and number": lambda rng: (
        rng.choice(("hunter", "Summer", "dragon", "letmein", "qwerty"))
        + str(rng.randrange(10, 9999))
        + rng.choice("!#$_")
        + "x"
    ),
    "digits": lambda rng: str(rng.randrange(100_000, 10**9)),
}
