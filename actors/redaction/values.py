"""Whether what stands after a secret's name is a secret, or only talk about one.

`password: hunter2` and `password: required` differ in the value alone, and so do `token = a8F…` and
`token = next_token()`. A value is kept when it is a placeholder, a type, a word that reports a state, a
reference to another name, or code that fetches the secret. Everything else after a strong name goes, however
short; after a weak name only what looks random.
"""

import re
from dataclasses import dataclass
from enum import Enum

from temporality.actors.redaction.finding import MARK
from temporality.actors.redaction.names import Meaning, Strength, meaning_of, words_of

JUDGED_LENGTH_MAX = 256
"""A longer value is judged by its length: no word, type or reference is that long."""


class Link(Enum):
    """How a value is tied to its name, from the surest to the loosest."""

    ASSIGNED = "assigned"  # NAME=value, "name": "value", --name value, <name>value</name>
    SPACED = "spaced"  # name = value
    COLON = "colon"  # name: value
    PROSE = "prose"  # the name is value; name — value
    SPACE = "space"  # name value: nothing but the value's shape speaks for it


@dataclass(frozen=True, slots=True)
class Context:
    """What is known about a value before looking at it."""

    meaning: Meaning
    link: Link
    quoted: bool
    upper: bool = False
    query: bool = False
    following: str = ""
    name: str = ""
    unpacked: bool = False


_PLACEHOLDER = re.compile(
    r"""(?ix)
    [*•·.#_\-?!xX×]++
    | [^\s*]{0,8}+\*{3,}+[^\s*]{0,8}+
    | \$\{[^}]*+\}?[^\s]{0,8}+ | \$\([^)]*+\)?\S*+ | \$[a-z_.:>\-]*+(?:\[.*+)?
    | %[a-z_]\w*+%? | %\([a-z_]*+\)s | \{\{.*+ | \{[a-z_][\w.\[\]'"!:()]*+\}? | \{\} | <[^<>]*+>? | \[[a-z _\-]*+\]?
    | @\w++@ | \#\{.*+ | :[a-z_]++ | &?lt;.*+ | !\w++ | !{1,2}\w++\ .*+
    | (?:op|vault|env|file|ssm|secretsmanager)(?:://|:)[\w./\-]++
    | (?:your|insert|enter|put|replace|example|sample|placeholder|redacted|masked|hidden|removed|filtered|todo|my)
      (?:[-_. ][a-z_. \-]*+)?
    | \(?(?:redacted|hidden|masked|filtered|none|null|unset|not\ set|empty|sensitive(?:\ value)?)\)?
    """
)
_CODE_WORDS = frozenset(
    "none null nil undefined true false str string int integer text varchar bytes byte bool boolean number float "
    "double object array any void char uuid unknown optional secretstr self cls this const let var await new "
    "return input getpass function lambda default noop nan char16 blob json list dict map set tuple".split()
)
_STATE_WORDS = frozenset(
    "required optional missing invalid valid expired revoked empty blank unset incorrect wrong mismatch mismatched "
    "failed failure fails success succeeded denied forbidden unauthorized rejected accepted expected unexpected "
    "found enabled disabled default changed updated generated created deleted loaded saved provided present absent "
    "hidden redacted masked prompt stdin environment keyring inherit include omit same-origin none-set must should "
    "cannot please enter field error syntax unterminated unsupported deprecated authentication authorization "
    "authenticated permission contains identifier keyword literal operator string number eof newline whitespace "
    "неверный неверен неправильный обязателен обязательно обязательное отсутствует истёк истек просрочен "
    "недействителен указан введите строка пуст пустой должен должна нужен устарел отозван изменён изменен сброшен "
    "option options flags argument arguments parameter parameters placeholder "
    "basic bearer digest ntlm oauth oauth2 kerberos saml ldap plain scram-sha-256 md5 trust peer oidc".split()
)
_SHORT_WORDS = frozenset(
    "is are was were be been has have had not no yes on off ok a an the this that these it in at for from of to "
    "with by and or if as so but you your we i its bad too got set see use via per non let does did do can may "
    "will all any both only ждёт не нет да и или в на с к по для от при если то это был была как уже".split()
)
_PROSE = frozenset(
    "must required invalid field should cannot can't please missing blank characters incorrect expired doesn't "
    "didn't mismatch wrong is not are was be the for to does did or at least with your you least too been "
    "должен обязательно символов поле не нужно введите быть".split()
)
_CALL = re.compile(
    r"(?:await |new |[!&*]{0,2})[A-Za-z_$][A-Za-z0-9_$]{0,40}+(?:(?:\.|::|->|\?\.)[A-Za-z_$][A-Za-z0-9_$]{0,40}+){0,6}+[!?]?[(\[]"
)
_REFERENCE = re.compile(r"[&*$@]?[A-Za-z_][A-Za-z_0-9]*+(?:(?:\.|::|->|\?\.)[A-Za-z_][A-Za-z_0-9]*+)++;?")
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:|\$\w++)?[/\\](?:[\w.@+\- ]{0,30}+[/\\]){0,12}+[\w.@+\-]{0,30}+")
_URL = re.compile(r"[a-z][a-z0-9+.\-]{1,15}://[^\s@]*+")
_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,16}")
_LETTER_RUNS = re.compile(r"[A-Za-z]++")
_VOWEL = re.compile(r"[aeiouy]")
_CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]{5}")
_TOKEN_SHAPE = re.compile(r"[A-Za-z0-9_\-+/=.~:%]{16,}+")
_LETTERS = re.compile(r"[A-Za-zА-Яа-яЁё'\u2019\-]++")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-f]{7,}+|[0-9A-F]{7,}+")
_DIGEST = re.compile(r"(?:sha(?:1|224|256|384|512)|md5|blake2b|blake3)[-:=]\S{8,}+|W/.*+")
_DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.+\-Z]*+)?")


