"""Word forms to stems, by Snowball: Russian for words with Cyrillic letters, English for all others."""

import re
from functools import lru_cache
from importlib import import_module
from threading import Lock
from typing import Any

STEMS_REMEMBERED_MAX = 65_536
"""Words whose stems are kept: a working vocabulary, some megabytes."""

_CYRILLIC = re.compile("[а-яё]")
# The pure Python stemmer keeps its place in itself, so two threads must not use one at once.
_lock = Lock()


@lru_cache(maxsize=1)
def _stemmers() -> tuple[Any, Any]:
    try:
        in_c: Any = import_module("Stemmer")
        return in_c.Stemmer("russian", 0), in_c.Stemmer("english", 0)
    except ImportError:
        in_python: Any = import_module("snowballstemmer")
        return in_python.stemmer("russian"), in_python.stemmer("english")


@lru_cache(maxsize=STEMS_REMEMBERED_MAX)
def stem(word: str) -> str:
    """Return the stem of one lower-case word; may be called from any thread (A19)."""
    russian, english = _stemmers()
    stemmer = russian if _CYRILLIC.search(word) else english
    with _lock:
        stemmed: str = stemmer.stemWord(word)
    return stemmed
