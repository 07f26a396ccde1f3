"""A run played by hand: the supervisor's pure parts, driven as its shell drives them, without any I/O."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from temporality.actors.supervisor.barrier import LookUp, batch, close
from temporality.actors.supervisor.decider import call_model, decide
from temporality.actors.supervisor.planning import plan, priming, proposals
from temporality.actors.supervisor.settled import settled_turn
from temporality.actors.supervisor.state import RunState, Status, evolve
from temporality.actors.supervisor.tools import ToolTable
from temporality.actors.triggers.tool_failed import ToolFailed as ToolFailedTrigger
from temporality.protocol.agent import (
    ActivationSpec,
    AgentSpec,
    McpServerSpec,
    ModelSpec,
    PrimingSpec,
    ToolsSpec,
)
from temporality.protocol.editorial import KnowledgeState, Scope
from temporality.protocol.hint import Hint, HintRequest, HintResult, Tier, hint_id
from temporality.protocol.identity import RunIdentity
from temporality.protocol.message import Outgoing
from temporality.protocol.model import ModelCompleted, ProviderCall
from temporality.protocol.run import InboxMessage, RunFact, StartRun, ToolsFrozen, TurnClosed
from temporality.protocol.tool import ToolDefinition, ToolFailed, ToolFinished, ToolOutcome, ToolSucceeded
from temporality.protocol.transcript import TranscriptMessage, fold
from temporality.protocol.trigger import Candidate, EmptyDiagnostic, TurnEvaluated
from temporality.protocol.turn import TurnSettled

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)

TABLE = ToolTable(
    (
        ToolDefinition(name="look", tool="look", effect="none", python="m:look"),
        ToolDefinition(
            name="write",
            tool="write",
            effect="once",
            python="m:write",
            parameters={
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
            },
        ),
        ToolDefinition(name="git__log", tool="log", effect="none", mcp_server="git"),
        ToolDefinition(name="hub__log", tool="log", effect="none", mcp_server="hub"),
        ToolDefinition(name="git__diff", tool="diff", effect="none", mcp_server="git"),
    )
)


def agent(**changes: object) -> AgentSpec:
    """An agent with the tools of `TABLE` and no priming, unless it is changed."""
    settings: dict[str, object] = {
        "name": "tester",
        "instructions": "Do it.",
        "model": ModelSpec(name="m"),
        "tools": ToolsSpec(
            mcp={"git": McpServerSpec(command="git"), "hub": McpServerSpec(command="hub")},
            python=("m:look", "m:write"),
        ),
        "priming": PrimingSpec(tokens=0),
        "activation": ActivationSpec(),
        **changes,
    }
    return AgentSpec(**settings)  # type: ignore[arg-type]


def item(knowledge_id: str, proposition: str = "Do it the other way.", *, revision: int = 1) -> Hint:
    """A hint as a retriever offers it; `answer` gives it the id of its activation."""
    return Hint(
        hint_id="",
        knowledge_id=knowledge_id,
        revision=revision,
        proposition=proposition,
        tier=Tier.TERMS,
        matched=("term:way",),
        score=1.0,
        state=KnowledgeState.REVIEWED,
        scope=Scope(),
        cautions=(),
    )


def answer(request: HintRequest, hints: Sequence[Hint]) -> HintResult:
    """What a retriever that finds `hints` answers to a request."""
    offered = tuple(
        Hint(
            **{
                **{name: getattr(hint, name) for name in Hint.__struct_fields__},
                "hint_id": hint_id(request.activation_id, hint.knowledge_id, hint.revision),
            }
        )
        for hint in hints
        if hint.knowledge_id not in request.issued_knowledge_ids
        # As a retriever that does not withhold what could not fit: the supervisor must not rely on it.
    )
    return HintResult(
        activation_id=request.activation_id,
        result="success" if offered else "empty",
        matcher_version="test",
        hints=offered,
        candidates_count=len(offered),
    )


def evaluated(turn: TurnSettled) -> TurnEvaluated:
    """What the built-in `tool.failed` answers."""
    found = list(ToolFailedTrigger().evaluate(turn))
    return TurnEvaluated(
        instance="i",
        candidates=tuple(finding for finding in found if isinstance(finding, Candidate)),
        empty=tuple(finding for finding in found if isinstance(finding, EmptyDiagnostic)),
    )


@dataclass
class Scene:
    """One run: its state, all facts so far, all messages owed, and the transcript they fold to."""

    spec: AgentSpec = field(default_factory=agent)
    knowledge: tuple[Hint, ...] = ()
    state: RunState = field(default_factory=RunState)
    facts: list[RunFact] = field(default_factory=list)
    outgoing: list[Outgoing] = field(default_factory=list)
    transcript: list[TranscriptMessage] = field(default_factory=list)
    looked_up: list[tuple[HintRequest, ...]] = field(default_factory=list)
    retrieval: LookUp | None = None
    messages: int = 0

    def start(self, task: str = "the task") -> "Scene":
        """Start the run and close the message barrier."""
        self.say(StartRun(identity=RunIdentity(run="r1"), agent=self.spec, task=task))
        self.add([ToolsFrozen(digest="d", count=len(TABLE.definitions))])
        self.close_barrier()
        return self

    def say(self, message: InboxMessage) -> tuple[RunFact, ...]:
        """Give the run a message; return its facts without those of a barrier."""
        self.messages += 1
        decision = decide(
            self.state, message, cause=f"m{self.messages}", now=NOW, tools=TABLE, trigger_kind="third.party"
        )
        self.add(decision.facts, decision.outgoing)
        return decision.facts

    def add(self, facts: Iterable[RunFact], outgoing: Iterable[Outgoing] = ()) -> None:
        """Make facts true."""
        for fact in facts:
            self.transcript.extend(fold(self.state.open, fact)[1])
            self.state = evolve(self.state, fact)
            self.facts.append(fact)
        self.outgoing.extend(outgoing)

    def model_calls(self, *calls: tuple[str, str]) -> tuple[str, ...]:
        """Have the model call tools (name, JSON arguments); return the ids of the calls."""
        assert self.state.model_call
        self.say(
            ModelCompleted(
                call=self.state.model_call,
                transcript_digest=self.state.transcript_digest,
                tool_calls=tuple(
                    ProviderCall(id=f"p{index}", name=name, arguments=arguments)
                    for index, (name, arguments) in enumerate(calls)
                ),
            )
        )
        return tuple(call.call for call in self.state.open.calls)

    def finish(self, call: str, outcome: ToolOutcome) -> tuple[RunFact, ...]:
        """Report the outcome of a call."""
        return self.say(ToolFinished(call=call, outcome=outcome))

    def close_barrier(self, answers: Iterable[tuple[str, TurnEvaluated]] | None = None) -> None:
        """Close the open barrier as the shell does; evaluators answer as `tool.failed` unless told else."""
        turn = self.state.status is Status.SETTLED
        if turn:
            settled = settled_turn(self.state, {})
            given = [("tool.failed", evaluated(settled))] if answers is None else list(answers)
            proposed, facts = proposals(self.state, given)
            self.add(facts)
        else:
            proposed = priming(self.state)
        planned = plan(self.state, proposed)
        self.add(planned.facts)
        if planned.activations:
            requests = batch(self.state, planned).resolved()
            self.looked_up.append(requests)
            results = tuple(answer(request, self.knowledge) for request in requests)
            found = any(result.hints for result in results)
            self.add(
                close(self.state, planned, self.retrieval or LookUp("success" if found else "empty", results))
            )
        if turn:
            self.add([TurnClosed(turn=self.state.turn)])
        called, request = call_model(self.state)
        self.add([called], [request])

    def turn(self, *outcomes: ToolOutcome, tool: str = "look") -> None:
        """Play a whole turn: as many calls of one tool as there are outcomes, and the barrier."""
        calls = self.model_calls(*((tool, f'{{"n": {n}}}') for n in range(len(outcomes))))
        for call, outcome in zip(calls, outcomes, strict=True):
            self.finish(call, outcome)
        self.close_barrier()

    def of(self, kind: type) -> list[RunFact]:
        """Return the facts of one kind, in order."""
        return [fact for fact in self.facts if isinstance(fact, kind)]


def failed(text: str, error_class: str = "tool_error") -> ToolFailed:
    """A failed call in a tool's own words."""
    return ToolFailed(error_class=error_class, content=text)


def succeeded(text: str = "fine") -> ToolSucceeded:
    """A call that worked."""
    return ToolSucceeded(content=text)
