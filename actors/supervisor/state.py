"""The state of a run as a fold of its facts, and the table of its life.

    evolve(state, fact) -> state

`RunState` holds what the next decision needs and nothing else: no old tool output and no retriever's answer
(A25), so its size doesn't grow with the run and a snapshot stays small. It is plain values in a fixed order:
the same facts give the same bytes (A28).
"""

from enum import StrEnum

import msgspec
from msgspec import field

from temporality.protocol.activation import (
    ActivationRequested,
    ActivationSettled,
    ActivationSkipped,
    BlockInjected,
    CandidateReceived,
    HintDelivered,
    HintsQueried,
)
from temporality.protocol.agent import AgentSpec, Effect
from temporality.protocol.errors import TemporalityError
from temporality.protocol.identity import RunIdentity
from temporality.protocol.message import Record
from temporality.protocol.run import (
    ModelCalled,
    ModelCallFailed,
    ModelReplied,
    RunCancelled,
    RunFact,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolCalled,
    ToolReplied,
    ToolsFrozen,
    TurnClosed,
)
from temporality.protocol.tool import outcome_name
from temporality.protocol.transcript import EMPTY_DIGEST, OpenTurn, extend_digest, fold
from temporality.protocol.turn import RECENT_CALLS_MAX, RecentCall

WAITING_CANDIDATES_MAX = 32
"""Candidates kept for the next barrier: ten times what the limits let through in a turn."""


class Status(StrEnum):
    """Where a run stands between two facts."""

    NEW = "new"
    OPENING = "opening"
    AWAITING_MODEL = "awaiting_model"
    BACKING_OFF = "backing_off"
    AWAITING_TOOLS = "awaiting_tools"
    SETTLED = "settled"
    ANSWERED = "answered"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Step(StrEnum):
    """What a fact means for the run's status; facts without a step leave it as it is."""

    STARTED = "run started"
    MODEL_CALLED = "model called"
    MODEL_ASKED_FOR_TOOLS = "model asked for tools"
    MODEL_ANSWERED = "model answered"
    MODEL_FAILED = "model call failed"
    LAST_REPLY = "last tool replied"
    FINISHED = "run finished"
    FAILED = "run failed"
    CANCELLED = "run cancelled"


ENDED = frozenset({Status.FINISHED, Status.FAILED, Status.CANCELLED})
BARRIER_OPEN = frozenset({Status.OPENING, Status.SETTLED})
"""Statuses in which a barrier is open: nothing but its closing commit may follow."""

_ALIVE = [status for status in Status if status not in ENDED and status is not Status.NEW]

TRANSITIONS: dict[tuple[Status, Step], Status] = {
    (Status.NEW, Step.STARTED): Status.OPENING,
    (Status.OPENING, Step.MODEL_CALLED): Status.AWAITING_MODEL,
    (Status.AWAITING_MODEL, Step.MODEL_ASKED_FOR_TOOLS): Status.AWAITING_TOOLS,
    (Status.AWAITING_MODEL, Step.MODEL_ANSWERED): Status.ANSWERED,
    (Status.AWAITING_MODEL, Step.MODEL_FAILED): Status.BACKING_OFF,
    (Status.BACKING_OFF, Step.MODEL_CALLED): Status.AWAITING_MODEL,
    (Status.AWAITING_TOOLS, Step.LAST_REPLY): Status.SETTLED,
    (Status.SETTLED, Step.MODEL_CALLED): Status.AWAITING_MODEL,
    (Status.ANSWERED, Step.FINISHED): Status.FINISHED,
    **{(status, Step.FAILED): Status.FAILED for status in _ALIVE},
    **{(status, Step.CANCELLED): Status.CANCELLED for status in _ALIVE},
}
"""The whole life of a run; the diagram in the docs is generated from this table."""


class ImpossibleFact(TemporalityError):
    """A fact that can't follow in this status: the commits of the run are damaged, or a decision is wrong."""


class PendingCall(Record, frozen=True, kw_only=True):
    """A call of the open turn: what it means, and whether it is the run's first contact with its server."""

    call: str
    tool: str
    argument_digest: str
    effect: Effect
    mcp_server: str | None = None
    first_contact: bool = False


