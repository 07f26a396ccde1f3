"""One step of a run: what a batch of messages means, barrier included, before anything is stored.

The pure parts decide; this file asks the questions between them (tools, evaluators, retriever) and hands the
answers on. A step that is never committed leaves nothing behind.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from anyio import to_thread
from opentelemetry.trace import SpanKind

from temporality.actors import conventions
from temporality.actors.bus.port import AnswerTimeout, BusError, NoResponders
from temporality.actors.host import Host, QuestionRefused, Received
from temporality.actors.supervisor.barrier import LookUp, batch, close
from temporality.actors.supervisor.decider import UnknownRun, call_model, decide, too_many_turns
from temporality.actors.supervisor.evaluators import Evaluators
from temporality.actors.supervisor.planning import Proposal, plan, priming, proposals
from temporality.actors.supervisor.retrieval import Retrieval
from temporality.actors.supervisor.runs import LoadedRun
from temporality.actors.supervisor.settled import settled_turn
from temporality.actors.supervisor.state import BARRIER_OPEN, RunState, Status, evolve
from temporality.actors.supervisor.tools import EMPTY_TABLE, ToolTable
from temporality.protocol import subjects
from temporality.protocol.activation import BlockInjected, EvaluatorMissed
from temporality.protocol.codec import decode, encode
from temporality.protocol.errors import InvalidMessage
from temporality.protocol.message import TRACE_HEADER, Outgoing
from temporality.protocol.run import InboxMessage, RunFact, RunFailed, ToolsFrozen, TurnClosed
from temporality.protocol.tool import (
    ListTools,
    ToolsAnswer,
    ToolsListed,
    ToolsUnavailable,
    blob_of,
    content_of,
)
from temporality.protocol.trigger import CandidateProposed
from temporality.protocol.turn import TurnSettled

TOOLS_TIMEOUT_S = 60.0
"""How long an executor may take to start an agent's MCP servers and list their tools."""

EXECUTOR_WAIT_S = 20.0
EXECUTOR_RETRY_DELAY_S = 0.25
"""A run that starts while no executor is alive waits this long for one before it fails with a clear word."""

CLEANED_IN_THE_LOOP_MAX = 4_096
"""Characters of replies whose cleaning takes less than handing it to a thread does."""

TABLES_CACHED_MAX = 64


class BlobMissing(BusError):
    """The blob of a run's frozen tools can't be read: without it no call could be judged."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a message is none of this run's: reason and detail of its dead letter."""

    reason: str
    detail: str


@dataclass(slots=True)
class Step:
    """What a batch of messages means: the state after it, its facts, and what they owe.

    `refused` maps the ids of messages that go to the dead letters to why.
    """

    state: RunState
    facts: list[RunFact] = field(default_factory=list)
    outgoing: list[Outgoing] = field(default_factory=list)
    refused: dict[str, Refusal] = field(default_factory=dict)

    def add(self, facts: Iterable[RunFact], outgoing: Iterable[Outgoing] = ()) -> None:
        """Make facts part of the step."""
        for fact in facts:
            self.state = evolve(self.state, fact)
            self.facts.append(fact)
        self.outgoing.extend(outgoing)


NO_EXECUTOR = ToolsUnavailable(
    where="tools",
    what="no tool executor is running",
    do="start one: temporality actor executor (temporality up starts all actors)",
)
TOOLS_SILENT = ToolsUnavailable(
    where="tools",
    what=f"the tools could not be listed within {TOOLS_TIMEOUT_S:.0f} s",
    do="start the MCP servers by hand to see what they wait for",
)

UNKNOWN_RUN = Refusal("unknown_run", "no such run")
UNKNOWN_TRIGGER = Refusal("unknown_trigger", "no live evaluator has this instance")


