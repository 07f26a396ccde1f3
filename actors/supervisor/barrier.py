"""The barrier: the one moment at which knowledge may enter a run, as four pure steps.

    settled_turn   what evaluators are told                       (the shell asks them all, one deadline)
    proposals      their answers, in an order of their own
    plan           limits and situation keys                      (the shell asks one retriever, one batch)
    close          budget, the block, and the facts of all of it

The same function serves a run's first message and every turn; they differ in what opens the barrier, in
whether evaluators are asked, and in the budget (A13a). Whatever the outside answers, or doesn't, the
barrier closes: an answer that is late, missing or wrong becomes a fact and nothing else (A11, A42).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from temporality.actors.redaction import clean
from temporality.actors.supervisor.budget import Budget, Selection, select
from temporality.actors.supervisor.state import ActivationState, PendingCall, RunState, Status
from temporality.protocol.activation import (
    ActivationRequested,
    ActivationSettled,
    ActivationSkipped,
    BlockInjected,
    EvaluatorMissed,
    HintOffered,
    HintsQueried,
    LookUpResult,
    SkipReason,
)
from temporality.protocol.codec import encode_canonical
from temporality.protocol.fingerprint import situation_key
from temporality.protocol.hint import (
    NAME_LENGTH_MAX,
    QUERY_LENGTH_MAX,
    TOOL_INPUT_LENGTH_MAX,
    TOOL_RESULT_LENGTH_MAX,
    HintBatch,
    HintContext,
    HintRequest,
    HintResult,
    Skill,
    hint_id,
)
from temporality.protocol.identity import derived_id, digest
from temporality.protocol.run import RunFact
from temporality.protocol.tool import ToolFailed, blob_of, content_of, outcome_name
from temporality.protocol.trigger import PRIMING, Candidate, TurnEvaluated
from temporality.protocol.turn import SettledCall, TurnSettled

HINTS_OFFERED_MAX = 64
"""Hints accepted from one look-up: eight times what a block may hold; more is a broken retriever."""


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


@dataclass(frozen=True, slots=True)
class LookUp:
    """What came of asking the retriever: results in the order of the requests, or none and why."""

    result: LookUpResult
    results: tuple[HintResult, ...] = ()
    retrieval_ms: int = 0
    detail: str = ""


# --- what evaluators are told ---------------------------------------------------------------------------


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
    failed = isinstance(outcome, ToolFailed)
    return SettledCall(
        call=call.call,
        tool=call.tool,
        mcp_server=call.mcp_server,
        outcome=outcome_name(outcome),
        argument_digest=call.argument_digest,
        input=clean(arguments, characters_max=TOOL_INPUT_LENGTH_MAX).text,
        result=clean(content, characters_max=TOOL_RESULT_LENGTH_MAX).text,
        error_class=outcome.error_class if failed else None,
        effect=outcome.effect if failed else None,
        first_contact=call.first_contact,
    )


# --- who proposes what ----------------------------------------------------------------------------------


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
        named = [item.call for item in (*answer.candidates, *answer.empty) if item.call is not None]
        foreign = [call for call in named if call not in order]
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
    return found, facts


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


# --- limits and repeats ---------------------------------------------------------------------------------


def plan(state: RunState, proposed: Sequence[Proposal], *, breaker_open: bool = False) -> Plan:
    """Decide which proposals are looked up (A12, A29–A32); each other one becomes a fact with its reason."""
    activations: list[Activation] = []
    facts: list[RunFact] = []
    counted = _Counts.of(state.activation)
    for proposal in proposed:
        call = _call(state, proposal.candidate.call)
        key = _key(proposal, call)
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
        counted.add(proposal.trigger, call.tool if call else None, key)
        request = _request(state, proposal, call, key, activation_id)
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

    def add(self, trigger: str, tool: str | None, key: str) -> None:
        self.turn += 1
        self.run += 1
        self.triggers[trigger] = self.triggers.get(trigger, 0) + 1
        if tool:
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
    primes = proposal.trigger == PRIMING
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
    if call is not None and counted.tools.get(call.tool, 0) >= limits.tool:
        return "limit_tool"
    if not primes and counted.triggers.get(proposal.trigger, 0) >= limits.trigger:
        return "limit_trigger"
    return "breaker" if breaker_open else None


def _key(proposal: Proposal, call: PendingCall | None) -> str:
    return situation_key(
        trigger=proposal.trigger,
        source=(call.mcp_server or call.tool) if call else "",
        error_class=proposal.candidate.error_class or "",
        text=proposal.candidate.situation,
    )


def _request(
    state: RunState, proposal: Proposal, call: PendingCall | None, key: str, activation_id: str
) -> HintRequest:
    candidate = proposal.candidate
    primes = proposal.trigger == PRIMING
    arguments = next((c.arguments for c in state.open.calls if call and c.call == call.call), "")
    # An evaluator saw redacted text only, but it may have made its own: what leaves here is cleaned again.
    situation = "" if primes else clean(candidate.situation, characters_max=TOOL_RESULT_LENGTH_MAX).text
    query = clean(candidate.query or state.task, characters_max=QUERY_LENGTH_MAX).text
    return HintRequest(
        trigger=proposal.trigger,
        tool=call.tool[:NAME_LENGTH_MAX] if call else "",
        mcp_server=(call.mcp_server or "") if call else "",
        tool_input=clean(arguments, characters_max=TOOL_INPUT_LENGTH_MAX).text,
        tool_result=situation,
        error_class=candidate.error_class or "",
        situation_key=key,
        query=query,
        entities=candidate.entities,
        topics=candidate.topics,
        activation_id=activation_id,
        activation_source_id=proposal.source_id,
    )


# --- the one question and its answer --------------------------------------------------------------------


def batch(state: RunState, planned: Plan) -> HintBatch:
    """Return the one request that looks up all activations of a barrier (A12)."""
    who, knowledge = state.who, state.spec.knowledge
    return HintBatch(
        context=HintContext(
            active_skills=tuple(Skill(name=skill.name, text=skill.text) for skill in state.spec.skills),
            issued_knowledge_ids=state.activation.issued_knowledge_ids,
            suppressed_knowledge_ids=tuple(sorted(state.activation.suppressed_knowledge)),
            project=knowledge.project or who.project,
            run_id=who.run,
            task_id=who.task_id,
            actor_id=who.actor_id,
            user_id=who.user_id,
            team=knowledge.team or who.team,
            team_root=who.team_root,
        ),
        requests=tuple(activation.request for activation in planned.activations),
    )


def fault_of(results: Sequence[HintResult], planned: Plan) -> str | None:
    """Return what makes a retriever's answer unusable, if anything does (A42)."""
    if [result.activation_id for result in results] != [activation.id for activation in planned.activations]:
        return "the answer is for other activations"
    for result in results:
        if len(result.hints) > HINTS_OFFERED_MAX:
            return f"the answer offers {len(result.hints)} hints; at most {HINTS_OFFERED_MAX} are read"
        for hint in result.hints:
            if hint.hint_id != hint_id(result.activation_id, hint.knowledge_id, hint.revision):
                return "the answer holds a hint of another activation"
    return None