class Suppressed(Record, frozen=True, kw_only=True):
    """Why an item is not offered again, and the revision that did not fit (A33)."""

    reason: str
    revision: int


class ActivationState(Record, frozen=True, kw_only=True):
    """What the limits and the suppression of repeats remember (A25); survives everything (A27).

    `activated_mcp_servers` are the servers met so far, whatever came of the first call (A8).
    `pending` maps activations without a result to their situation keys: a key is used up by a look-up that
    succeeded or found nothing, and by nothing else (A30).
    """

    issued_knowledge_ids: tuple[str, ...] = ()
    suppressed_knowledge: dict[str, Suppressed] = field(default_factory=dict)
    activated_mcp_servers: tuple[str, ...] = ()
    situation_keys: tuple[str, ...] = ()
    pending: dict[str, str] = field(default_factory=dict)
    run_count: int = 0
    tool_counts: dict[str, int] = field(default_factory=dict)
    trigger_counts: dict[str, int] = field(default_factory=dict)
    tokens: int = 0


class RunState(Record, frozen=True, kw_only=True):
    """All that the next decision about a run depends on.

    `number` is the number of the last commit; `turn` counts the model's replies; `attempt` the tries at the
    outstanding model call `model_call`; `turn_keys` maps calls of the open turn to their situation keys.
    """

    status: Status = Status.NEW
    identity: RunIdentity | None = None
    agent: AgentSpec | None = None
    task: str = ""
    traceparent: str | None = None
    generation: int = 1
    number: int = 0
    turn: int = 0
    model_call: str | None = None
    attempt: int = 0
    tools: str | None = None
    calls: tuple[PendingCall, ...] = ()
    open: OpenTurn = field(default_factory=OpenTurn)
    answer: str | None = None
    transcript_digest: str = EMPTY_DIGEST
    recent: tuple[RecentCall, ...] = ()
    turn_keys: dict[str, str] = field(default_factory=dict)
    activation: ActivationState = field(default_factory=ActivationState)
    waiting: tuple[CandidateReceived, ...] = ()

    @property
    def spec(self) -> AgentSpec:
        """Return the agent of a run that has started."""
        if self.agent is None:
            raise ImpossibleFact("a run that has not started has no agent")
        return self.agent

    @property
    def who(self) -> RunIdentity:
        """Return the identity of a run that has started."""
        if self.identity is None:
            raise ImpossibleFact("a run that has not started has no identity")
        return self.identity


def evolve(state: RunState, fact: RunFact) -> RunState:
    """Apply one fact; raise `ImpossibleFact` if the table has no such step."""
    opened, messages = fold(state.open, fact)
    state = msgspec.structs.replace(
        state, open=opened, transcript_digest=extend_digest(state.transcript_digest, messages)
    )
    state = _remember(state, fact)
    step = _step(state, fact)
    if step is None:
        return state
    status = TRANSITIONS.get((state.status, step))
    if status is None:
        raise ImpossibleFact(f"{step} can't follow in status {state.status}")
    return msgspec.structs.replace(state, status=status)


def _step(state: RunState, fact: RunFact) -> Step | None:
    match fact:
        case RunStarted():
            return Step.STARTED
        case ModelCalled():
            return Step.MODEL_CALLED
        case ModelReplied(calls=calls):
            return Step.MODEL_ASKED_FOR_TOOLS if calls else Step.MODEL_ANSWERED
        case ModelCallFailed():
            return Step.MODEL_FAILED
        case ToolReplied() if not state.open.missing() and state.status is Status.AWAITING_TOOLS:
            return Step.LAST_REPLY
        case RunFinished():
            return Step.FINISHED
        case RunFailed():
            return Step.FAILED
        case RunCancelled():
            return Step.CANCELLED
        case _:
            return None


