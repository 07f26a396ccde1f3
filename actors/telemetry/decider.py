"""From private commits to public facts: what anybody may know of a run, and nothing more (A45, A47).

A public fact carries ids, names, counts, digests, reasons and durations. Text appears only as an excerpt,
redacted and bounded, where a reader needs it to recognise what happened: the task, an error, an answer.
Arguments, outputs, instructions, model parameters and the text of knowledge never appear: readers join the
text of an item by its id, by their own right.

Each fact names its cause by the id of what caused it, so the chain call → activation → hint → delivery can be
read from any one of these ids. The projection is a pure function of the commit, and its ids are the commit's
(A49): publishing again is a repeat that the stream and every reader recognise.
"""

from collections import Counter
from functools import lru_cache
from typing import Any, assert_never

from temporality.actors.redaction import clean
from temporality.protocol import activation as barrier
from temporality.protocol import run as facts
from temporality.protocol.fact import EXCERPT_CHARACTERS_MAX, PublicFact
from temporality.protocol.identity import DIGEST_LENGTH
from temporality.protocol.tool import (
    ToolAccepted,
    ToolBlocked,
    ToolCancelled,
    ToolDenied,
    ToolFailed,
    ToolOutcome,
    ToolSucceeded,
    blob_of,
    content_of,
    outcome_name,
)

NAME_CHARACTERS_MAX = 128
"""Longest name of a tool, model, agent or error class: such names may come from a model or a tool."""

NAMES_REMEMBERED_MAX = 4_096
"""Names are few and come again with every turn: looking each over once saves most of this actor's work."""

RunLife = facts.RunStarted | facts.ToolsFrozen | facts.RunFinished | facts.RunFailed | facts.RunCancelled
CallFact = (
    facts.ModelCalled
    | facts.ModelReplied
    | facts.ModelCallFailed
    | facts.ToolCalled
    | facts.ToolReplied
    | facts.TurnClosed
)
Fields = dict[str, Any]


def project(commit: facts.Commit, *, project: str) -> tuple[PublicFact, ...]:
    """Return the public form of a commit's facts, one for one, in their order.

    Fields that are unknown, empty or 0 are left out: a turn costs bytes, and absent means the same.
    `project` is what the run's first commit says; later commits don't repeat it.
    """
    return tuple(_public(commit, index, fact, project=project) for index, fact in enumerate(commit.facts))


def project_of(commit: facts.Commit) -> str | None:
    """Return the project that a commit names, which only a run's first one does."""
    for fact in commit.facts:
        if isinstance(fact, facts.RunStarted):
            return fact.identity.project
    return None


def _public(commit: facts.Commit, index: int, fact: facts.RunFact, *, project: str) -> PublicFact:
    cause, fields = public_form(fact)
    return PublicFact(
        id=f"{commit.run}.{commit.number}.{index}",
        kind=str(type(fact).__struct_config__.tag),
        project=project,
        run=commit.run,
        number=commit.number,
        index=index,
        at=commit.at,
        data={name: value for name, value in fields.items() if value or value is False},
        cause=cause or next(iter(commit.causes), None),
    )


def public_form(fact: facts.RunFact) -> tuple[str | None, Fields]:
    """Return the id that caused a fact (None: the message that the commit answers) and its public fields."""
    if isinstance(fact, RunLife):
        return None, _of_run(fact)
    if isinstance(fact, CallFact):
        return _of_call(fact)
    return _of_barrier(fact)


