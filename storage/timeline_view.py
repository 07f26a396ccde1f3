"""A run as people read it: turns, calls with their outcomes, and what each look-up came to (A53).

A pure fold of public facts into a tree. An activation stands under the call that caused it, or under its turn
if no call of that turn did (priming stands in turn 0); it says what was found, what was injected, and why
the rest was not. Facts may come in any order and twice: they are put in order first. A run that is under way,
or whose first facts are gone, gives a tree with what is known.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from temporality.protocol.fact import PublicFact


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the tree; what is not known is left out of its JSON."""


class HintView(View, frozen=True, kw_only=True):
    """One offered hint; `reason` says why it was not injected."""

    hint_id: str
    knowledge_id: str
    revision: int = 0
    tier: str = ""
    score: float = 0.0
    matched: dict[str, int] = msgspec.field(default_factory=dict)
    injected: bool = False
    reason: str | None = None


class ActivationView(View, frozen=True, kw_only=True):
    """One look-up, or the reason why there was none (`result` skipped); `result` pending: under way."""

    activation_id: str
    trigger: str
    source_id: str
    turn: int
    result: str = "pending"
    skip_reason: str | None = None
    situation_key: str | None = None
    tool: str | None = None
    mcp_server: str | None = None
    error_class: str | None = None
    candidates: int = 0
    found: int = 0
    selected: int = 0
    injected: int = 0
    tokens: int = 0
    retrieval_ms: int = 0
    matcher_version: str | None = None
    detail: str | None = None
    hints: tuple[HintView, ...] = ()


class CallView(View, frozen=True, kw_only=True):
    """One tool call; `outcome` pending: it has no reply yet. `message` is the excerpt of its diagnostic."""

    call: str
    tool: str = ""
    mcp_server: str | None = None
    outcome: str = "pending"
    error_class: str | None = None
    effect: str | None = None
    message: str | None = None
    duration_ms: int = 0
    content_bytes: int = 0
    activations: tuple[ActivationView, ...] = ()


class ModelView(View, frozen=True, kw_only=True):
    """One request to the model; `outcome` replied, failed or pending."""

    call: str
    attempt: int = 1
    model: str = ""
    outcome: str = "pending"
    finish_reason: str | None = None
    error_class: str | None = None
    message: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    duration_ms: int = 0


class BlockView(View, frozen=True, kw_only=True):
    """The block that the barrier put into the history."""

    tokens: int
    knowledge_ids: tuple[str, ...]


class MissView(View, frozen=True, kw_only=True):
    """An evaluator that gave no usable answer."""

    trigger: str
    reason: str
    detail: str | None = None


class TurnView(View, frozen=True, kw_only=True):
    """One turn: the requests that opened it, its calls, and what its barrier did; 0 is before the first."""

    turn: int
    models: tuple[ModelView, ...] = ()
    calls: tuple[CallView, ...] = ()
    activations: tuple[ActivationView, ...] = ()
    missed: tuple[MissView, ...] = ()
    block: BlockView | None = None
    barrier_ms: int = 0


