"""A settled turn as evaluators may see it: bounded and redacted on the way out (A17)."""

from collections.abc import Mapping

from temporality.actors.redaction import clean
from temporality.actors.supervisor.state import PendingCall, RunState
from temporality.protocol.bounds import TOOL_INPUT_LENGTH_MAX, TOOL_RESULT_LENGTH_MAX
from temporality.protocol.tool import ToolFailed, blob_of, content_of, outcome_name
from temporality.protocol.turn import SettledCall, TurnSettled

TOOL_CHARACTERS_MAX = 128
"""Longest name of a tool: one that doesn't exist is the model's own words."""


def settled_turn(state: RunState, texts: Mapping[str, str]) -> TurnSettled:
    """Return what evaluators may see of the settled turn: bounded and redacted (A17).

    `texts` holds the contents of the blobs that outcomes refer to.
    """
    arguments = {call.call: call.arguments for call in state.open.calls}
    return TurnSettled(
        project=state.who.project,
        run=state.who.run,
        turn=state.turn,
        calls=tuple(_settled_call(state, call, arguments[call.call], texts) for call in state.calls),
        recent=state.recent,
        rejected_calls=state.spec.activation.rejected_calls,
    )


def _settled_call(
    state: RunState, call: PendingCall, arguments: str, texts: Mapping[str, str]
) -> SettledCall:
    outcome = state.open.replies[call.call]
    blob = blob_of(outcome)
    content = texts.get(blob.digest, "") if blob else content_of(outcome)
    failure = outcome if isinstance(outcome, ToolFailed) else None
    return SettledCall(
        call=call.call,
        tool=clean(call.tool, characters_max=TOOL_CHARACTERS_MAX).text,
        mcp_server=call.mcp_server,
        outcome=outcome_name(outcome),
        argument_digest=call.argument_digest,
        input=clean(arguments, characters_max=TOOL_INPUT_LENGTH_MAX).text,
        result=clean(content, characters_max=TOOL_RESULT_LENGTH_MAX).text,
        error_class=failure.error_class if failure else None,
        effect=failure.effect if failure else None,
        first_contact=call.first_contact,
    )
