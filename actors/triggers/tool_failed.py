"""`tool.failed`: a call that the model made came back failed, and its diagnostic says something (A6, A7).

The verdict is the outcome's name, which a tool's text can't change: a success that prints "Error:" or a
traceback is a success, and a failure is one in whatever words it comes. Blocked, denied and cancelled calls
are decisions of people and policies and nothing to learn from; an accepted call has no result yet (A9); an
interrupted one carries our own words, not the tool's.
"""

from collections.abc import Iterator

from temporality.protocol.tool import REJECTED_CLASSES
from temporality.protocol.transcript import INTERRUPTED
from temporality.protocol.trigger import TOOL_FAILED, Candidate, EmptyDiagnostic
from temporality.protocol.turn import SettledCall, TurnSettled


class ToolFailed:
    """Propose a look-up for each failed call of a turn, in the order of the calls."""

    kind = TOOL_FAILED
    version = "1.0.0"

    def evaluate(self, turn: TurnSettled) -> Iterator[Candidate | EmptyDiagnostic]:
        """Yield one finding a failed call; a failure that says nothing is reported as empty (A7)."""
        for call in turn.calls:
            if fires(call, rejected_calls=turn.rejected_calls):
                yield finding(call)


def fires(call: SettledCall, *, rejected_calls: bool) -> bool:
    """Tell whether a call's outcome is a failure to learn from; with `rejected_calls` also a rejected one."""
    if call.outcome != "failed" or call.error_class == INTERRUPTED.error_class:
        return False
    return rejected_calls or call.error_class not in REJECTED_CLASSES


def finding(call: SettledCall) -> Candidate | EmptyDiagnostic:
    """Return the candidate of a failed call; the turn holds its result bounded and redacted already."""
    diagnostic = call.result.strip()
    if not diagnostic:
        return EmptyDiagnostic(call=call.call)
    return Candidate(call=call.call, situation=diagnostic, error_class=call.error_class)