def _remember(state: RunState, fact: RunFact) -> RunState:
    replace = msgspec.structs.replace
    match fact:
        case RunStarted(identity=identity, agent=agent, task=task, traceparent=traceparent):
            return replace(state, identity=identity, agent=agent, task=task, traceparent=traceparent)
        case ToolsFrozen(digest=digest):
            return replace(state, tools=digest)
        case ModelCalled(call=call, attempt=attempt):
            return replace(state, model_call=call, attempt=attempt, calls=(), turn_keys={})
        case ModelReplied(turn=turn, content=content, calls=calls):
            return replace(state, model_call=None, turn=turn, answer=None if calls else content)
        case ModelCallFailed():
            return replace(state, model_call=None)
        case ToolCalled():
            return _tool_called(state, fact)
        case TurnClosed():
            return _turn_closed(state)
        case CandidateReceived():
            return replace(state, waiting=(*state.waiting, fact))
        case _:
            return _remember_activation(state, fact)


def _tool_called(state: RunState, fact: ToolCalled) -> RunState:
    server = fact.mcp_server
    known = state.activation.activated_mcp_servers
    first = server is not None and server not in known
    call = PendingCall(
        call=fact.call,
        tool=fact.tool,
        argument_digest=fact.argument_digest,
        effect=fact.effect,
        mcp_server=server,
        first_contact=first,
    )
    activation = state.activation
    if first and server:
        activation = msgspec.structs.replace(activation, activated_mcp_servers=(*known, server))
    return msgspec.structs.replace(state, calls=(*state.calls, call), activation=activation)


def _turn_closed(state: RunState) -> RunState:
    """Add the turn's calls to the recent ones, in call order, so that the order of arrival is lost."""
    recent = tuple(
        RecentCall(
            turn=state.turn,
            tool=call.tool,
            argument_digest=call.argument_digest,
            outcome=outcome_name(state.open.replies[call.call]),
            mcp_server=call.mcp_server,
            situation_key=state.turn_keys.get(call.call),
        )
        for call in state.calls
        if call.call in state.open.replies
    )
    return msgspec.structs.replace(state, recent=(*state.recent, *recent)[-RECENT_CALLS_MAX:], waiting=())


def _remember_activation(state: RunState, fact: RunFact) -> RunState:
    known = state.activation
    replace = msgspec.structs.replace
    if isinstance(fact, ActivationRequested | ActivationSkipped) and fact.situation_key:
        keys_of_turn = {**state.turn_keys, fact.source_id: fact.situation_key}
        state = replace(state, turn_keys=keys_of_turn)
    match fact:
        case ActivationRequested() if state.status is Status.OPENING:
            activation = replace(known, pending={**known.pending, fact.activation_id: fact.situation_key})
        case ActivationRequested(trigger=trigger, tool=tool, mcp_server=server):
            activation = replace(
                known,
                pending={**known.pending, fact.activation_id: fact.situation_key},
                run_count=known.run_count + 1,
                trigger_counts=_counted(known.trigger_counts, trigger),
                tool_counts=(
                    _counted(known.tool_counts, counted_tool(server, tool)) if tool else known.tool_counts
                ),
            )
        case HintsQueried(activation_id=activation_id, result=result):
            key = known.pending.get(activation_id)
            pending = {other: value for other, value in known.pending.items() if other != activation_id}
            used = key is not None and result in ("success", "empty")
            keys = (*known.situation_keys, key) if used and key else known.situation_keys
            activation = replace(known, pending=pending, situation_keys=keys)
        case HintDelivered(too_large=True, knowledge_id=item, revision=revision):
            suppressed = {**known.suppressed_knowledge, item: Suppressed(reason="budget", revision=revision)}
            activation = replace(known, suppressed_knowledge=suppressed)
        case BlockInjected(knowledge_ids=items):
            new = tuple(item for item in items if item not in known.issued_knowledge_ids)
            activation = replace(known, issued_knowledge_ids=(*known.issued_knowledge_ids, *new))
        case ActivationSettled(tokens=tokens) if state.status is not Status.OPENING:
            activation = replace(known, tokens=known.tokens + tokens)
        case _:
            return state
    return replace(state, activation=activation)


def counted_tool(mcp_server: str | None, tool: str) -> str:
    """Name a tool for its limit: two servers may export one tool name (A32)."""
    return f"{mcp_server}.{tool}" if mcp_server else tool


def _counted(counts: dict[str, int], name: str) -> dict[str, int]:
    return {**counts, name: counts.get(name, 0) + 1}
