"""Words of Russian, English and code, reduced to the terms by which texts are compared.

One analysis serves items, requests and skills, so that a word form matches wherever it stands. Pure: no I/O,
no state but memos of pure functions. `ANALYSIS_VERSION` changes whenever a text may give other terms, since
an index holds the terms of the version that wrote it.
"""

from temporality.actors.language.stemming import stem
from temporality.actors.language.stopwords import STOP_WORDS
from temporality.actors.language.words import ANALYSIS_VERSION, terms

__all__ = ["ANALYSIS_VERSION", "STOP_WORDS", "stem", "terms"]
