"""Which names say that a secret follows.

A name is taken apart at its case changes and separators, so `dbPasswordProd`, `DB_PASSWORD_PROD` and
`db-password.prod` are the same three words. The last word that speaks of a secret decides how much: a
password can be any text, a token looks like one, and a bare `key` proves nothing until its value looks
random. What stands *after* that word can take it back: `password_hash`, `token_id`, `secret_name` hold no
secret.
"""

import re
from dataclasses import dataclass, replace
from enum import IntEnum

NAME_LENGTH_MAX = 64
"""Longest name looked at on either side of a keyword: bounds the work for one keyword."""


class Strength(IntEnum):
    """How surely a value after this name is a secret."""

    WEAK = 1
    TOKEN = 2
    PASSWORD = 3


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name says: the kind of secret, how surely, and whether it names several at once."""

    kind: str
    strength: Strength
    plural: bool = False
    qualified: bool = False
    """Words of unknown meaning follow the secret's: `PasswordTooShort`, `token_eu`."""
    pass_alone: bool = False
    phrase: bool = False


_WORDS = re.compile(r"[A-Z]{1,64}(?![a-z])|[A-Z]?[a-z]++|[0-9]++|[А-ЯЁ]?[а-яё]++|[А-ЯЁ]++")

KEYWORDS = (
    "pass",
    "pwd",
    "pw",
    "psw",
    "token",
    "secret",
    "key",
    "cred",
    "auth",
    "sess",
    "sid",
    "jwt",
    "otp",
    "sig",
    "code",
    "mnemonic",
    "seed",
    "парол",
    "токен",
    "секрет",
    "ключ",
    "密码",
    "hmac",
)
"""Literals one of which is in every name that matters; found by substring search."""

_PASSWORD_ENDS = (
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "passwort",
    "pwd",
    "pswd",
    "passw",
)
_TOKEN_ENDS = (
    "token",
    "tokens",
    "secret",
    "secrets",
    "apikey",
    "apikeys",
    "secretkey",
    "accesskey",
    "privatekey",
    "authkey",
    "credential",
    "credentials",
    "creds",
    "accountkey",
    "signingkey",
    "apitoken",
    "encryptionkey",
    "masterkey",
    "sharedkey",
)
_SESSION = frozenset({"sessionid", "sessid", "jsessionid", "phpsessid", "sessiontoken", "sessionkey"})
_PASS_WORDS_NOT = frozenset(
    {"bypass", "compass", "trespass", "surpass", "overpass", "encompass", "underpass"}
)
_RUSSIAN = {
    "парол": ("password", Strength.PASSWORD),
    "токен": ("token", Strength.TOKEN),
    "секрет": ("secret", Strength.TOKEN),
}

_SECRET_KEYS = frozenset(
    "api access private secret signing sign encryption encrypt decryption master account shared auth ssh "
    "deploy license licence service storage app application webhook consumer client subscription session "
    "crypto hmac jwt aes rsa admin root server security integration cipher user web function host ingest "
    "write personal доступа апи секретный приватный закрытый".split()
)
_ORDINARY_KEYS = frozenset(
    "public primary foreign partition sort cache idempotency unique composite index row object map dict "
    "hash lookup group routing range json config situation surrogate natural candidate error missing "
    "unknown invalid duplicate unexpected arrow enter hot short translation message websocket known "
    "ordering dedup bucket item metric label tag column field property attribute registry record "
    "document entity node sequence resource compound secondary clustering shard cluster query parameter "
    "env variable top level nested required any no открытый публичный первичный внешний".split()
)
_ORDINARY_AFTER = frozenset(
    "id ids hash hashes hashed type types url urls uri endpoint name names file files filename path "
    "paths dir directory folder count counts counter limit limits length len size sizes error errors "
    "exception expiry expires expire expired expiration ttl age at in policy field fields column columns "
    "required valid validity invalid status state method methods mode format prefix suffix provider "
    "providers helper manager store storage ref refs reference arn version enabled disabled min max "
    "minimum maximum rotation usage used index digest fingerprint algorithm alg request requests "
    "response responses handler class table label description hint hints stdin prompt env variable "
    "present exists changed updated created modified last strength check checker validator validation "
    "encoder encoding decoder parser scope scopes issuer audience kind rate budget cost window stream "
    "position pos offset line number ratio total per lifetime duration date time timestamp year revoked "
    "rotated mount volume template pattern regex rule rules failed failure denied location host port "
    "server service support supported not is was error unauthorized permission permissions group groups "
    "owner info metadata meta details list page title attempts retries mapping map schema "
    "model source ization ize izer ized num mgr fd placeholder to too short long result results "
    "deletions option options timeout".split()
)
_HARMLESS_AFTER = frozenset(
    "prod production dev development staging stage test testing live sandbox value plain b64 new old "
    "current primary secondary backup main db admin root eu us base again confirm confirmation repeat "
    "word phrase code key token secret id bytes data".split()
)
_ORDINARY_BEFORE = frozenset(
    "max min num n total prompt completion input output pad eos bos unk cls sep mask stop special next "
    "previous page continuation cached reasoning remaining unexpected invalid unknown illegal lexer "
    "count per has is no use require requires missing bad".split()
)
_PREFIX_VERBS = frozenset({"is", "has", "use", "show", "require", "requires", "no"})
_URL_SECRETS = frozenset(
    "key code sig signature sid session auth jwt ticket assertion hmac otp authcode accesskey".split()
)


