"""The only memory of a scripted model: which requests its rules have failed already (`fail: {times: n}`)."""

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final

from temporality.actors.model.player import Played
from temporality.actors.model.script import Failure, Script

REQUESTS_MAX: Final = 1_024
"""Requests remembered, the latest ones: a request that fails is repeated soon or never."""


class FailedRequests:
    """Count failures by the messages of the request, as a repeat has the same ones."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, Counter[str]] = OrderedDict()

    def of(self, key: str) -> Mapping[str, int]:
        """Return how often each rule has failed this request."""
        return self._counts.get(key, {})

    def record(self, key: str, played: Played) -> None:
        """Remember what was answered, if it is a failure."""
        if not isinstance(played.answer, Failure):
            return
        self._counts.setdefault(key, Counter())[played.rule] += 1
        self._counts.move_to_end(key)
        while len(self._counts) > REQUESTS_MAX:
            self._counts.popitem(last=False)


def request_key(script: Script, messages: Iterable[bytes]) -> str:
    """Return what tells requests apart; nothing is hashed for a script that counts no failures."""
    if not any(rule.fail is not None and rule.fail.times is not None for rule in script.replies):
        return ""
    hasher = hashlib.sha256()
    for message in messages:
        hasher.update(b"%d:" % len(message))
        hasher.update(message)
    return hasher.hexdigest()
