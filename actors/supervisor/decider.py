"""What follows from one message to a run.

    decide(state, message, now) -> Decision(facts, outgoing)

Pure: the state, the message, the moment and the frozen tools determine the decision. A repeat is recognised
by its meaning (a reply to a call that has one, a report for a model call that is not outstanding, a start of
a run that exists), never by a list of seen ids. When the facts leave a barrier open (`BARRIER_OPEN`), the
shell asks evaluators and the retriever, and `barrier.py` decides how it closes.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from temporality.actors.supervisor.state import (
    ENDED,
    WAITING_CANDIDATES_MAX,
    ImpossibleFact,
    RunState,
    Status,
)
from temporality.actors.supervisor.tools import (
    InvalidArguments,
    ToolTable,
    argument_digest,
    denied_by,
    policy_name,
)
from temporality.protocol import subjects
from temporality.protocol.activation import ActivationSkipped, CandidateReceived, SkipReason
from temporality.protocol.codec import raw
from temporality.protocol.identity import derived_id
from temporality.protocol.message import Message, Outgoing
from temporality.protocol.model import ModelCall, ModelCompleted, ModelFailed, ProviderCall
from temporality.protocol.run import (
    CancelRun,
    InboxMessage,
    ModelCalled,
    ModelCallFailed,
    ModelReplied,
    RequestedCall,
    RunCancelled,
    RunFact,
    RunFailed,
    RunFinished,
    RunStarted,
    StartRun,
    TimerFired,
    ToolCalled,
    ToolReplied,
    TurnClosed,
)
from temporality.protocol.tool import (
    ToolBlocked,
    ToolCall,
    ToolCancelled,
    ToolDefinition,
    ToolFailed,
    ToolFinished,
    ToolOutcome,
)
from temporality.protocol.transcript import extend_digest, flush
from temporality.protocol.trigger import CandidateProposed

DEFAULT_POOL = "default"
MODEL_ATTEMPTS_MAX = 5
"""Tries at one model call that a timer brings back, each after what the provider asked for."""

KNOWN_TOOLS_SHOWN_MAX = 30
"""Names listed to a model that called an unknown tool."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Facts that become true and messages that they owe; both empty for a repeat."""

    facts: tuple[RunFact, ...] = ()
    outgoing: tuple[Outgoing, ...] = ()


REPEAT = Decision()


class UnknownRun(ImpossibleFact):
    """A message, not a start, for a run that has no commit."""


def decide(
    state: RunState,
    message: InboxMessage,
    *,
    cause: str,
    now: datetime,
    tools: ToolTable,
    traceparent: str | None = None,
    trigger_kind: str | None = None,
) -> Decision:
    """Decide what one message means; `cause` is its id, `trigger_kind` the kind of a candidate's sender.

    Raises `UnknownRun` for any message but a start to a run that doesn't exist.
    """
    if state.status is Status.NEW:
        if not isinstance(message, StartRun):
            raise UnknownRun("no such run")
        started = RunStarted(
            identity=message.identity, agent=message.agent, task=message.task, traceparent=traceparent
        )
        return Decision((started,))
    if state.status in ENDED:
        return REPEAT
    match message:
        case ModelCompleted() if message.call == state.model_call:
            return _model_completed(state, message, tools)
        case ModelFailed() if message.call == state.model_call:
            return _model_failed(state, message, now)
        case ToolFinished(call=call) if any(call == missing.call for missing in state.open.missing()):
            return Decision(
                (
                    ToolReplied(
                        call=call, turn=state.turn, outcome=message.outcome, duration_ms=message.duration_ms
                    ),
                )
            )
        case TimerFired(name=name) if name == _backoff_timer(state) and state.status is Status.BACKING_OFF:
            called, outgoing = call_model(state, attempt=state.attempt + 1)
            return Decision((called,), (outgoing,))
        case CandidateProposed() if trigger_kind is not None:
            return _candidate(state, message, cause, trigger_kind)
        case CancelRun(reason=reason):
            cancelled = ToolCancelled(effect="uncertain")
            replies = tuple(
                ToolReplied(call=call.call, turn=state.turn, outcome=cancelled)
                for call in state.open.missing()
            )
            return Decision((*replies, RunCancelled(reason=reason)))
        case _:
            return REPEAT


def call_model(state: RunState, *, attempt: int = 1) -> tuple[ModelCalled, Outgoing]:
    """Return the fact and the message of the next model call; its commit ends the transcript."""
    transcript_digest = extend_digest(state.transcript_digest, flush(state.open))
    turn = state.turn + 1
    call = derived_id("m", state.who.run, turn, attempt)
    model = state.spec.model.name
    called = ModelCalled(
        call=call,
        turn=turn,
        attempt=attempt,
        model=model,
        transcript_digest=transcript_digest,
        tools=state.tools,
    )
    request = ModelCall(
        run=state.who.run,
        call=call,
        turn=turn,
        upto=state.number + 1,
        model=model,
        transcript_digest=transcript_digest,
        tools=state.tools,
    )
    return called, Outgoing(subject=subjects.model_pool(DEFAULT_POOL), body=raw(request))


def _model_completed(state: RunState, message: ModelCompleted, tools: ToolTable) -> Decision:
    turn = state.turn + 1
    requested = tuple(
        _requested(state.who.run, turn, index, call) for index, call in enumerate(message.tool_calls)
    )
    replied = ModelReplied(
        call=message.call,
        turn=turn,
        content=message.content,
        calls=requested,
        finish_reason=message.finish_reason,
        usage=message.usage,
        transcript_digest=message.transcript_digest,
        duration_ms=message.duration_ms,
    )
    if not requested:
        return Decision((replied, *_run_ended(state), RunFinished(answer=message.content, turns=turn)))
    called: list[RunFact] = []
    rejected: list[RunFact] = []
    outgoing: list[Outgoing] = []
    for call in requested:
        definition, verdict = _admit(state, call, tools)
        called.append(_tool_called(call, turn, definition))
        if isinstance(verdict, Message):
            rejected.append(ToolReplied(call=call.call, turn=turn, outcome=verdict))
        elif definition is not None:
            outgoing.append(_tool_call(state, call, turn, definition, verdict))
    return Decision((replied, *called, *rejected), tuple(outgoing))


