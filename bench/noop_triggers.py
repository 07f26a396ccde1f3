"""Three triggers for the barrier bench: each looks at every call and proposes nothing."""

from collections.abc import Iterable

from temporality.protocol.trigger import Candidate
from temporality.protocol.turn import TurnSettled


class One:
    """Look at every call."""

    kind = "bench.one"

    def evaluate(self, turn: TurnSettled) -> Iterable[Candidate]:
        """Propose nothing, after a look."""
        return [
            Candidate(call=call.call, situation=call.result) for call in turn.calls if call.outcome == "never"
        ]


class Two(One):
    """The second."""

    kind = "bench.two"


class Three(One):
    """The third."""

    kind = "bench.three"
