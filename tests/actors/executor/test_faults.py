"""A bus that loses acknowledgements, refuses to store, or goes away: a call acts once and is answered."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from temporality.actors.bus.memory import Faults, MemoryServer
from temporality.actors.bus.nats import connect
from temporality.actors.clock import VirtualClock
from temporality.deploy.embedded import embedded_server
from temporality.protocol import subjects
from temporality.protocol.tool import OperationClaimed, OperationRecorded, ToolCall, ToolSucceeded

CallOf = Callable[..., ToolCall]
ACTED = ToolSucceeded(content="acted call-1")
OPERATION = subjects.operation("run-1", "call-1")
INBOX = "temporality.inbox.>"


@dataclass
class Troubled:
    """A desk on a bus in memory whose time runs as fast as everybody can follow."""

    desk: Any
    clock: VirtualClock
    faults: Faults


@pytest.fixture
async def troubled(open_desk: Any) -> AsyncIterator[Troubled]:
    clock = VirtualClock()
    server = MemoryServer(clock)
    async with server.connect() as bus, open_desk(bus) as desk, time_passes(clock):
        yield Troubled(desk, clock, server.faults)


@asynccontextmanager
async def time_passes(clock: VirtualClock) -> AsyncIterator[None]:
    async def pass_time() -> None:
        while True:
            await anyio.to_thread.run_sync(int)  # tools run in threads: give them a turn
            clock.advance(0.01)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_time)
        yield
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("effect", ["idempotent", "once"])
@pytest.mark.parametrize("lost", ["claim", "record"])
@pytest.mark.parametrize("how", ["ack", "message"])
async def test_claim_or_record_lost_on_the_way_is_settled_by_reading(
    troubled: Troubled, call_of: CallOf, samples: Any, effect: str, lost: str, how: str
) -> None:
    lose = troubled.faults.lose_next_ack if how == "ack" else troubled.faults.lose_next_message
    function = "act" if lost == "claim" else "act_after_release"
    if lost == "claim":
        lose(OPERATION)
    call = call_of(function, effect=effect)
    async with troubled.desk.executor(clock=troubled.clock):
        await troubled.desk.send(call)
        if lost == "record":
            await anyio.to_thread.run_sync(samples.RUNNING.wait, 30)
            lose(OPERATION)
            samples.RELEASE.set()
        (finished, *repeats) = await troubled.desk.finished()
        assert finished.outcome == ACTED
        assert all(repeat.outcome == ACTED for repeat in repeats)
    assert samples.ACTED == ["call-1"]
    claimed, recorded = await troubled.desk.operation(call)
    assert isinstance(claimed, OperationClaimed)
    assert isinstance(recorded, OperationRecorded)


async def test_call_does_not_act_while_its_claim_can_not_be_stored(
    troubled: Troubled, call_of: CallOf, samples: Any
) -> None:
    call = call_of("act", effect="once")
    await troubled.desk.send(call)
    troubled.faults.disk_full = True
    async with troubled.desk.executor(clock=troubled.clock):
        until = troubled.clock.monotonic() + 20
        await troubled.clock.sleep_until(until)
        assert samples.ACTED == []
        assert await troubled.desk.operation(call) == []
        troubled.faults.disk_full = False
        finished = await troubled.desk.finished()
        assert all(message.outcome == ACTED for message in finished)
    assert samples.ACTED == ["call-1"]


async def test_outcome_that_can_not_be_stored_is_kept_until_it_can(
    troubled: Troubled, call_of: CallOf, samples: Any
) -> None:
    call = call_of("act_after_release", effect="once")
    async with troubled.desk.executor(clock=troubled.clock):
        await troubled.desk.send(call)
        await anyio.to_thread.run_sync(samples.RUNNING.wait, 30)
        troubled.faults.disk_full = True
        samples.RELEASE.set()
        await troubled.clock.sleep_until(troubled.clock.monotonic() + 60)
        assert troubled.desk.arrived == []
        troubled.faults.disk_full = False
        finished = await troubled.desk.finished()
        assert all(message.outcome == ACTED for message in finished)
    assert samples.ACTED == ["call-1"]


async def test_delivery_that_comes_twice_at_once_is_run_once(
    troubled: Troubled, call_of: CallOf, samples: Any
) -> None:
    troubled.faults.repeat_next_delivery(subjects.tool_pool("default"))
    async with troubled.desk.executor(clock=troubled.clock):
        await troubled.desk.send(call_of("act", effect="once"))
        finished = await troubled.desk.finished()
        await troubled.desk.queue_is_empty()
        assert all(message.outcome == ACTED for message in finished)
    assert samples.ACTED == ["call-1"]


async def test_server_killed_while_a_call_runs_costs_neither_the_call_nor_its_outcome(
    tmp_path: Path, open_desk: Any, call_of: CallOf, samples: Any
) -> None:
    call = call_of("act_after_release", effect="once")
    async with (
        embedded_server(tmp_path, sync="always") as server,
        connect(server.url, name="test") as bus,
        open_desk(bus) as desk,
        desk.executor(),
    ):
        await desk.send(call)
        await anyio.to_thread.run_sync(samples.RUNNING.wait, 30)
        await server.kill()
        samples.RELEASE.set()
        await anyio.to_thread.run_sync(samples.DONE.wait, 30)
        await server.start()
        finished = await desk.finished()
        assert all(message.outcome == ACTED for message in finished)
        assert samples.ACTED == ["call-1"]
        claimed, recorded = await desk.operation(call)
        assert isinstance(claimed, OperationClaimed)
        assert isinstance(recorded, OperationRecorded)
