"""From candidates to look-ups: an order of our own, the suppression of repeats, and the limits.

Evaluators propose in any order and as much as they like. Here their proposals get an order that does not
depend on who answered first (A28), each situation is looked up once a run (A30), and limits are the fuse
against pathology (A32). What is not looked up becomes a fact with its reason.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from temporality.actors.redaction import clean
from temporality.actors.supervisor.state import (
    ActivationState,
    PendingCall,
    RunState,
    Status,
    counted_tool,
)
from temporality.protocol.activation import (
    ActivationRequested,
    ActivationSkipped,
    EvaluatorMissed,
    SkipReason,
)
from temporality.protocol.bounds import QUERY_LENGTH_MAX, TOOL_RESULT_LENGTH_MAX
from temporality.protocol.fingerprint import situation_key
from temporality.protocol.hint import (
    HintRequest,
)
from temporality.protocol.identity import derived_id
from temporality.protocol.run import RunFact
from temporality.protocol.trigger import PRIMING, Candidate, TurnEvaluated
from temporality.protocol.turn import TurnSettled

PROPOSALS_MAX = 64
"""Proposals read at one barrier, twenty times what the limits let through: more would not fit into a
commit.
"""

LABEL_CHARACTERS_MAX = 256
"""Longest name, class, entity or topic of a request."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate with the kind that the roster vouches for and the event that caused it."""

    trigger: str
    source_id: str
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Activation:
    """A candidate that passed the limits, and the request that looks it up."""

    id: str
    trigger: str
    source_id: str
    request: HintRequest


@dataclass(frozen=True, slots=True)
class Plan:
    """The activations to look up in one request, and the facts of those and of the skipped ones."""

    activations: tuple[Activation, ...]
    facts: tuple[RunFact, ...]


def proposals(
    state: RunState, answers: Iterable[tuple[str, TurnEvaluated]]
) -> tuple[list[Proposal], list[RunFact]]:
    """Return the proposals of this barrier in a fixed order, and the facts of those that are none.

    The order is by call, then kind, then text, so that the order of answers leaves no trace (A28). An answer
    about a call that isn't of this turn is invalid as a whole (A11).
    """
    order = {call.call: index for index, call in enumerate(state.calls)}
    found: list[Proposal] = []
    facts: list[RunFact] = []
    for kind, answer in sorted(answers, key=lambda pair: pair[0]):
        named = {candidate.call for candidate in answer.candidates} | {empty.call for empty in answer.empty}
        foreign = [call for call in named if call is not None and call not in order]
        if foreign:
            facts.append(EvaluatorMissed(kind=kind, reason="invalid", detail="names a call of another turn"))
            continue
        facts.extend(_empty(state, kind, empty.call) for empty in answer.empty)
        found.extend(
            Proposal(kind, candidate.call or _turn_id(state), candidate) for candidate in answer.candidates
        )
    for waiting in state.waiting:
        candidate = Candidate(
            situation=waiting.situation,
            call=waiting.call if waiting.call in order else None,
            query=waiting.query,
            error_class=waiting.error_class,
            entities=waiting.entities,
            topics=waiting.topics,
        )
        found.append(Proposal(waiting.kind, waiting.id, candidate))
    last = len(order)
    found.sort(key=lambda p: (order.get(p.candidate.call or "", last), p.trigger, p.candidate.situation))
    surplus = Counter(proposal.trigger for proposal in found[PROPOSALS_MAX:])
    facts.extend(
        EvaluatorMissed(
            kind=kind,
            reason="invalid",
            detail=f"{count} proposals beyond the {PROPOSALS_MAX} that a barrier reads",
        )
        for kind, count in sorted(surplus.items())
    )
    return found[:PROPOSALS_MAX], facts


def priming(state: RunState) -> list[Proposal]:
    """Return the proposal that the run's first message is, unless priming is off (A13a)."""
    if state.status is not Status.OPENING or state.spec.priming.tokens == 0:
        return []
    task = clean(state.task, characters_max=QUERY_LENGTH_MAX).text
    return [Proposal(PRIMING, state.who.run, Candidate(situation=task))] if task.strip() else []


def _empty(state: RunState, kind: str, call: str) -> ActivationSkipped:
    pending = _call(state, call)
    return ActivationSkipped(
        activation_id=derived_id("a", state.who.run, state.turn, kind, call, "empty"),
        trigger=kind,
        source_id=call,
        turn=state.turn,
        reason="empty_diagnostic",
        tool=pending.tool if pending else None,
        mcp_server=pending.mcp_server if pending else None,
    )


