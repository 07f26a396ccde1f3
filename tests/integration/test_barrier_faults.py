"""Evaluators and retrievers that are gone, hang, lie or come late cost a deadline at most, and never the run.

The supervisor, the bus and the other actors are real; the ones at fault are stood in for on the real bus.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio

from temporality.actors.bus.port import Bus, Message
from temporality.actors.bus.service import Endpoint, Handler, serve
from temporality.deploy.assembly import ACTORS
from temporality.protocol import subjects
from temporality.protocol.activation import (
    BlockInjected,
)
from temporality.protocol.codec import decode, encode
from temporality.protocol.editorial import KnowledgeState, Scope
from temporality.protocol.fact import PublicFact
from temporality.protocol.hint import Hint, HintBatch, HintBatchAnswer, HintResult, Tier, hint_id
from temporality.protocol.identity import new_run_id
from temporality.protocol.run import ModelCalled, TurnClosed
from temporality.protocol.trigger import TRIGGER_SERVICE, Candidate, TurnEvaluated
from temporality.protocol.turn import TurnSettled

from .faulty_tools import GATED, TOOLS
from .stage import UNHURRIED_LEASE_S, Stage, data_of, roster_renewed, stage, until

WAIT_S = 30.0
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

FAILS_EACH_TURN = """
replies:
  - when: {turn: {max: 5}}
    reply: {tool_calls: [{name: fail, arguments: {n: 1}}]}
  - reply: {content: done}
"""


# --- retrievers -----------------------------------------------------------------------------------------


Answer = Callable[[HintBatch], Awaitable[bytes | None]]


@asynccontextmanager
async def retriever(bus: Bus, answer: Answer) -> AsyncIterator[None]:
    """Stand where the retriever stands, and answer with any bytes, or None to stay silent."""

    async def serve_one(question: Message) -> None:
        payload = await answer(decode(question.payload, HintBatch))
        if payload is not None and question.reply is not None:
            await bus.send(question.reply, payload)

    async def work(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with (
            bus.subscribe(subjects.all_hints_find(), queue="retriever") as questions,
            anyio.create_task_group() as tasks,
        ):
            task_status.started()
            async for question in questions:
                tasks.start_soon(serve_one, question)

    async with anyio.create_task_group() as tasks:
        await tasks.start(work)
        yield
        tasks.cancel_scope.cancel()


def offering(
    batch: HintBatch, *, activation: str | None = None, of: str | None = None, count: int = 1
) -> bytes:
    """An answer that offers hints: for the batch's activations or another one, with ids of theirs or not."""
    results = []
    for request in batch.requests:
        hints = tuple(
            Hint(
                hint_id=hint_id(of or request.activation_id, f"vpn-{n}", 1),
                knowledge_id=f"vpn-{n}",
                revision=1,
                proposition=f"Connect VPN {n} first.",
                tier=Tier.TOOL,
                matched=("tool:fail",),
                score=1.0,
                state=KnowledgeState.REVIEWED,
                scope=Scope(),
                cautions=(),
            )
            for n in range(count)
        )
        results.append(
            HintResult(
                activation_id=activation or request.activation_id,
                result="success",
                matcher_version="fake",
                hints=hints,
            )
        )
    return encode(HintBatchAnswer(results=tuple(results)))


@asynccontextmanager
async def stage_without_retriever(folder: Path) -> AsyncIterator[Stage]:
    others = [kind for kind in ACTORS if kind != "retriever"]
    async with stage(folder, FAILS_EACH_TURN, actors=others, lease_ttl_s=UNHURRIED_LEASE_S) as on:
        yield on


async def run_failing(on: Stage, retrieval_ms: int = 5_000) -> list[PublicFact]:
    """Run an agent whose tool fails in the same words at each of its first turns."""
    agent = on.agent(
        tools={"python": TOOLS},
        priming={"tokens": 0},
        activation={"deadlines": {"retrieval_ms": retrieval_ms, "evaluators_ms": 5_000}},
    )
    result = await on.run(agent)
    assert (result.status, result.answer) == ("finished", "done"), result
    return await on.public_facts(result.run)