def close(state: RunState, planned: Plan, looked_up: LookUp) -> tuple[RunFact, ...]:
    """Return the facts of the look-up: queries, offers, deliveries and, if a hint is fit, the block (A3)."""
    if not planned.activations:
        return ()
    if looked_up.result in ("timeout", "error"):
        return tuple(
            fact
            for activation in planned.activations
            for fact in (
                _queried(activation, looked_up, None),
                ActivationSettled(
                    activation_id=activation.id,
                    trigger=activation.trigger,
                    result=looked_up.result,
                    retrieval_ms=looked_up.retrieval_ms,
                ),
            )
        )
    answered = list(zip(planned.activations, looked_up.results, strict=True))
    selection = _select(state, answered)
    facts: list[RunFact] = []
    for activation, result in answered:
        facts.extend(_answered(activation, result, looked_up, selection))
    block = selection.block
    if block.text:
        contributing = [a.id for a, _ in answered if selection.shares[a.id].injected]
        facts.append(
            BlockInjected(
                text=block.text,
                tokens=block.tokens,
                activation_ids=tuple(contributing),
                knowledge_ids=tuple(hint.knowledge_id for hint in block.included),
            )
        )
    return tuple(facts)


def _select(state: RunState, answered: Sequence[tuple[Activation, HintResult]]) -> Selection:
    spec, known = state.spec, state.activation
    tokens = spec.activation.tokens
    left = max(tokens.run - known.tokens, 0)
    primes = state.status is Status.OPENING
    budget = Budget(
        activation_tokens=spec.priming.tokens if primes else tokens.activation,
        barrier_tokens=spec.priming.tokens if primes else left,
        hint_tokens=tokens.hint,
        hints_max=spec.activation.hints_max,
    )
    uncertain = any(
        isinstance(reply, ToolFailed) and reply.effect == "uncertain" for reply in state.open.replies.values()
    )
    return select(
        ((activation.id, result.hints) for activation, result in answered),
        budget,
        issued=known.issued_knowledge_ids,
        suppressed=known.suppressed_knowledge,
        effect_uncertain=uncertain,
    )


def _answered(
    activation: Activation, result: HintResult, looked_up: LookUp, selection: Selection
) -> list[RunFact]:
    share = selection.shares[activation.id]
    offers = [
        HintOffered(
            hint_id=hint.hint_id,
            activation_id=activation.id,
            knowledge_id=hint.knowledge_id,
            revision=hint.revision,
            trigger=activation.trigger,
            source_id=activation.source_id,
            tier=hint.tier,
            matched=hint.matched,
            score=hint.score,
        )
        for hint in result.hints
    ]
    settled = ActivationSettled(
        activation_id=activation.id,
        trigger=activation.trigger,
        result=result.result,
        found=len(result.hints),
        selected=share.injected,
        injected=share.injected,
        tokens=share.tokens,
        retrieval_ms=looked_up.retrieval_ms,
    )
    return [_queried(activation, looked_up, result), *offers, *share.deliveries, settled]


def _queried(activation: Activation, looked_up: LookUp, result: HintResult | None) -> HintsQueried:
    request = activation.request
    texts = {
        "query": request.query,
        "tool_input": request.tool_input,
        "tool_result": request.tool_result,
    }
    return HintsQueried(
        activation_id=activation.id,
        result=result.result if result else looked_up.result,
        query_digest=digest(encode_canonical(request))[:16],
        query_shape={name: len(text) for name, text in texts.items() if text},
        found=len(result.hints) if result else 0,
        candidates=result.candidates_count if result else 0,
        retrieval_ms=looked_up.retrieval_ms,
        matcher_version=result.matcher_version if result else None,
        detail=looked_up.detail,
    )


def _call(state: RunState, call: str | None) -> PendingCall | None:
    return next((known for known in state.calls if known.call == call), None)


def _turn_id(state: RunState) -> str:
    return f"{state.who.run}.{state.turn}"
