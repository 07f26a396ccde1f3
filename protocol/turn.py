"""A settled turn, as evaluators see it: bounded, redacted, and complete enough to judge without state.

The digest of the run's last calls travels along, so that a trigger stays a pure function of this message.
"""

from typing import Annotated

from msgspec import Meta

from temporality.protocol.bounds import TOOL_INPUT_LENGTH_MAX, TOOL_RESULT_LENGTH_MAX
from temporality.protocol.message import Message, Record

RECENT_CALLS_MAX = 32
"""How many earlier calls evaluators see: enough to notice a loop, small enough to send every turn."""


class SettledCall(Record, frozen=True, kw_only=True):
    """One call of the turn: bounded redacted `input` (JSON) and `result`, and how it came out.

    `outcome` is succeeded, failed, blocked, denied, cancelled or accepted; `first_contact` marks the run's
    first call to its MCP server.
    """

    call: str
    tool: str
    outcome: str
    argument_digest: str
    input: Annotated[str, Meta(max_length=TOOL_INPUT_LENGTH_MAX)] = ""
    result: Annotated[str, Meta(max_length=TOOL_RESULT_LENGTH_MAX)] = ""
    mcp_server: str | None = None
    error_class: str | None = None
    effect: str | None = None
    first_contact: bool = False


class RecentCall(Record, frozen=True, kw_only=True):
    """One earlier call: what was called with what (as a digest), and how it came out."""

    turn: int
    tool: str
    argument_digest: str
    outcome: str
    mcp_server: str | None = None
    situation_key: str | None = None


class TurnSettled(Message, frozen=True, kw_only=True, tag="turn.settled"):
    """Tell every live evaluator that a turn has all its replies (core, one answer each, one deadline)."""

    project: str
    run: str
    turn: int
    calls: tuple[SettledCall, ...]
    recent: tuple[RecentCall, ...] = ()
    rejected_calls: bool = True