async def test_retriever_that_breaks_in_any_way_costs_the_hint_and_not_the_run(tmp_path: Path) -> None:
    """A42: what went wrong is an error in the facts, which is not the same as finding nothing."""

    async def rubbish(_: HintBatch) -> bytes:
        return b'{"results": [{"activation_id": 7'

    async def huge(batch: HintBatch) -> bytes:
        return offering(batch) + b" " * 600_000

    async def foreign(batch: HintBatch) -> bytes:
        return offering(batch, activation="a-of-another-run")

    async def foreign_hint(batch: HintBatch) -> bytes:
        return offering(batch, of="a-of-another-run")

    async def flood(batch: HintBatch) -> bytes:
        return offering(batch, count=65)

    async def nothing(batch: HintBatch) -> bytes:
        found = [
            HintResult(activation_id=request.activation_id, result="empty", matcher_version="fake")
            for request in batch.requests
        ]
        return encode(HintBatchAnswer(results=tuple(found)))

    faults = {
        "the answer is malformed": rubbish,
        "the answer has 600": huge,
        "the answer is for other activations": foreign,
        "the answer holds a hint of another activation": foreign_hint,
        "the answer offers 65 hints": flood,
    }
    async with stage_without_retriever(tmp_path) as on:
        facts = await run_failing(on)
        assert_broken(facts, "no retriever is running")
        for detail, answer in faults.items():
            async with retriever(on.bus, answer):
                facts = await run_failing(on)
            assert_broken(facts, detail)
        async with retriever(on.bus, nothing):
            facts = await run_failing(on)
        assert [data["result"] for data in data_of(facts, "hint.query")] == ["empty"]
        assert not [message for request in on.recorded for message in request.blocks]


def assert_broken(facts: list[PublicFact], detail: str) -> None:
    """Each turn was looked up anew, since an error leaves the situation open (A30), and each was an error."""
    queries = data_of(facts, "hint.query")
    assert [data["result"] for data in queries] == ["error"] * 5
    assert all(str(data["detail"]).startswith(detail) for data in queries), queries
    assert [data["result"] for data in data_of(facts, "activation.settled")] == ["error"] * 5
    assert not data_of(facts, "hint.offered")


async def test_retriever_that_hangs_is_not_asked_after_three_deadlines(tmp_path: Path) -> None:
    """A42: the breaker; what it skips says so."""
    asked: list[HintBatch] = []

    async def hang(batch: HintBatch) -> None:
        asked.append(batch)

    async with stage_without_retriever(tmp_path) as on, retriever(on.bus, hang):
        facts = await run_failing(on, retrieval_ms=50)
    assert [data["result"] for data in data_of(facts, "hint.query")] == ["timeout"] * 3
    assert [data["result"] for data in data_of(facts, "activation.settled")] == ["timeout"] * 3
    assert [(data["turn"], data["reason"]) for data in data_of(facts, "activation.skipped")] == [
        (4, "breaker"),
        (5, "breaker"),
    ]
    assert len(asked) == 3


async def test_hint_that_arrives_after_the_barrier_is_neither_injected_nor_issued(tmp_path: Path) -> None:
    """A44"""
    run = new_run_id()

    async def late(batch: HintBatch) -> bytes | None:
        if len(answered) == 1:
            return offering(batch)
        await until(on.bus, run, lambda fact: isinstance(fact, ModelCalled) and fact.turn == 2)
        answered.append(batch)
        return offering(batch)

    answered: list[HintBatch] = []
    async with stage_without_retriever(tmp_path) as on, retriever(on.bus, late):
        agent = on.agent(
            tools={"python": TOOLS},
            priming={"tokens": 0},
            activation={"deadlines": {"retrieval_ms": 400, "evaluators_ms": 5_000}},
        )
        result = await on.run(agent, run=run)
        facts = await on.public_facts(run)
        blocks = await on.facts_of(run, BlockInjected)
    assert result.status == "finished"
    assert answered, "the late answer was never sent"
    assert [data["result"] for data in data_of(facts, "hint.query")][:2] == ["timeout", "success"]
    second = data_of(facts, "activation.requested")[1]
    assert [block.activation_ids for block in blocks if isinstance(block, BlockInjected)] == [
        (second["activation_id"],)
    ], "what was answered too late for the first turn was found anew for the second"
    assert [request.roles.count("block") for request in on.recorded[:3]] == [0, 0, 1]


# --- evaluators -----------------------------------------------------------------------------------------


