"""Text to terms: the units by which items, requests and skills are compared.

A term is a stem, a part of an identifier (`getUserById` → get, user, id), the whole of an identifier written
as one word (`getuserbyid`), or a command's flag (`--no-verify`, besides its words). Underscores, dots,
slashes and hyphens separate, so paths and `db_path` fall into their words; whoever compares neighbours sees
that they stood together. Letters are compared without case, width and the dots of ё.

Long runs of letters and digits are hashes, keys and encoded blobs, and long numbers are ids and times:
neither is ever met again, so they are not terms.
"""

import re
import unicodedata
from collections.abc import Iterator

from temporality.actors.language.stemming import stem
from temporality.actors.language.stopwords import STOP_WORDS

ANALYSIS_VERSION = "1"
WORD_LENGTH_MAX = 40
"""Longer words are blobs; the longest identifiers of real programs are about this long."""
SEGMENTS_WITH_DIGITS_MAX = 6
"""A word that changes between letters and digits more often is a hash or a key; `sha256sum` does not."""
NUMBER_LENGTH_MAX = 5
"""Longer numbers are ids, sizes and times; ports, statuses and error numbers are shorter."""

_TOKEN = re.compile(r"(?<![\w-])--?[^\W\d_][\w-]*|[^\W_]+")
_PART = re.compile(
    r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[А-ЯЁ]+(?=[А-ЯЁ][а-яё])|[А-ЯЁ]?[а-яё]+|[А-ЯЁ]+|\d+|[^\W\dA-Za-zА-Яа-яЁё_]+"
)
_DIGIT = re.compile(r"\d")
_HYPHENS = re.compile(r"[-_]+")


def terms(text: str) -> tuple[str, ...]:
    """Return the terms of `text` in reading order, with repeats; linear in the length of the text (A19)."""
    return tuple(_terms(unicodedata.normalize("NFKC", text)))


def _terms(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token[0] == "-":
            yield token
            for word in _HYPHENS.split(token):
                if len(word) > 1:
                    yield from _word(word)
            continue
        parts = _PART.findall(token)
        if len(parts) > SEGMENTS_WITH_DIGITS_MAX and _DIGIT.search(token):
            continue
        yield from _word(token)
        if len(parts) > 1:
            for part in parts:
                if len(part) > 1:
                    yield from _word(part)


def _word(word: str) -> Iterator[str]:
    lowered = word.lower().replace("ё", "е")
    if len(lowered) > WORD_LENGTH_MAX or lowered in STOP_WORDS:
        return
    if lowered.isdigit():
        if len(lowered) <= NUMBER_LENGTH_MAX:
            yield lowered
        return
    yield stem(lowered)
