"""Why a server can't be reached: the reason in one line, and what to do about it."""

from temporality.actors.executor.content import shorten

WHY_CHARACTERS_MAX = 1_500
"""The reason goes into a run's failure, and to the model."""


class NotConnected(Exception):
    """No request could be sent: `why`, and what to `do`. The tool did not run."""

    def __init__(self, why: str, do: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.do = do

    def with_words(self, words: str) -> "NotConnected":
        """Return the same with what the transport knows of the server's end."""
        why = "; ".join(part for part in (self.why, words) if part) or "the connection was closed"
        return NotConnected(shorten(why, WHY_CHARACTERS_MAX), self.do)
