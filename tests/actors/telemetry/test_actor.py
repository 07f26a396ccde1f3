"""Every fact of every commit is published and in the timeline, whatever fails on the way."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from temporality.actors.bus.memory import MemoryBus, MemoryServer
from temporality.actors.bus.port import Bus
from temporality.actors.clock import SystemClock
from temporality.actors.host import Host, headers_of
from temporality.actors.telemetry.actor import TelemetryActor
from temporality.actors.telemetry.decider import project
from temporality.actors.tracing import Tracing
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.fact import PublicFact
from temporality.protocol.message import TRACE_HEADER
from temporality.protocol.run import Commit
from temporality.protocol.streams import DEAD, FACTS, RUNS, stream_specs
from temporality.storage.timeline import SqliteTimeline, open_timeline

from .runs import PROJECT, commits

WAIT_S = 20.0
TRACEPARENT = f"00-{'a' * 32}-{'b' * 16}-01"

Telemetry = Callable[[], AbstractAsyncContextManager[SqliteTimeline]]


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


@pytest.fixture
async def bus(server: MemoryServer) -> AsyncIterator[MemoryBus]:
    async with server.connect(name="test") as connected:
        await connected.declare(stream_specs(4))
        yield connected


@pytest.fixture
def telemetry(server: MemoryServer, tmp_path: Path) -> Telemetry:
    """Run the actor while the context is open, and give the timeline that it keeps."""

    @asynccontextmanager
    async def run() -> AsyncIterator[SqliteTimeline]:
        async with (
            server.connect(name="telemetry") as bus,
            open_timeline(tmp_path / "timeline.db") as timeline,
            running(bus, timeline),
        ):
            yield timeline

    return run


@asynccontextmanager
async def running(bus: Bus, timeline: SqliteTimeline) -> AsyncIterator[None]:
    host = Host(
        bus, actor="telemetry", name="telemetry-1", clock=SystemClock(), tracing=Tracing(), ack_wait_s=1.0
    )

    async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        await TelemetryActor(host, timeline).run(task_status=task_status)

    async with anyio.create_task_group() as tasks:
        await tasks.start(run)
        yield
        tasks.cancel_scope.cancel()


async def commit(bus: Bus, made: Sequence[Commit]) -> None:
    for one in made:
        await bus.publish(
            subjects.commit(one.run),
            encode(one),
            message_id=one.id,
            headers=headers_of(one.id, "m", TRACEPARENT),
        )


async def published(bus: Bus, count: int) -> list[PublicFact]:
    """The first facts of the stream, as soon as there are so many."""
    with anyio.fail_after(WAIT_S):
        async with bus.follow(FACTS, subjects.facts()) as stored:
            return [decode((await anext(stored)).payload, PublicFact) for _ in range(count)]


async def kept(bus: Bus, timeline: SqliteTimeline, count: int) -> None:
    """Return when the timeline has come as far as the stream with so many facts."""
    await published(bus, count)
    last = await bus.last(FACTS, subjects.facts())
    assert last is not None
    with anyio.fail_after(WAIT_S):
        while await timeline.position() < last.sequence:
            await anyio.lowlevel.checkpoint()


def expected(*runs: str) -> list[PublicFact]:
    return [fact for run in runs for one in commits(run) for fact in project(one, project=PROJECT)]


def ids(facts: Sequence[PublicFact]) -> list[str]:
    return [fact.id for fact in facts]


async def test_facts_of_a_run_are_published_in_order_under_their_own_ids(
    bus: MemoryBus, telemetry: Telemetry
) -> None:
    """A45, A49"""
    async with telemetry():
        await commit(bus, commits())
        assert await published(bus, len(expected("r1"))) == expected("r1")
    first, *_ = await bus.read(FACTS, subjects.facts("r1"))
    assert first.subject == "temporality.fact.demo.r1.run-started"
    assert first.headers["Nats-Msg-Id"] == "r1.1.0"
    assert first.headers[TRACE_HEADER] == TRACEPARENT


async def test_timeline_holds_each_fact_once(bus: MemoryBus, telemetry: Telemetry) -> None:
    async with telemetry() as timeline:
        await commit(bus, commits())
        await kept(bus, timeline, len(expected("r1")))
        assert await timeline.facts("r1") == tuple(expected("r1"))
        (summary,) = await timeline.runs(10)
        assert (summary.status, summary.turns, summary.activations, summary.injected) == ("finished", 3, 2, 1)


async def test_commits_made_while_telemetry_is_down_become_facts_late(
    bus: MemoryBus, telemetry: Telemetry
) -> None:
    """A43"""
    first, *others = commits()
    async with telemetry() as timeline:
        await commit(bus, [first])
        await kept(bus, timeline, len(first.facts))
    await commit(bus, others)
    assert len(await bus.read(FACTS, subjects.facts())) == len(first.facts)
    async with telemetry() as timeline:
        await kept(bus, timeline, len(expected("r1")))
        assert await timeline.facts("r1") == tuple(expected("r1"))


async def test_lost_acknowledgement_of_a_fact_makes_no_second_one(
    server: MemoryServer, bus: MemoryBus, telemetry: Telemetry
) -> None:
    """A49"""
    server.faults.lose_next_ack("temporality.fact.>")
    async with telemetry() as timeline:
        await commit(bus, commits())
        await kept(bus, timeline, len(expected("r1")))
        assert len(await bus.read(FACTS, subjects.facts())) == len(expected("r1"))


async def test_commit_delivered_twice_makes_no_second_facts(
    server: MemoryServer, bus: MemoryBus, telemetry: Telemetry
) -> None:
    for _ in commits():
        server.faults.repeat_next_delivery("temporality.run.>")
    async with telemetry() as timeline:
        await commit(bus, commits())
        await kept(bus, timeline, len(expected("r1")))
        assert await timeline.facts("r1") == tuple(expected("r1"))
    assert len(await bus.read(FACTS, subjects.facts())) == len(expected("r1"))


async def test_full_disk_delays_facts_and_loses_none(
    server: MemoryServer, bus: MemoryBus, telemetry: Telemetry
) -> None:
    await commit(bus, commits())
    server.faults.disk_full = True
    async with telemetry() as timeline:
        with anyio.move_on_after(0.3):
            await published(bus, 1)
        assert await bus.last(FACTS, subjects.facts()) is None
        server.faults.disk_full = False
        await kept(bus, timeline, len(expected("r1")))
        assert await timeline.facts("r1") == tuple(expected("r1"))


async def test_project_of_a_run_is_read_from_its_first_commit_after_a_restart(
    bus: MemoryBus, telemetry: Telemetry
) -> None:
    first, *others = commits()
    async with telemetry() as timeline:
        await commit(bus, [first])
        await kept(bus, timeline, len(first.facts))
    async with telemetry():
        await commit(bus, others)
        facts = await published(bus, len(expected("r1")))
    assert {fact.project for fact in facts} == {PROJECT}


async def test_run_whose_first_commits_are_gone_keeps_the_project_of_its_facts(
    bus: MemoryBus, telemetry: Telemetry
) -> None:
    *earlier, last = commits()
    async with telemetry() as timeline:
        await commit(bus, earlier)
        await kept(bus, timeline, len(expected("r1")) - len(last.facts))
    await commit(bus, [last])
    await bus.purge(RUNS, subjects.commit("r1"), keep=1)
    async with telemetry():
        facts = await published(bus, len(expected("r1")))
    assert facts == expected("r1")


async def test_commit_of_a_run_that_nobody_knows_is_a_dead_letter_and_holds_nothing_up(
    bus: MemoryBus, telemetry: Telemetry
) -> None:
    async with telemetry():
        await commit(bus, commits("orphan")[1:2])
        await commit(bus, commits("r1"))
        assert ids(await published(bus, len(expected("r1")))) == ids(expected("r1"))
        letter = await bus.last(DEAD, subjects.dead(RUNS, "unknown_run"))
    assert letter is not None


async def test_malformed_commit_is_a_dead_letter_and_holds_nothing_up(
    bus: MemoryBus, telemetry: Telemetry
) -> None:
    async with telemetry():
        await bus.publish(subjects.commit("bad"), b"{}", message_id="bad")
        await commit(bus, commits("r1"))
        assert ids(await published(bus, len(expected("r1")))) == ids(expected("r1"))
        letter = await bus.last(DEAD, subjects.dead(RUNS, "malformed"))
    assert letter is not None


async def test_fact_that_can_not_be_read_is_passed_over(bus: MemoryBus, telemetry: Telemetry) -> None:
    await bus.publish("temporality.fact.demo.r0.odd", b"[]", message_id="odd")
    async with telemetry() as timeline:
        await commit(bus, commits())
        with anyio.fail_after(WAIT_S):
            while len(await timeline.facts("r1")) < len(expected("r1")):
                await anyio.lowlevel.checkpoint()


async def test_commit_without_a_fact_is_acknowledged(bus: MemoryBus, telemetry: Telemetry) -> None:
    async with telemetry():
        await commit(bus, [*commits(), Commit(id="e", run="r1", number=9, predecessor=0, at="", facts=())])
        await published(bus, len(expected("r1")))
        with anyio.fail_after(WAIT_S):
            while await bus.pending(RUNS, "telemetry") != (0, 0):
                await anyio.lowlevel.checkpoint()