def is_secret(value: str, context: Context) -> bool:
    """Say whether `value` is to be redacted in `context`."""
    if len(value) > JUDGED_LENGTH_MAX:
        return context.meaning.strength is not Strength.WEAK or _TOKEN_SHAPE.fullmatch(value) is not None
    stripped = value.strip()
    if not stripped or MARK.fullmatch(stripped) or _PLACEHOLDER.fullmatch(stripped):
        return False
    if _says_a_state(stripped, context) or _is_reference(stripped, context):
        return False
    strength = context.meaning.strength
    if context.link is Link.SPACE:
        return strength is not Strength.WEAK and _is_unmistakable(stripped, context)
    if strength is Strength.WEAK:
        return _looks_random(stripped, context)
    if context.meaning.plural and stripped.replace(",", "").replace(".", "").isdigit() and len(stripped) < 12:
        return False
    if context.meaning.pass_alone and not context.quoted and not context.upper:
        if stripped.lstrip("-").isdigit() and len(stripped) < 5:
            return False
        if context.link is not Link.ASSIGNED:
            return _is_token_like(stripped)
    if context.meaning.qualified and context.link in (Link.COLON, Link.PROSE) and not context.quoted:
        return _is_token_like(stripped)
    if (
        context.link is Link.PROSE
        and context.quoted
        and meaning_of(words_of(stripped))
        and not _digits(stripped)
    ):
        return False
    named = strength is Strength.TOKEN and not context.upper and context.link is not Link.ASSIGNED
    if named and _is_identifier(stripped):
        return context.quoted and context.link is not Link.PROSE
    if strength is Strength.TOKEN:
        return _is_token(stripped, context)
    if context.link is Link.PROSE and not context.quoted:
        return _is_token_like(stripped)
    return True