class RunView(View, frozen=True, kw_only=True):
    """A whole run; `ending` is the excerpt of its answer, or why it has none."""

    run: str
    project: str
    status: str = "running"
    agent: str = ""
    model: str = ""
    task: str = ""
    ending: str | None = None
    started: str | None = None
    ended: str | None = None
    trace_id: str | None = None
    turns: tuple[TurnView, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    activations: int = 0
    injected: int = 0


def timeline_of(facts: Sequence[PublicFact]) -> RunView:
    """Return the tree of one run's facts; raises `ValueError` for none, or for those of several runs."""
    if len({fact.run for fact in facts}) != 1:
        raise ValueError("a timeline is of exactly one run")
    ordered = in_order(facts)
    turns = _turns(ordered)
    models = [model for turn in turns for model in turn.models]
    return RunView(
        run=ordered[0].run,
        project=ordered[0].project,
        turns=turns,
        input_tokens=sum(model.input_tokens for model in models),
        output_tokens=sum(model.output_tokens for model in models),
        activations=sum(fact.kind == "activation.requested" for fact in ordered),
        injected=sum(fact.kind == "hint.delivery" and fact.data.get("injected", False) for fact in ordered),
        **_life(ordered),
    )


def in_order(facts: Iterable[PublicFact]) -> list[PublicFact]:
    """Return the facts in the order in which they became true, each once."""
    by_place = {(fact.number, fact.index): fact for fact in facts}
    return [by_place[place] for place in sorted(by_place)]


def chain(facts: Iterable[PublicFact], id: str) -> tuple[PublicFact, ...]:  # noqa: A002 - it is one
    """Return, in order, the facts that `id` belongs to, with all that led to them and came of them (A45).

    `id` is that of a call, an activation or a hint: from any one of them the whole chain is found.
    """
    ordered = in_order(facts)
    known = {id}
    while True:
        found = [fact for fact in ordered if not known.isdisjoint(_ids(fact))]
        # A block holds hints of several activations, so it belongs to a chain but doesn't join two.
        met = known.union(*(_ids(fact) for fact in found if fact.kind != "block.injected"))
        if met == known:
            return tuple(found)
        known = met


_CHAINED = ("call", "source_id", "activation_id", "hint_id")


def _ids(fact: PublicFact) -> set[str]:
    """Return the ids by which a fact belongs to a chain; a model call begins none."""
    if fact.kind.startswith(("model.", "run.")):
        return set()
    own = {fact.data[name] for name in _CHAINED if name in fact.data}
    return own | set(fact.data.get("activation_ids", ()))


def _life(facts: Sequence[PublicFact]) -> dict[str, Any]:
    """Return what the run's own facts say about it as a whole."""
    life: dict[str, Any] = {}
    for fact in facts:
        data = fact.data
        match fact.kind:
            case "run.started":
                life |= {name: data[name] for name in ("agent", "model", "task", "trace_id") if name in data}
                life["started"] = fact.at
            case "run.finished" | "run.failed" | "run.cancelled":
                said = (data.get(name) for name in ("answer", "where", "what", "do", "reason"))
                life["status"] = fact.kind.removeprefix("run.")
                life["ending"] = ": ".join(text for text in said if text) or None
                life["ended"] = fact.at
    return life


def _turns(facts: Sequence[PublicFact]) -> tuple[TurnView, ...]:
    calls = _calls(facts)
    activations = _activations(facts)
    models = _models(facts)
    blocks, missed, barrier_ms = _barriers(facts)
    turn_of_call = {call.call: turn for turn, its in calls.items() for call in its}
    numbers = sorted({*calls, *activations, *models, *blocks, *missed, *barrier_ms})
    return tuple(
        TurnView(
            turn=number,
            models=tuple(models.get(number, ())),
            calls=tuple(
                msgspec.structs.replace(
                    call,
                    activations=tuple(a for a in activations.get(number, ()) if a.source_id == call.call),
                )
                for call in calls.get(number, ())
            ),
            activations=tuple(
                a for a in activations.get(number, ()) if turn_of_call.get(a.source_id) != number
            ),
            missed=tuple(missed.get(number, ())),
            block=blocks.get(number),
            barrier_ms=barrier_ms.get(number, 0),
        )
        for number in numbers
    )


def _known(kind: type[Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `data` that a view of `kind` has."""
    return {name: data[name] for name in kind.__struct_fields__ if name in data}


def _merged(kind: type[Any], facts: Iterable[tuple[str, dict[str, Any]]]) -> dict[int, list[Any]]:
    """Return the views of `kind` by turn, each made of all facts that share its id, in order of the first."""
    fields: dict[str, dict[str, Any]] = {}
    turns: dict[str, int] = {}
    for id_, data in facts:
        fields.setdefault(id_, {}).update(_known(kind, data))
        if "turn" in data:
            turns.setdefault(id_, data["turn"])
    views: dict[int, list[Any]] = {}
    for id_, found in fields.items():
        if id_ in turns:
            views.setdefault(turns[id_], []).append(kind(**found))
    return views


def _calls(facts: Sequence[PublicFact]) -> dict[int, list[CallView]]:
    return _merged(
        CallView,
        (
            (fact.data["call"], fact.data | _message(fact))
            for fact in facts
            if fact.kind in ("tool.called", "tool.replied")
        ),
    )


def _message(fact: PublicFact) -> dict[str, Any]:
    said = fact.data.get("message") or fact.data.get("reason") or fact.data.get("operation_id")
    return {"message": said} if said else {}


def _models(facts: Sequence[PublicFact]) -> dict[int, list[ModelView]]:
    outcomes = {"model.called": "pending", "model.replied": "replied", "model.failed": "failed"}
    return _merged(
        ModelView,
        (
            (fact.data["call"], fact.data | {"outcome": outcomes[fact.kind]})
            for fact in facts
            if fact.kind in outcomes
        ),
    )


def _activations(facts: Sequence[PublicFact]) -> dict[int, list[ActivationView]]:
    hints = _hints(facts)
    views = _merged(
        ActivationView,
        (
            (fact.data["activation_id"], _beginning(fact) | fact.data)
            for fact in facts
            if fact.kind in ("activation.requested", "activation.skipped", "hint.query", "activation.settled")
        ),
    )
    return {
        turn: [msgspec.structs.replace(one, hints=tuple(hints.get(one.activation_id, ()))) for one in its]
        for turn, its in views.items()
    }


def _beginning(fact: PublicFact) -> dict[str, Any]:
    """Return what the first fact of an activation says without saying it: turn 0 is left out of facts."""
    match fact.kind:
        case "activation.requested":
            return {"turn": 0}
        case "activation.skipped":
            return {"turn": 0, "result": "skipped", "skip_reason": fact.data.get("reason")}
        case _:
            return {}


def _hints(facts: Sequence[PublicFact]) -> dict[str, list[HintView]]:
    fields: dict[str, dict[str, Any]] = {}
    activations: dict[str, str] = {}
    for fact in facts:
        if fact.kind in ("hint.offered", "hint.delivery"):
            hint_id = fact.data["hint_id"]
            fields.setdefault(hint_id, {}).update(_known(HintView, fact.data))
            activations[hint_id] = fact.data["activation_id"]
    hints: dict[str, list[HintView]] = {}
    for hint_id, found in fields.items():
        hints.setdefault(activations[hint_id], []).append(HintView(**found))
    return hints


def _barriers(
    facts: Sequence[PublicFact],
) -> tuple[dict[int, BlockView], dict[int, list[MissView]], dict[int, int]]:
    """Return block, evaluators that gave no answer, and duration of each barrier, by turn."""
    blocks: dict[int, BlockView] = {}
    missed: dict[int, list[MissView]] = {}
    barrier_ms: dict[int, int] = {}
    turn = 0
    for fact in facts:
        data = fact.data
        match fact.kind:
            case "model.replied":
                turn = data.get("turn", turn)
            case "turn.closed":
                barrier_ms[data.get("turn", turn)] = data.get("barrier_ms", 0)
            case "evaluator.missed":
                missed.setdefault(turn, []).append(MissView(**_known(MissView, data)))
            case "block.injected":
                blocks[turn] = BlockView(
                    tokens=data.get("tokens", 0), knowledge_ids=tuple(data.get("knowledge_ids", ()))
                )
    return blocks, missed, barrier_ms
