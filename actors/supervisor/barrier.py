"""The barrier: the one moment at which knowledge may enter a run, as pure steps around two questions.

    settled.py    what evaluators are told                     → the shell asks them all, one deadline
    planning.py   their proposals, repeats and limits           → the shell asks one retriever, one batch
    barrier.py    budget, the block, and the facts of all of it → the shell commits them with the model call

The same steps serve a run's first message and every turn; they differ in what opens the barrier, in whether
evaluators are asked, and in the budget (A13a). Whatever the outside answers, or doesn't, the barrier closes:
an answer that is late, missing or wrong becomes a fact and nothing else (A11, A42).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from temporality.actors.supervisor.budget import Budget, Selection, select
from temporality.actors.supervisor.planning import Activation, Plan
from temporality.actors.supervisor.state import RunState, Status
from temporality.protocol.activation import (
    ActivationSettled,
    BlockInjected,
    HintOffered,
    HintsQueried,
    LookUpResult,
)
from temporality.protocol.codec import encode, encode_canonical
from temporality.protocol.hint import (
    HintBatch,
    HintContext,
    HintResult,
    Skill,
    hint_id,
    revised_id,
)
from temporality.protocol.identity import digest
from temporality.protocol.run import RunFact
from temporality.protocol.tool import ToolFailed

HINTS_OFFERED_MAX = 64
"""Hints accepted for one activation: eight times what a block may hold; more is a broken retriever."""

OFFERS_BYTES_MAX = 98_304
"""What is kept of an answer whether or not it is injected (ids and reasons, not propositions): it stands in
the barrier's commit beside the replies, and a lying retriever must not fail a run by its size (A42)."""

OFFER_FIXED_BYTES = 512
"""The facts of one offered hint without its own words: their field names, digests and numbers."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """What came of asking the retriever: results in the order of the requests, or none and why."""

    result: LookUpResult
    results: tuple[HintResult, ...] = ()
    retrieval_ms: int = 0
    detail: str = ""


def batch(state: RunState, planned: Plan) -> HintBatch:
    """Return the one request that looks up all activations of a barrier (A12)."""
    who, knowledge = state.who, state.spec.knowledge
    return HintBatch(
        context=HintContext(
            active_skills=tuple(Skill(name=skill.name, text=skill.text) for skill in state.spec.skills),
            issued_knowledge_ids=state.activation.issued_knowledge_ids,
            suppressed_knowledge_ids=tuple(
                revised_id(item, unfit.revision)
                for item, unfit in sorted(state.activation.suppressed_knowledge.items())
            ),
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
        if len({hint.hint_id for hint in result.hints}) < len(result.hints):
            return "the answer offers one hint twice"
        for hint in result.hints:
            if hint.hint_id != hint_id(result.activation_id, hint.knowledge_id, hint.revision):
                return "the answer holds a hint of another activation"
    kept = sum(_kept_bytes(result) for result in results)
    if kept > OFFERS_BYTES_MAX:
        return f"ids and reasons of the answer take {kept} bytes; at most {OFFERS_BYTES_MAX} are kept"
    return None


def _kept_bytes(result: HintResult) -> int:
    words = [(hint.knowledge_id, hint.knowledge_id, hint.matched) for hint in result.hints]
    return len(encode((result.matcher_version, words))) + OFFER_FIXED_BYTES * len(words)


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
        whole_tokens=spec.priming.tokens if primes else tokens.run,
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
        suppressed={item: unfit.revision for item, unfit in known.suppressed_knowledge.items()},
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
        selected=share.selected,
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
