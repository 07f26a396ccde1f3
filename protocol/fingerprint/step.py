"""One step of the fingerprint: what it replaces, why, and an example that tests and documentation share."""

import re
from collections.abc import Callable
from typing import NamedTuple

TOKEN = r"\w.+@~#$%*&/|\\\-"
"""Inside of a character class: all that may stand within one identifier, number, address or path."""


class Step(NamedTuple):
    """Replace every match of `pattern`; skip the search when none of `needs` is in the text at all."""

    name: str
    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str]
    why: str
    before: str
    after: str
    needs: tuple[str, ...] = ()

    def apply(self, text: str) -> str:
        """Return `text` after this step; linear in its length."""
        if self.needs and not any(need in text for need in self.needs):
            return text
        return self.pattern.sub(self.replacement, text)