def _says_a_state(value: str, context: Context) -> bool:
    lower = value.lower().rstrip(".!;:")
    if lower in _CODE_WORDS and not (
        context.upper and context.link is Link.ASSIGNED and lower in ("default", "input")
    ):
        return True
    sure = context.link is Link.ASSIGNED
    if lower in _STATE_WORDS and (not sure or len(lower) >= 5):
        return True
    if not sure and lower in _SHORT_WORDS:
        return True
    if " " in value and (context.quoted or context.link is not Link.ASSIGNED):
        words = value.lower().replace(".", " ").replace(",", " ").split()
        spoken = sum(word in _PROSE for word in words)
        return spoken >= 2 or (
            spoken == 1 and (len(words) <= 3 or words[0] in _PROSE or words[0] in _STATE_WORDS)
        )
    if context.quoted or not context.following:
        return False
    if context.link in (Link.COLON, Link.PROSE) and _LETTERS.fullmatch(value):
        # A word in a sentence: "password: field is required", "secret: Permission denied".
        following = context.following.lower().replace(",", " ").replace(".", " ").split()
        spoken_after = [
            word for word in following if word in _PROSE or word in _SHORT_WORDS or word in _STATE_WORDS
        ]
        return bool(spoken_after)
    return False


def _is_reference(value: str, context: Context) -> bool:
    """Say whether the value names where the secret is, instead of being it."""
    sure = context.link is Link.ASSIGNED and (context.upper or context.quoted)
    if value.startswith(("--", " -")) or (not context.quoted and value.lower() == context.name):
        return True
    if context.unpacked and not context.quoted and value.isidentifier() and not _digits(value):
        return True
    if (
        context.meaning.kind == "password"
        and context.upper is False
        and value.startswith("$")
        and "{" in value[:2]
    ):
        return True
    if _PATH.fullmatch(value) and not _is_token_like_segment(value):
        return True
    if _URL.fullmatch(value) or (_NUMBER.fullmatch(value) and context.meaning.kind != "password"):
        return True
    if context.quoted:
        return value.lower() in ("password", "token", "secret") and context.link is not Link.ASSIGNED
    if _REFERENCE.fullmatch(value) and not _has_random_part(value):
        return True
    if not value.replace("_", "").isalnum() or sure:
        return False
    if any(char.isdigit() for char in value):
        return False
    words = words_of(value)
    names_a_secret = meaning_of(words) is not None or words[-1:] in (["key"], ["pass"])
    if names_a_secret and (
        len(words) > 1 or context.link is not Link.ASSIGNED or words == ["password"] or words == ["token"]
    ):
        return True
    return context.link is Link.SPACED and "_" in value and value == value.lower()


def _has_random_part(value: str) -> bool:
    for part in re.split(r"\.|::|->", value):
        if _is_identifier(part):
            continue
        if len(part) > 32 or _digits(part) >= 3 or (len(part) >= 6 and _digits(part) and not part.islower()):
            return True
    return False


def _is_identifier(value: str) -> bool:
    """Say whether a value is put together of words, as the names of types and functions are."""
    if not value.replace("_", "").replace(".", "").isalnum() or (value.isalnum() and value == value.lower()):
        return False
    runs = _LETTER_RUNS.findall(value)
    words = [word for run in runs for word in words_of(run)]
    if len(words) < 2 or len(runs) > 1 + value.count("_") + value.count(".") + 2:
        return False
    long = [word for word in words if len(word) >= 3]
    if len(long) < len(words) - 1 or sum(map(len, words)) < 4 * len(words):
        return False
    return all(_VOWEL.search(word) and not _CONSONANTS.search(word) for word in long)


def _is_token_like_segment(value: str) -> bool:
    """Say whether one part of what looks like a path is random: base64 has slashes too."""
    for part in re.split(r"[/\\.]", value):
        digits = _digits(part)
        if len(part) >= 20 and digits >= 2:
            return True
        if len(part) >= 5 and digits and any(char.isupper() for char in part):
            return True
    return False


def _digits(value: str) -> int:
    return sum(char.isdigit() for char in value)