@asynccontextmanager
async def evaluators(on: Stage, handlers: Mapping[str, Handler]) -> AsyncIterator[dict[str, str]]:
    """Register evaluators, by kind, that answer with any bytes; give the roster's id of each."""
    ids: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        for kind, handler in handlers.items():
            endpoint = Endpoint(
                name="evaluate", subject=subjects.all_turns_settled(), handler=handler, queue=kind
            )
            service = await stack.enter_async_context(
                serve(
                    on.bus,
                    name=TRIGGER_SERVICE,
                    version="1.0.0",
                    metadata={"kind": kind},
                    endpoints=[endpoint],
                )
            )
            ids[kind] = service.info.id
        await roster_renewed(on.bus)
        yield ids


def turn_of(question: Message) -> int:
    turn: TurnSettled = decode(question.payload, TurnSettled)
    return turn.turn


async def crashes(_: Message) -> bytes:
    """Fail with a text that is nobody's business."""
    raise ValueError(SECRET)


async def rambles(_: Message) -> bytes:
    """Answer with something else."""
    return b"{}"


async def pretends(_: Message) -> bytes:
    """Answer in the name of somebody who is not in the roster."""
    return encode(TurnEvaluated(instance="somebody-else", candidates=(Candidate(situation="x"),)))


async def test_evaluator_that_hangs_lies_crashes_or_is_late_costs_one_deadline_once(tmp_path: Path) -> None:
    """A11: one is waited for, once; it is asked on, and waited for again after it has answered in time."""
    run, gate = new_run_id(), tmp_path / "gate"
    os.mkfifo(gate)
    asked: dict[str, list[int]] = {"hangs": [], "heals": []}

    async def hangs(question: Message) -> bytes:
        asked["hangs"].append(turn_of(question))
        await anyio.sleep_forever()
        return b""

    async def heals(question: Message) -> bytes:
        """Hang in turns 1 and 3, and answer in turn 2."""
        asked["heals"].append(turn_of(question))
        if turn_of(question) != 2:
            await anyio.sleep_forever()
        return encode(TurnEvaluated(instance=ids["heals"]))

    async def late(question: Message) -> None:
        """Answer turn 1 when it is over; the tool of turn 2 ends after that."""
        if turn_of(question) == 1:
            await until(on.bus, run, lambda fact: isinstance(fact, TurnClosed) and fact.turn == 1)
            answer = TurnEvaluated(instance=ids["late"], candidates=(Candidate(situation="x"),))
            await on.bus.send(question.reply or "", encode(answer))
            await anyio.to_thread.run_sync(gate.write_text, "open")

    handlers: dict[str, Handler] = {
        handler.__name__: handler for handler in (hangs, heals, late, crashes, rambles, pretends)
    }
    async with (
        stage(tmp_path, GATED.format(gate=gate), lease_ttl_s=UNHURRIED_LEASE_S) as on,
        evaluators(on, handlers) as ids,
    ):
        agent = on.agent(tools={"python": TOOLS}, activation={"deadlines": {"evaluators_ms": 700}})
        result = await on.run(agent, run=run)
        facts = await on.public_facts(run)
    assert result.status == "finished", result
    assert asked == {"hangs": [1, 2, 3], "heals": [1, 2, 3]}
    assert missed_by_turn(facts) == {
        1: {
            ("hangs", "no_answer"),
            ("heals", "no_answer"),
            ("late", "no_answer"),
            ("pretends", "no_answer"),
            ("unknown", "unknown"),
            ("crashes", "invalid"),
            ("rambles", "invalid"),
        },
        2: {("late", "late"), ("unknown", "unknown"), ("crashes", "invalid"), ("rambles", "invalid")},
        3: {("heals", "no_answer"), ("unknown", "unknown"), ("crashes", "invalid"), ("rambles", "invalid")},
    }
    assert all("tool.failed" in data["evaluators"] for data in data_of(facts, "turn.closed"))
    assert {data["trigger"] for data in data_of(facts, "activation.requested")} == {"task.priming"}
    details = {
        data.get("detail") for data in data_of(facts, "evaluator.missed") if data["trigger"] == "crashes"
    }
    assert details == {"answered with error 500"}


def missed_by_turn(facts: list[PublicFact]) -> dict[int, set[tuple[object, object]]]:
    missed: dict[int, set[tuple[object, object]]] = {}
    waiting: set[tuple[object, object]] = set()
    for fact in facts:
        if fact.kind == "evaluator.missed":
            waiting.add((fact.data["trigger"], fact.data["reason"]))
        elif fact.kind == "turn.closed":
            missed[fact.data["turn"]] = waiting
            waiting = set()
    return missed
