"""How many tokens a text takes, estimated without a tokenizer.

A tokenizer is large, belongs to one model family and must be right for a model we don't know. A budget needs
less: a figure that is rarely too low. Texts differ mostly by script, so characters are counted by class (runs
of Latin letters are cheap, CJK characters cost over one token each), and a safety factor covers the rest.
A figure that is too high only leaves a little of a budget unused.
"""

import math
import re

SAFETY_FACTOR = 1.15
"""Margin over the estimate: mixed text (paths, flags, code) tokenizes worse than prose."""

_PIECES = re.compile(
    r"(?P<word>[A-Z]?[a-z]+)|(?P<capitals>[A-Z]+)|(?P<digits>[0-9]+)|(?P<space>\s+)|(?P<latin>[\u00c0-\u024f]+)"
    r"|(?P<cyrillic>[\u0370-\u052f]+)|(?P<cjk>[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+)|(?P<other>.)",
    re.DOTALL,
)

_CHARACTERS_PER_TOKEN = {
    "word": 5.0,
    "capitals": 2.5,
    "digits": 1.1,
    "latin": 2.0,
    "cyrillic": 2.1,
    "cjk": 0.8,
}
"""Chosen so that the tokenizers measured in `bench/tokens.py` rarely need more: some take each digit as a
token, older ones cut Russian words to pieces. A change of case ends a word: random letters count as many."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of `text`; at least one for a text that isn't empty, linear in its length."""
    tokens = 0.0
    for piece in _PIECES.finditer(text):
        kind = piece.lastgroup or "other"
        length = piece.end() - piece.start()
        if kind == "space":
            # One space joins the word after it; newlines and indentation cost something.
            tokens += 0.0 if length == 1 else 1.0
        elif kind == "other":
            tokens += 1.0 if piece.group().isascii() else 2.0
        else:
            tokens += max(1.0, length / _CHARACTERS_PER_TOKEN[kind])
    return math.ceil(tokens * SAFETY_FACTOR)
