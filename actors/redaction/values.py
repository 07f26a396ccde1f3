"""Whether what stands after a secret's name is a secret, or only talk about one.

`password: hunter2` and `password: required` differ in the value alone, and so do `token = a8F…` and
`token = next_token()`. A value is kept when it is a placeholder, a type, a word that reports a state, a
reference to another name, or code that fetches the secret. Everything else after a strong name goes, however
short; after a weak name only what looks random.
"""

from dataclasses import dataclass
from enum import Enum

from temporality.actors.redaction import shapes
from temporality.actors.redaction.finding import MARK
from temporality.actors.redaction.names import Meaning, Strength, meaning_of, words_of
from temporality.actors.redaction.shapes import JUDGED_LENGTH_MAX, digits_in, is_identifier, is_token_like
from temporality.actors.redaction.vocabulary import (
    CODE_WORDS,
    PROSE_WORDS,
    SHORT_WORDS,
    STATE_WORDS,
    VALIDATION_WORDS,
)


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


def is_secret(value: str, context: Context) -> bool:
    """Say whether `value` is to be redacted in `context`."""
    meaning = context.meaning
    if len(value) > JUDGED_LENGTH_MAX:
        return meaning.strength is not Strength.WEAK or shapes.TOKEN_SHAPE.fullmatch(value) is not None
    stripped = value.strip()
    if not stripped or MARK.fullmatch(stripped) or shapes.is_placeholder(stripped):
        return False
    if _says_a_state(stripped, context) or _is_reference(stripped, context):
        return False
    if context.link is Link.SPACE:
        return meaning.strength is not Strength.WEAK and _is_unmistakable(stripped, context)
    if meaning.strength is Strength.WEAK:
        return _looks_random(stripped, context)
    if meaning.plural and stripped.replace(",", "").replace(".", "").isdigit() and len(stripped) < 12:
        return False
    if meaning.pass_alone and not context.quoted and not context.upper:
        if stripped.lstrip("-").isdigit() and len(stripped) < 5:
            return False
        if context.link is not Link.ASSIGNED:
            return is_token_like(stripped)
    if meaning.strength is Strength.TOKEN:
        return _is_token(stripped, context)
    return _is_password(stripped, context)


def _is_password(value: str, context: Context) -> bool:
    """Say whether a value after a password's name is one: anything is, if the tie is sure."""
    loose = context.link is Link.PROSE or (context.meaning.qualified and context.link is Link.COLON)
    if not loose:
        return True
    if context.quoted:
        return context.link is not Link.PROSE or not _names_a_secret(value)
    return is_token_like(value)


def _is_token(value: str, context: Context) -> bool:
    """Say whether a value after a token's or secret's name is one."""
    quoted = context.quoted and context.link is not Link.PROSE
    if context.meaning.kind == "session" and value.isdigit() and len(value) < 6:
        return False
    if context.link is Link.ASSIGNED or quoted:
        return quoted or not (context.meaning.plural and value.isalpha())
    if _names_a_secret(value) or (not context.upper and is_identifier(value)):
        return False
    if value.isalpha() and value.isupper() and len(value) <= 10:
        return False
    if context.link is Link.SPACED:
        return not (value.isalpha() and len(value) < 16) and not (value.isdigit() and len(value) < 6)
    return is_token_like(value)


def _names_a_secret(value: str) -> bool:
    return not digits_in(value) and meaning_of(words_of(value)) is not None


def _says_a_state(value: str, context: Context) -> bool:
    """Say whether a value is a type, a state, or the begin of a sentence about the name."""
    lower = value.lower().rstrip(".!;:")
    sure = context.link is Link.ASSIGNED
    if lower in CODE_WORDS:
        return not (context.upper and sure and lower in ("default", "input"))
    if lower in STATE_WORDS and (not sure or len(lower) >= 5):
        return True
    if not sure and lower in SHORT_WORDS:
        return True
    if " " in value and (context.quoted or not sure):
        return _is_sentence(value, context)
    if context.quoted or context.link not in (Link.COLON, Link.PROSE) or not shapes.LETTERS.fullmatch(value):
        return False
    # A word in a sentence: "password: field is required", "secret: Permission denied".
    following = context.following.lower().replace(",", " ").replace(".", " ").split()
    return speaks(following) or any(word in STATE_WORDS for word in following)


def _is_sentence(value: str, context: Context) -> bool:
    words = value.lower().replace(".", " ").replace(",", " ").split()
    spoken = sum(word in PROSE_WORDS for word in words)
    if context.link is Link.ASSIGNED or context.meaning.phrase:
        return spoken >= 1 and any(word in VALIDATION_WORDS for word in words)
    return spoken >= 2 or (spoken == 1 and (len(words) <= 3 or words[0] in PROSE_WORDS | STATE_WORDS))


def _is_reference(value: str, context: Context) -> bool:
    """Say whether the value names where the secret is, instead of being it."""
    if value.startswith(("--", " -")) or shapes.is_path_or_url(value):
        return True
    if shapes.NUMBER.fullmatch(value) and context.meaning.kind != "password":
        return True
    lower = value.lower()
    if len(value) >= 4 and lower == context.name:
        return True
    if context.quoted:
        return False
    if context.name.rpartition("_")[2].rpartition(".")[2] == lower or shapes.is_dotted_reference(value):
        return True
    sure = context.link is Link.ASSIGNED
    if digits_in(value) or not value.replace("_", "").isalnum() or (sure and context.upper):
        return False
    words = words_of(value)
    if meaning_of(words) is not None or words[-1:] in (["key"], ["pass"]):
        return len(words) > 1 or not sure or words in (["password"], ["token"])
    if context.unpacked and value.isidentifier():
        return True
    return context.link is Link.SPACED and "_" in value and value == value.lower()


def _is_unmistakable(value: str, context: Context) -> bool:
    """Say whether a value can be told from a word without any separator before it."""
    digits = digits_in(value)
    password = context.meaning.strength is Strength.PASSWORD
    if not is_token_like(value) or shapes.ALGORITHM.fullmatch(value):
        return False
    if password and context.quoted and len(value) >= 6:
        return True
    if not digits or digits == len(value) or any(char in "/\\()<>:" for char in value):
        return False
    if value.startswith("-"):
        return False
    mixed = value != value.lower() and value != value.upper()
    return len(value) >= (8 if password else 10) and (mixed or digits >= 3)


def _looks_random(value: str, context: Context) -> bool:
    """Say whether a value looks random enough to be a secret after a name that proves little."""
    if shapes.DIGEST.fullmatch(value) or shapes.DATED.match(value):
        return False
    digits = digits_in(value)
    letters = sum(char.isalpha() for char in value)
    if context.query:
        return (len(value) >= 6 and digits > 0 and letters > 0) or digits >= 6 or len(value) >= 16
    if shapes.UUID.fullmatch(value):
        return False
    if shapes.HEX.fullmatch(value):
        return (context.upper or context.meaning.kind in ("token", "session")) and len(value) >= 16
    if not shapes.TOKEN_SHAPE.fullmatch(value) or ":" in value or value.count("/") > 3:
        return False
    if shapes.is_words(value):
        return False
    return digits >= 2 and letters >= 4 and (value != value.lower() or len(value) >= 20)


def speaks(words: list[str]) -> bool:
    """Say whether one of these lower-case words belongs to a sentence, and hardly to a pass phrase."""
    return any(word in PROSE_WORDS or word in SHORT_WORDS for word in words)
