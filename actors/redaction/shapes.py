"""What a value looks like, whatever its name: placeholder, path, identifier, code, or nothing of these."""

import re

from temporality.actors.redaction.names import words_of

JUDGED_LENGTH_MAX = 256
"""A longer value is judged by its length: no word, type or reference is that long."""

PLACEHOLDER = re.compile(
    r"""(?ix)
    [*•·.#_\-?!xX×]++
    | [^\s*]{0,8}+\*{3,}+[^\s*]{0,8}+
    | \$\{[^}]*+\}?[^\s]{0,8}+ | \$\([^)]*+\)?\S*+
    | (?-i:\$(?:[A-Z_][A-Z0-9_]*+|[a-z][a-z_]*+[A-Z]?[a-z]*+(?:(?:->|\.|::|:)\w*+)?)(?:\[.*+)?) | \$
    | %[a-z_]{2,64}% | %[sdrqv] | %\([a-z_]*+\)s | \{\{.*+ | \{[a-z_][\w.\[\]'"!:()]*+\}? | \{\}
    | <[^<>]*+> | \[[a-z _\-]*+\]?
    | @\w++@ | \#\{.*+ | :[a-z_]++ | &?lt;.*+
    | !{1,2}(?:secret|ref|sub|getatt|env|vault|include|importvalue|reference|encrypted)\b.*+
    | (?:op|vault|env|file|ssm|secretsmanager)(?:://|:)[\w./\-]++
    | (?:your|insert|enter|put|replace|example|sample|placeholder|redacted|masked|hidden|removed
        |filtered|todo|my)
      (?:[-_. ][a-z_. \-]*+)?
    | \(?(?:redacted|hidden|masked|filtered|none|null|unset|not\ set|empty|sensitive(?:\ value)?)\)?
    """
)
_CALL = re.compile(
    r"(?:await |new |[!&*]{0,2})[A-Za-z_$][A-Za-z0-9_$]{0,40}+"
    r"(?:(?:\.|::|->|\?\.)[A-Za-z_$][A-Za-z0-9_$]{0,40}+){0,6}+[!?]?[(\[]"
)
REFERENCE = re.compile(r"[&*$@]?[A-Za-z_][A-Za-z_0-9]*+(?:(?:\.|::|->|\?\.)[A-Za-z_][A-Za-z_0-9]*+)++;?")
PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:|\$\w++)?[/\\](?:[\w.@+\- ]{0,30}+[/\\]){0,12}+[\w.@+\-]{0,30}+")
URL = re.compile(r"[a-z][a-z0-9+.\-]{1,15}://[^\s@]*+")
_MEMBER_NAME = re.compile(
    r"[a-z_]++[0-9]{0,2}|_*+[A-Z]{2}[A-Z_]*+|[A-Z]?[a-z_]{2,}+(?:[A-Z][a-z_]{2,}+){0,4}+"
)
NUMBER = re.compile(r"0x[0-9a-fA-F]{1,16}")
_LETTER_RUNS = re.compile(r"[A-Za-z]++")
_VOWEL = re.compile(r"[aeiouy]")
_CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]{5}")
TOKEN_SHAPE = re.compile(r"[A-Za-z0-9_\-+/=.~:%]{16,}+")
LETTERS = re.compile(r"[A-Za-zА-Яа-яЁё'\u2019\-]++")
UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
HEX = re.compile(r"[0-9a-f]{7,}+|[0-9A-F]{7,}+")
DIGEST = re.compile(r"(?:sha(?:1|224|256|384|512)|md5|blake2b|blake3)[-:=]\S{8,}+|W/.*+")
DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.+\-Z]*+)?")

ALGORITHM = re.compile(
    r"(?:sha|md|aes|rsa|base|utf|oauth|pbkdf|argon|scram|x|http|ed|hmac|bcrypt|ec|h|tls|v|rs|hs|es)[\-_]?(?:sha)?[\-_]?"
    r"[0-9][0-9\-_.]{0,6}[a-z]{0,4}",
    re.IGNORECASE,
)


def is_placeholder(value: str) -> bool:
    """Say whether a value only stands for one: `${TOKEN}`, `<your-token>`, `****`."""
    return PLACEHOLDER.fullmatch(value) is not None


def is_path_or_url(value: str) -> bool:
    """Say whether a value is a path or a URL, and no base64 with slashes."""
    return (PATH.fullmatch(value) is not None and not _is_token_like_segment(value)) or (
        URL.fullmatch(value) is not None
    )


def is_dotted_reference(value: str) -> bool:
    """Say whether a value names a member of something: `settings.DB_PASSWORD`, `self.token`."""
    if REFERENCE.fullmatch(value) is None:
        return False
    return all(_is_member_name(part) for part in re.split(r"\.|::|->|\?\.", value.lstrip("&*$@").rstrip(";")))


def _is_member_name(part: str) -> bool:
    if is_identifier(part):
        return True
    if not _MEMBER_NAME.fullmatch(part):
        return False
    return len(part) <= 2 or _VOWEL.search(part.lower()) is not None or part.islower()


def is_identifier(value: str) -> bool:
    """Say whether a value is put together of words, as the names of types and functions are."""
    if not value.replace("_", "").replace(".", "").isalnum() or (value.isalnum() and value == value.lower()):
        return False
    runs = _LETTER_RUNS.findall(value)
    words = [word for run in runs for word in words_of(run)]
    if (
        len(words) < 2
        or (len(value) < 12 and digits_in(value))
        or len(runs) > 1 + value.count("_") + value.count(".") + 2
    ):
        return False
    long = [word for word in words if len(word) >= 3]
    if len(long) < len(words) - 1 or sum(map(len, words)) < 4 * len(words):
        return False
    return all(_VOWEL.search(word) and not _CONSONANTS.search(word) for word in long)


def _is_token_like_segment(value: str) -> bool:
    """Say whether one part of what looks like a path is random: base64 has slashes too."""
    for part in re.split(r"[/\\.]", value):
        digits = digits_in(part)
        if len(part) >= 20 and digits >= 2:
            return True
        if len(part) >= 5 and digits and any(char.isupper() for char in part):
            return True
    return False


def digits_in(value: str) -> int:
    """Count the digits of a value."""
    return sum(char.isdigit() for char in value)


def is_token_like(value: str) -> bool:
    """Say whether a bare value looks like a secret: digits among letters, or too long for a word."""
    if DATED.fullmatch(value):
        return False
    digits = digits_in(value)
    if digits == len(value):
        return digits >= 6
    letters = sum(char.isalpha() for char in value)
    if digits and letters:
        return len(value) >= 6 or (len(value) >= 4 and any(not char.isalnum() for char in value))
    inner = value[1:-1]
    if any(char in "!@#$%^&*+=~?" for char in inner) and len(value) >= 5:
        return True
    mixed = value != value.lower() and value[1:] != value[1:].lower() and value != value.upper()
    return len(value) >= 24 or (mixed and len(value) >= 12)


def is_words(value: str) -> bool:
    """Say whether a value consists of short words and numbers: `users-42`, `eu.west.1`."""
    parts = [part for part in re.split(r"[.\-_/]", value) if part]
    if len(parts) < 2 or max(map(len, parts)) >= 16:
        return False
    return all(part.isalpha() or part.isdigit() for part in parts)


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