def plan(
    state: RunState,
    proposed: Sequence[Proposal],
    *,
    settled: TurnSettled | None = None,
    breaker_open: bool = False,
) -> Plan:
    """Decide which proposals are looked up (A12, A29–A32); each other one becomes a fact with its reason.

    `settled` is what evaluators were told: its texts are clean already, all others are cleaned here (A17).
    """
    inputs = {told.call: told.input for told in settled.calls} if settled else {}
    cleaned = {told.result for told in settled.calls} if settled else set()
    activations: list[Activation] = []
    facts: list[RunFact] = []
    counted = _Counts.of(state.activation)
    for proposal in proposed:
        call = _call(state, proposal.candidate.call)
        situation = proposal.candidate.situation
        if situation not in cleaned:
            # An evaluator saw redacted text only, but it may have made its own.
            situation = clean(situation, characters_max=TOOL_RESULT_LENGTH_MAX).text
        key = _key(proposal, call, situation)
        activation_id = derived_id("a", state.who.run, state.turn, proposal.trigger, proposal.source_id, key)
        reason = _skip_reason(state, proposal, call, key, counted, breaker_open)
        if reason is not None:
            facts.append(
                ActivationSkipped(
                    activation_id=activation_id,
                    trigger=proposal.trigger,
                    source_id=proposal.source_id,
                    turn=state.turn,
                    reason=reason,
                    situation_key=key,
                    tool=call.tool if call else None,
                    mcp_server=call.mcp_server if call else None,
                )
            )
            continue
        counted.add(proposal.trigger, call, key)
        tool_input = inputs.get(call.call, "") if call else ""
        request = _request(state, proposal, call, key, activation_id, situation, tool_input)
        activations.append(Activation(activation_id, proposal.trigger, proposal.source_id, request))
        facts.append(
            ActivationRequested(
                activation_id=activation_id,
                trigger=proposal.trigger,
                source_id=proposal.source_id,
                turn=state.turn,
                situation_key=key,
                tool=call.tool if call else None,
                mcp_server=call.mcp_server if call else None,
                error_class=request.error_class or None,
            )
        )
    return Plan(tuple(activations), tuple(facts))


@dataclass(slots=True)
class _Counts:
    """What the limits have counted so far, this barrier's own activations included."""

    turn: int
    run: int
    tools: dict[str, int]
    triggers: dict[str, int]
    keys: set[str]

    @classmethod
    def of(cls, known: ActivationState) -> "_Counts":
        keys = set(known.situation_keys)
        return cls(0, known.run_count, dict(known.tool_counts), dict(known.trigger_counts), keys)

    def add(self, trigger: str, call: PendingCall | None, key: str) -> None:
        self.turn += 1
        self.run += 1
        self.triggers[trigger] = self.triggers.get(trigger, 0) + 1
        if call is not None:
            tool = counted_tool(call.mcp_server, call.tool)
            self.tools[tool] = self.tools.get(tool, 0) + 1
        self.keys.add(key)


def _skip_reason(
    state: RunState,
    proposal: Proposal,
    call: PendingCall | None,
    key: str,
    counted: _Counts,
    breaker_open: bool,
) -> SkipReason | None:
    spec = state.spec.activation
    limits = spec.limits
    primes = state.status is Status.OPENING
    if not primes and spec.triggers is not None and proposal.trigger not in spec.triggers:
        return "disabled"
    if not proposal.candidate.situation.strip():
        return "empty_diagnostic"
    if key in counted.keys:
        return "duplicate"
    if not primes and counted.turn >= limits.turn:
        return "limit_turn"
    if not primes and counted.run >= limits.run:
        return "limit_run"
    if call is not None and counted.tools.get(counted_tool(call.mcp_server, call.tool), 0) >= limits.tool:
        return "limit_tool"
    if not primes and counted.triggers.get(proposal.trigger, 0) >= limits.trigger:
        return "limit_trigger"
    return "breaker" if breaker_open else None


def _key(proposal: Proposal, call: PendingCall | None, situation: str) -> str:
    return situation_key(
        trigger=proposal.trigger,
        source=(call.mcp_server or call.tool) if call else "",
        error_class=proposal.candidate.error_class or "",
        text=situation,
    )


def _request(
    state: RunState,
    proposal: Proposal,
    call: PendingCall | None,
    key: str,
    activation_id: str,
    situation: str,
    tool_input: str,
) -> HintRequest:
    candidate = proposal.candidate
    query = clean(candidate.query or state.task, characters_max=QUERY_LENGTH_MAX).text
    return HintRequest(
        trigger=proposal.trigger,
        tool=_label(call.tool) if call else "",
        mcp_server=(call.mcp_server or "") if call else "",
        tool_input=tool_input,
        tool_result="" if state.status is Status.OPENING else situation,
        error_class=_label(candidate.error_class or ""),
        situation_key=key,
        query=query,
        entities=tuple(map(_label, candidate.entities)),
        topics=tuple(map(_label, candidate.topics)),
        activation_id=activation_id,
        activation_source_id=proposal.source_id,
    )


def _label(text: str) -> str:
    return clean(text, characters_max=LABEL_CHARACTERS_MAX).text if text else ""


def _call(state: RunState, call: str | None) -> PendingCall | None:
    return next((known for known in state.calls if known.call == call), None)


def _turn_id(state: RunState) -> str:
    return f"{state.who.run}.{state.turn}"