def _of_run(fact: RunLife) -> Fields:
    match fact:
        case facts.RunStarted(identity=identity, agent=agent):
            return {
                "agent": _name(agent.name),
                "model": _name(agent.model.name),
                "provider": agent.model.provider,
                "mcp_servers": len(agent.tools.mcp),
                "python_tools": len(agent.tools.python),
                "task": _excerpt(fact.task),
                "task_characters": len(fact.task),
                "team": _name(identity.team),
                "user_id": _name(identity.user_id),
                "session_id": _name(identity.session_id),
                "task_id": _name(identity.task_id),
                "actor_id": _name(identity.actor_id),
                "team_root": _name(identity.team_root),
                "trace_id": _trace_id(fact.traceparent),
            }
        case facts.ToolsFrozen():
            return {"digest": _digest(fact.digest), "count": fact.count}
        case facts.RunFinished():
            return {
                "turns": fact.turns,
                "answer": _excerpt(fact.answer),
                "answer_characters": len(fact.answer),
            }
        case facts.RunFailed():
            return {"where": _excerpt(fact.where), "what": _excerpt(fact.what), "do": _excerpt(fact.do)}
        case facts.RunCancelled():
            return {"reason": _excerpt(fact.reason)}
        case _:
            assert_never(fact)


def _of_call(fact: CallFact) -> tuple[str | None, Fields]:
    match fact:
        case facts.ModelCalled():
            return None, {
                "call": fact.call,
                "turn": fact.turn,
                "attempt": fact.attempt,
                "model": _name(fact.model),
            }
        case facts.ModelReplied(usage=usage):
            return fact.call, {
                "call": fact.call,
                "turn": fact.turn,
                "calls": len(fact.calls),
                "content_characters": len(fact.content),
                "finish_reason": _name(fact.finish_reason),
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cached_tokens": usage.cached_tokens,
                "transcript_digest": _digest(fact.transcript_digest),
                "duration_ms": fact.duration_ms,
            }
        case facts.ModelCallFailed():
            return fact.call, {
                "call": fact.call,
                "turn": fact.turn,
                "attempt": fact.attempt,
                "error_class": _name(fact.error_class),
                "message": _excerpt(fact.message),
                "retry_after_s": fact.retry_after_s,
                "duration_ms": fact.duration_ms,
            }
        case facts.ToolCalled():
            return None, {
                "call": fact.call,
                "turn": fact.turn,
                "tool": _name(fact.tool),
                "mcp_server": fact.mcp_server,
                "argument_digest": _digest(fact.argument_digest),
                "effect": fact.effect,
            }
        case facts.ToolReplied():
            return fact.call, {
                "call": fact.call,
                "turn": fact.turn,
                **_of_outcome(fact.outcome),
                "duration_ms": fact.duration_ms,
            }
        case facts.TurnClosed():
            return None, {
                "turn": fact.turn,
                "evaluators": [_name(kind) for kind in fact.evaluators],
                "barrier_ms": fact.barrier_ms,
            }
        case _:
            assert_never(fact)


def _of_outcome(outcome: ToolOutcome) -> Fields:
    fields: Fields = {"outcome": outcome_name(outcome)}
    match outcome:
        case ToolSucceeded():
            # What a tool found is the run's own affair: only its size is public.
            return fields | _content_size(outcome)
        case ToolFailed():
            return fields | {
                "error_class": _name(outcome.error_class),
                "effect": outcome.effect,
                "message": _excerpt(outcome.content),
                **_content_size(outcome),
            }
        case ToolBlocked() | ToolDenied():
            return fields | {"reason": _excerpt(outcome.reason)}
        case ToolCancelled():
            return fields | {"effect": outcome.effect}
        case ToolAccepted():
            return fields | {"operation_id": _name(outcome.operation_id)}
        case _:
            assert_never(outcome)


def _content_size(outcome: ToolSucceeded | ToolFailed) -> Fields:
    blob = blob_of(outcome)
    return {"content_bytes": blob.bytes if blob else len(content_of(outcome).encode())}