class Steps:
    """Take steps of runs, one at a time each, with what the process shares between them."""

    def __init__(self, host: Host, evaluators: Evaluators) -> None:
        self._host = host
        self._evaluators = evaluators
        self._retrieval = Retrieval(host.bus, host.clock)
        self._tables: dict[str, ToolTable] = {}

    async def take(self, loaded: LoadedRun, messages: Sequence[Received[InboxMessage]]) -> Step:
        """Decide what the messages mean and, if they open the barrier, close it.

        Raises `BusError` when the outside can't be asked for what a decision needs; nothing is changed then.
        """
        step = Step(loaded.state)
        tools = await self._table(loaded.state.tools)
        for received in messages:
            message = received.message
            kind = None
            if isinstance(message, CandidateProposed):
                kind = await self._kind_of(message.instance)
                if kind is None:
                    step.refused[received.id] = UNKNOWN_TRIGGER
                    continue
            try:
                decision = decide(
                    step.state,
                    message,
                    cause=received.id,
                    now=self._host.clock.now(),
                    tools=tools,
                    traceparent=received.traceparent,
                    trigger_kind=kind,
                )
            except UnknownRun:
                step.refused[received.id] = UNKNOWN_RUN
                continue
            step.add(decision.facts, decision.outgoing)
        if step.state.status in BARRIER_OPEN:
            await self._barrier(step)
        return step

    async def _kind_of(self, instance: str) -> str | None:
        """Return an evaluator's kind; one that has only just started is looked for once more (A10)."""
        kind = self._evaluators.kind_of(instance)
        if kind is None:
            await self._evaluators.renew_roster()
            kind = self._evaluators.kind_of(instance)
        return kind

    async def _barrier(self, step: Step) -> None:
        """Close the open barrier: ask, look up, choose, and decide the next model call."""
        started = self._host.clock.monotonic()
        turn = step.state.status is Status.SETTLED
        if turn and step.state.turn >= step.state.spec.limits.turns_max:
            # No request follows, so nothing can be injected into one.
            step.add(too_many_turns(step.state))
            return
        if turn:
            settled = await self._settled(step.state)
            proposed, answered = await self._gather(step, settled)
            await self._look_up(step, proposed, settled)
            elapsed_ms = round((self._host.clock.monotonic() - started) * 1000)
            step.add([TurnClosed(turn=step.state.turn, evaluators=answered, barrier_ms=elapsed_ms)])
        else:
            await self._freeze_tools(step)
            if step.state.status is not Status.OPENING:
                return
            await self._look_up(step, priming(step.state), None)
        called, request = call_model(step.state)
        step.add([called], [request])

    async def _settled(self, state: RunState) -> TurnSettled:
        """Return what evaluators may see; long contents are cleaned beside the loop, which has leases to
        keep.
        """
        texts = await self._texts(state)
        characters = sum(len(content_of(reply)) for reply in state.open.replies.values())
        if characters + sum(map(len, texts.values())) <= CLEANED_IN_THE_LOOP_MAX:
            return settled_turn(state, texts)
        return await to_thread.run_sync(settled_turn, state, texts)

    async def _gather(self, step: Step, settled: TurnSettled) -> tuple[list[Proposal], tuple[str, ...]]:
        state = step.state
        gathered = await self._evaluators.ask(
            settled,
            deadline_ms=state.spec.activation.deadlines.evaluators_ms,
            traceparent=self._host.tracing.traceparent(),
        )
        step.add(_distinct(gathered.missed))
        proposed, facts = proposals(state, gathered.answers)
        step.add(facts)
        return proposed, tuple(kind for kind, _ in gathered.answers)

    async def _look_up(self, step: Step, proposed: Sequence[Proposal], settled: TurnSettled | None) -> None:
        if not proposed:
            return
        breaker_open = self._retrieval.breaker_open
        planned = plan(step.state, proposed, settled=settled, breaker_open=breaker_open)
        step.add(planned.facts)
        if not planned.activations:
            return
        tracing, spec = self._host.tracing, step.state.spec
        question = batch(step.state, planned)
        project = question.context.project or step.state.who.project
        with tracing.span(
            conventions.RETRIEVAL,
            kind=SpanKind.CLIENT,
            attributes={
                conventions.GEN_AI_OPERATION_NAME: conventions.RETRIEVAL,
                conventions.GEN_AI_DATA_SOURCE_ID: project,
                conventions.ACTIVATIONS: len(planned.activations),
            },
        ) as span:
            looked_up: LookUp = await self._retrieval.look_up(
                question,
                planned,
                project=project,
                deadline_ms=spec.activation.deadlines.retrieval_ms,
                traceparent=tracing.traceparent(),
            )
            span.set_attribute(conventions.RETRIEVAL_RESULT, looked_up.result)
        facts = close(step.state, planned, looked_up)
        step.add(facts)
        for block in (fact for fact in facts if isinstance(fact, BlockInjected)):
            with tracing.span(
                conventions.INJECT,
                attributes={
                    conventions.HINTS_INJECTED: len(block.knowledge_ids),
                    conventions.HINT_TOKENS: block.tokens,
                    conventions.ACTIVATION_ID: ",".join(block.activation_ids),
                },
            ):
                pass

    async def _freeze_tools(self, step: Step) -> None:
        """Fix the run's tools, or end it with what is wrong with them."""
        spec = step.state.spec.tools
        if not spec.mcp and not spec.python:
            step.add([ToolsFrozen(digest=None)])
            return
        answer = await self._ask_tools(ListTools(mcp=spec.mcp, python=spec.python))
        if isinstance(answer, ToolsListed):
            table = ToolTable(answer.tools)
            digest, content = table.blob()
            await self._host.bus.put_blob(digest, content)
            self._keep(digest, table)
            step.add([ToolsFrozen(digest=digest, count=len(answer.tools))])
        else:
            step.add([RunFailed(where=answer.where, what=answer.what, do=answer.do)])

    async def _ask_tools(self, question: ListTools) -> ToolsAnswer:
        subject, clock = subjects.ask("executor", "tools"), self._host.clock
        traceparent = self._host.tracing.traceparent()
        headers = {TRACE_HEADER: traceparent} if traceparent else {}
        waited_until = clock.monotonic() + EXECUTOR_WAIT_S
        while True:
            try:
                answer = await self._host.bus.request(
                    subject, encode(question), timeout_s=TOOLS_TIMEOUT_S, headers=headers
                )
            except NoResponders:
                if clock.monotonic() >= waited_until:
                    return NO_EXECUTOR
                await clock.sleep_until(clock.monotonic() + EXECUTOR_RETRY_DELAY_S)
                continue
            except AnswerTimeout:
                return TOOLS_SILENT
            return _tools_answer(answer.payload)

    async def _table(self, digest: str | None) -> ToolTable:
        if digest is None:
            return EMPTY_TABLE
        table = self._tables.get(digest)
        if table is None:
            content = await self._host.bus.get_blob(digest)
            if content is None:
                raise BlobMissing(f"the tools {digest} of a run can't be read")
            table = ToolTable.from_blob(content)
            self._keep(digest, table)
        return table

    def _keep(self, digest: str, table: ToolTable) -> None:
        if len(self._tables) >= TABLES_CACHED_MAX:
            self._tables.pop(next(iter(self._tables)))
        self._tables[digest] = table

    async def _texts(self, state: RunState) -> dict[str, str]:
        """Fetch the long contents that the turn's outcomes refer to."""
        texts: dict[str, str] = {}
        for outcome in state.open.replies.values():
            blob = blob_of(outcome)
            if blob is not None and blob.digest not in texts:
                content = await self._host.bus.get_blob(blob.digest)
                texts[blob.digest] = (content or b"").decode("utf-8", "replace")
        return texts


def _tools_answer(payload: bytes) -> ToolsAnswer:
    """Read an executor's answer; one that refuses, or is none, is why the run can't have its tools."""
    try:
        answer: ToolsAnswer | QuestionRefused = decode(payload, ToolsAnswer | QuestionRefused)
    except InvalidMessage:
        answer = QuestionRefused(message="the answer is no list of tools")
    if isinstance(answer, QuestionRefused):
        what = f"the executor could not list the tools: {answer.message[:500]}"
        do = "look into the executor's log, and run the same version everywhere"
        return ToolsUnavailable(where="tools", what=what, do=do)
    return answer


def _distinct(missed: Iterable[EvaluatorMissed]) -> list[EvaluatorMissed]:
    """Keep one miss a kind and reason: a flood of late answers is one fact."""
    return list({(miss.kind, miss.reason): miss for miss in missed}.values())