def words_of(name: str) -> list[str]:
    """Split a name into lower-case words at separators, case changes and digits."""
    return [word.lower() for word in _WORDS.findall(name)]


def meaning_of(words: list[str], *, url_query: bool = False) -> Meaning | None:
    """Say what kind of secret a name announces, or None if it announces none."""
    for index in range(len(words) - 1, -1, -1):
        meaning = _meaning_of_word(words, index, url_query)
        if meaning is None:
            continue
        after = words[index + 1 :]
        if meaning.kind == "session" and after[:1] in (["id"], ["key"], ["token"]):
            after = after[1:]
        if any(word in _ORDINARY_AFTER for word in after):
            return None
        before = words[:index]
        if meaning.kind in ("token", "api-key") and any(word in _ORDINARY_BEFORE for word in before):
            return None
        if before and before[0] in _PREFIX_VERBS:
            return None
        if any(word not in _HARMLESS_AFTER and not word.isdigit() for word in after):
            return replace(meaning, qualified=True)
        return meaning
    return None


def _meaning_of_word(words: list[str], index: int, url_query: bool) -> Meaning | None:
    word = words[index]
    before = words[index - 1] if index else ""
    after = words[index + 1] if index + 1 < len(words) else ""
    if word.endswith(_PASSWORD_ENDS) or word in ("pw", "psw", "密码"):
        return Meaning(
            "password", Strength.PASSWORD, plural=word.endswith("s"), phrase=word.endswith("phrase")
        )
    if word.endswith("pass") and word not in _PASS_WORDS_NOT:
        if (word == "pass" and after in ("phrase", "word", "code")) or word != "pass" or before:
            return Meaning("password", Strength.PASSWORD, pass_alone=word == "pass", phrase=after == "phrase")
        return Meaning("password", Strength.TOKEN, pass_alone=True)
    if before == "pass" and word in ("phrase", "word", "code"):
        return Meaning("password", Strength.PASSWORD, phrase=word == "phrase")
    if word in _SESSION or (word in ("session", "sess") and after in ("id", "key", "token")):
        return Meaning("session", Strength.TOKEN)
    if word.endswith(_TOKEN_ENDS):
        kind = "api-key" if word.endswith(("key", "keys")) else "credential" if "cred" in word else word
        kind = {"tokens": "token", "secrets": "secret"}.get(kind, kind)
        kind = kind if kind in ("token", "secret", "credential", "api-key") else _tail_kind(kind)
        return Meaning(kind, Strength.TOKEN, plural=word.endswith("s"))
    for stem, (kind, strength) in _RUSSIAN.items():
        if word.startswith(stem):
            return Meaning(kind, strength)
    if word in ("key", "keys") or (word.startswith("ключ") and len(word) <= 6):
        return _meaning_of_key(words, index, url_query)
    if word in ("auth", "jwt", "otp", "hmac", "mnemonic") or (
        word == "phrase" and before in ("seed", "recovery")
    ):
        phrase = word in ("mnemonic", "phrase")
        return Meaning("password" if phrase else "token", Strength.PASSWORD if phrase else Strength.WEAK)
    if word in ("sid", "session", "signature", "sig", "code") and (
        url_query or word in ("sid", "session", "sig")
    ):
        return Meaning("session" if word in ("sid", "session") else "token", Strength.WEAK)
    if url_query and word in _URL_SECRETS:
        return Meaning("token", Strength.WEAK)
    return None


def _tail_kind(word: str) -> str:
    return "secret" if word.endswith(("secret", "secrets")) else "token"


def _meaning_of_key(words: list[str], index: int, url_query: bool) -> Meaning | None:
    neighbours = words[max(0, index - 2) : index] + words[index + 1 : index + 2]
    if any(word in _ORDINARY_KEYS for word in neighbours):
        return None
    if any(word in _SECRET_KEYS for word in neighbours):
        private = "private" in neighbours
        return Meaning("private-key" if private else "api-key", Strength.TOKEN, plural=words[index] == "keys")
    del url_query
    return Meaning("api-key", Strength.WEAK, plural=words[index] == "keys")