def _of_barrier(fact: barrier.BarrierFact) -> tuple[str | None, Fields]:
    match fact:
        case barrier.EvaluatorMissed():
            return None, {
                "trigger": _name(fact.kind),
                "reason": fact.reason,
                "detail": _excerpt(fact.detail),
            }
        case barrier.CandidateReceived():
            return fact.call, {
                "candidate_id": fact.id,
                "trigger": _name(fact.kind),
                "call": fact.call,
                "situation": _excerpt(fact.situation),
                "error_class": _name(fact.error_class),
                "entities": len(fact.entities),
                "topics": len(fact.topics),
            }
        case barrier.ActivationRequested() | barrier.ActivationSkipped():
            return fact.source_id, _of_activation(fact)
        case barrier.HintsQueried() | barrier.HintOffered() | barrier.HintDelivered():
            return _of_hint(fact)
        case barrier.ActivationSettled():
            return fact.activation_id, {
                "activation_id": fact.activation_id,
                "trigger": _name(fact.trigger),
                "result": fact.result,
                "found": fact.found,
                "selected": fact.selected,
                "injected": fact.injected,
                "tokens": fact.tokens,
                "retrieval_ms": fact.retrieval_ms,
            }
        case barrier.BlockInjected():
            return next(iter(fact.activation_ids), None), {
                "activation_ids": list(fact.activation_ids),
                "knowledge_ids": [_name(item) for item in fact.knowledge_ids],
                "tokens": fact.tokens,
                "characters": len(fact.text),
            }
        case _:
            assert_never(fact)


def _of_activation(fact: barrier.ActivationRequested | barrier.ActivationSkipped) -> Fields:
    fields: Fields = {
        "activation_id": fact.activation_id,
        "trigger": _name(fact.trigger),
        "source_id": fact.source_id,
        "turn": fact.turn,
        "situation_key": fact.situation_key,
        "tool": _name(fact.tool),
        "mcp_server": fact.mcp_server,
    }
    if isinstance(fact, barrier.ActivationSkipped):
        return fields | {"reason": fact.reason}
    return fields | {"error_class": _name(fact.error_class)}


def _of_hint(
    fact: barrier.HintsQueried | barrier.HintOffered | barrier.HintDelivered,
) -> tuple[str | None, Fields]:
    match fact:
        case barrier.HintsQueried():
            return fact.activation_id, {
                "activation_id": fact.activation_id,
                "result": fact.result,
                "query_digest": _digest(fact.query_digest),
                "query_shape": fact.query_shape,
                "found": fact.found,
                "candidates": fact.candidates,
                "retrieval_ms": fact.retrieval_ms,
                "matcher_version": fact.matcher_version,
                "detail": _excerpt(fact.detail),
            }
        case barrier.HintOffered():
            return fact.activation_id, {
                "hint_id": fact.hint_id,
                "activation_id": fact.activation_id,
                "knowledge_id": _name(fact.knowledge_id),
                "revision": fact.revision,
                "trigger": _name(fact.trigger),
                "source_id": fact.source_id,
                "tier": fact.tier,
                "matched": _kinds(fact.matched),
                "score": round(fact.score, 4),
            }
        case barrier.HintDelivered():
            return fact.hint_id, {
                "hint_id": fact.hint_id,
                "activation_id": fact.activation_id,
                "knowledge_id": _name(fact.knowledge_id),
                "revision": fact.revision,
                "injected": fact.injected,
                "reason": fact.reason,
            }
        case _:
            assert_never(fact)


def _kinds(matched: tuple[str, ...]) -> dict[str, int]:
    """Count what matched by kind: the matched words themselves are words of an item and of an output."""
    return dict(Counter(_name(term.partition(":")[0]) or "" for term in matched))


def _excerpt(text: str) -> str:
    return clean(text, characters_max=EXCERPT_CHARACTERS_MAX).text if text else ""


@lru_cache(maxsize=NAMES_REMEMBERED_MAX)
def _name(text: str | None) -> str | None:
    return clean(text, characters_max=NAME_CHARACTERS_MAX).text if text else None


def _digest(text: str | None) -> str | None:
    return text[:DIGEST_LENGTH] if text else None


def _trace_id(traceparent: str | None) -> str | None:
    parts = (traceparent or "").split("-")
    return parts[1] if len(parts) >= 4 else None