def _requested(run: str, turn: int, index: int, call: ProviderCall) -> RequestedCall:
    # Providers repeat their own ids between replies, so ours comes from run, turn and index.
    return RequestedCall(
        call=derived_id("call", run, turn, index),
        provider_call_id=call.id,
        name=call.name,
        arguments=call.arguments,
    )


def _admit(
    state: RunState, call: RequestedCall, tools: ToolTable
) -> tuple[ToolDefinition | None, ToolOutcome | dict[str, object]]:
    """Return the tool, and either the checked arguments or the outcome of a call that must not run."""
    tool = tools.find(call.name)
    if tool is None:
        known = ", ".join(tools.names()[:KNOWN_TOOLS_SHOWN_MAX]) or "none"
        content = f"There is no tool named {call.name[:128]!r}. Known tools: {known}."
        return None, ToolFailed(error_class="unknown_tool", content=content)
    try:
        arguments = tools.arguments(tool, call.arguments)
    except InvalidArguments as error:
        content = f"Invalid arguments for {call.name}: {error}"
        return tool, ToolFailed(error_class="invalid_arguments", content=content)
    pattern = denied_by(state.spec.policy, tool)
    if pattern is not None:
        return tool, ToolBlocked(reason=f"{policy_name(tool)} is denied by the policy {pattern!r}")
    return tool, arguments


def _tool_called(call: RequestedCall, turn: int, tool: ToolDefinition | None) -> ToolCalled:
    return ToolCalled(
        call=call.call,
        turn=turn,
        tool=tool.tool if tool else call.name[:128],
        argument_digest=argument_digest(call.arguments),
        effect=tool.effect if tool else "none",
        mcp_server=tool.mcp_server if tool else None,
    )


def _tool_call(
    state: RunState, call: RequestedCall, turn: int, tool: ToolDefinition, arguments: dict[str, object]
) -> Outgoing:
    request = ToolCall(
        run=state.who.run,
        call=call.call,
        turn=turn,
        tool=tool.tool,
        arguments=arguments,
        effect=tool.effect,
        reply_bytes_max=state.spec.limits.reply_bytes_max,
        mcp_server=tool.mcp_server,
        mcp=state.spec.tools.mcp[tool.mcp_server] if tool.mcp_server else None,
        python=tool.python,
    )
    return Outgoing(subject=subjects.tool_pool(DEFAULT_POOL), body=raw(request))


def _model_failed(state: RunState, message: ModelFailed, now: datetime) -> Decision:
    failed = ModelCallFailed(
        call=message.call,
        turn=state.turn + 1,
        attempt=state.attempt,
        error_class=message.error_class,
        message=message.message,
        retry_after_s=message.retry_after_s,
        duration_ms=message.duration_ms,
    )
    if message.retry_after_s is None or state.attempt >= MODEL_ATTEMPTS_MAX:
        tried = f" (tried {state.attempt} times)" if state.attempt > 1 else ""
        ended = RunFailed(where="model", what=f"{message.message}{tried}", do=message.do)
        return Decision((failed, ended))
    run, name = state.who.run, _backoff_timer(state)
    timer = Outgoing(
        subject=subjects.timer(run, name),
        target=subjects.inbox(run, "timer"),
        at=(now + timedelta(seconds=message.retry_after_s)).isoformat(),
        body=raw(TimerFired(name=name)),
    )
    return Decision((failed,), (timer,))


def too_many_turns(state: RunState) -> tuple[RunFact, ...]:
    """Return the facts that end a run which has taken all its turns."""
    limit = state.spec.limits.turns_max
    failed = RunFailed(
        where="limits.turns_max",
        what=f"the run has taken {limit} turns without an answer",
        do="raise the limit, or split the task",
    )
    return (*_run_ended(state), TurnClosed(turn=state.turn), failed)


def _run_ended(state: RunState) -> tuple[ActivationSkipped, ...]:
    """Return a fact for each candidate that waited for a barrier which will not come."""
    return tuple(_not_looked_up(state, waiting.kind, waiting.id, "run_ended") for waiting in state.waiting)


def _not_looked_up(state: RunState, kind: str, source_id: str, reason: SkipReason) -> ActivationSkipped:
    return ActivationSkipped(
        activation_id=derived_id("a", state.who.run, state.turn, kind, source_id, reason),
        trigger=kind,
        source_id=source_id,
        turn=state.turn,
        reason=reason,
    )


def _backoff_timer(state: RunState) -> str:
    return f"model-{state.turn + 1}-{state.attempt}"


def _candidate(state: RunState, message: CandidateProposed, cause: str, kind: str) -> Decision:
    if any(waiting.id == cause for waiting in state.waiting):
        return REPEAT
    if len(state.waiting) >= WAITING_CANDIDATES_MAX:
        return Decision((_not_looked_up(state, kind, cause, "limit_turn"),))
    candidate = message.candidate
    received = CandidateReceived(
        id=cause,
        kind=kind,
        situation=candidate.situation,
        call=candidate.call,
        query=candidate.query,
        error_class=candidate.error_class,
        entities=candidate.entities,
        topics=candidate.topics,
    )
    return Decision((received,))