def _is_token(value: str, context: Context) -> bool:
    """Say whether a value after a token's or secret's name is one."""
    if context.meaning.kind == "session" and value.isdigit() and len(value) < 6:
        return False
    if (
        _LETTERS.fullmatch(value)
        and value.isupper()
        and len(value) <= 10
        and context.link is not Link.ASSIGNED
    ):
        return False
    if context.link is Link.ASSIGNED or (context.quoted and context.link is not Link.PROSE):
        return not (context.meaning.plural and value.isalpha() and not context.quoted)
    if context.link is Link.SPACED:
        return not (value.isalpha() and len(value) < 16) and not (value.isdigit() and len(value) < 6)
    return _is_token_like(value)


_ALGORITHM = re.compile(
    r"(?:sha|md|aes|rsa|base|utf|oauth|pbkdf|argon|scram|x|http|ed|hmac|bcrypt|ec|h|tls|v|rs|hs|es)[\-_]?(?:sha)?[\-_]?"
    r"[0-9][0-9\-_.]{0,6}[a-z]{0,4}",
    re.IGNORECASE,
)


def _is_unmistakable(value: str, context: Context) -> bool:
    """Say whether a value can be told from a word without any separator before it."""
    digits = _digits(value)
    if not _is_token_like(value) or not digits or digits == len(value) or _ALGORITHM.fullmatch(value):
        return False
    if any(char in "/\\()<>:" for char in value) or value.startswith("-"):
        return False
    least = 8 if context.meaning.strength is Strength.PASSWORD else 10
    mixed = value != value.lower() and value != value.upper()
    return len(value) >= least and (mixed or digits >= 3) or context.quoted and least == 8 and len(value) >= 6


def _is_token_like(value: str) -> bool:
    """Say whether a bare value in running text looks like a secret: digits among letters, or too long for a word."""
    if _DATED.fullmatch(value):
        return False
    digits = _digits(value)
    if digits == len(value):
        return digits >= 6
    letters = sum(char.isalpha() for char in value)
    if digits and letters:
        return len(value) >= 6 or len(value) >= 4 and any(not char.isalnum() for char in value)
    inner = value[1:-1]
    if any(char in "!@#$%^&*+=~?" for char in inner) and len(value) >= 5:
        return True
    mixed = value != value.lower() and value[1:] != value[1:].lower() and value != value.upper()
    return len(value) >= 24 or mixed and len(value) >= 12


def _looks_random(value: str, context: Context) -> bool:
    """Say whether a value looks random enough to be a secret after a name that proves little."""
    if _DIGEST.fullmatch(value) or _DATED.match(value):
        return False
    digits = _digits(value)
    letters = sum(char.isalpha() for char in value)
    if context.query:
        return len(value) >= 6 and bool(digits) and bool(letters) or digits >= 6 or len(value) >= 16
    if _UUID.fullmatch(value):
        return False
    if _HEX.fullmatch(value):
        return (context.upper or context.meaning.kind in ("token", "session")) and len(value) >= 16
    if not _TOKEN_SHAPE.fullmatch(value) or "://" in value or value.count("/") > 3 or value.count(":") > 0:
        return False
    parts = [part for part in re.split(r"[.\-_/]", value) if part]
    wordlike = sum(part.isalpha() or part.isdigit() for part in parts)
    if len(parts) > 1 and wordlike == len(parts) and max(map(len, parts)) < 16:
        return False
    return digits >= 2 and letters >= 4 and (value != value.lower() or len(value) >= 20)


def speaks(words: list[str]) -> bool:
    """Say whether one of these lower-case words belongs to a sentence, and hardly to a pass phrase."""
    return any(word in _PROSE or word in _SHORT_WORDS for word in words)


def is_call(text: str, position: int) -> bool:
    """Say whether code that computes the value begins at `position`: a call or a subscript."""
    found = _CALL.match(text, position, position + JUDGED_LENGTH_MAX)
    if found is None:
        return False
    closing = ")" if found[0].endswith("(") else "]"
    line_end = text.find("\n", position)
    end = text.find(closing, found.end(), line_end if line_end >= 0 else position + JUDGED_LENGTH_MAX)
    if end < 0:
        return closing == ")" and (line_end == found.end() or found.end() == len(text))
    after = text[end + 1 : end + 2]
    return after == "" or not (after.isalnum() or after in "!@#%^*_+~-")
