"""An executor among its neighbours: a bus with its streams, and the supervisor's side of the conversation."""

import importlib.util
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from temporality.actors.bus.memory import MemoryServer
from temporality.actors.bus.nats import NatsBus
from temporality.actors.bus.port import Bus, Delivery, Stored
from temporality.actors.clock import Clock, SystemClock
from temporality.actors.executor.actor import ExecutorActor
from temporality.actors.executor.settings import ExecutorSettings
from temporality.actors.host import Host, headers_of
from temporality.actors.tracing import Tracing
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.streams import INBOX, RUNS, stream_specs
from temporality.protocol.tool import OperationRecord, ToolCall, ToolFinished

SAMPLES = "executor_sample_tools"
DEADLINE_S = 30.0


@pytest.fixture
def samples() -> Iterator[Any]:
    """Make the sample tools importable, as a user's own module on the Python path is."""
    spec = importlib.util.spec_from_file_location(SAMPLES, Path(__file__).with_name("sample_tools.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[SAMPLES] = module
    spec.loader.exec_module(module)
    yield module
    module.RELEASE.set()
    del sys.modules[SAMPLES]


@dataclass
class Desk:
    """The supervisor's side: sends calls, and takes what comes to the inbox."""

    bus: Bus
    arrived: list[Delivery] = field(default_factory=list)
    _news: anyio.Event = field(default_factory=anyio.Event)

    async def send(self, call: ToolCall, *, copy: str = "", traceparent: str | None = None) -> int:
        """Store a call, or another copy of it, and return its sequence in the queue."""
        published = await self.bus.publish(
            subjects.tool_pool("default"),
            encode(call),
            message_id=f"{call.call}{copy}",
            headers=headers_of(call.call, "commit-1", traceparent),
        )
        return published.sequence

    async def take(self) -> None:
        """Acknowledge and keep everything that comes, for ever."""
        async with self.bus.consume(
            INBOX, durable="inbox-0", subject=subjects.inbox_partition(0), ack_wait_s=5.0
        ) as deliveries:
            async for delivery in deliveries:
                await delivery.ack()
                self.arrived.append(delivery)
                self._news.set()
                self._news = anyio.Event()

    async def finished(self, count: int = 1) -> list[ToolFinished]:
        """Wait until that many outcomes have come, and return all."""
        with anyio.fail_after(DEADLINE_S):
            while len(self.arrived) < count:
                await self._news.wait()
        return [decode(delivery.payload, ToolFinished) for delivery in self.arrived]

    async def operation(self, call: ToolCall) -> list[OperationRecord]:
        """Return what stands on the call's subject."""
        stored: list[Stored] = await self.bus.read(RUNS, subjects.operation(call.run, call.call))
        return [decode(message.payload, OperationRecord) for message in stored]

    async def queue_is_empty(self) -> None:
        """Wait until no call is in the queue, neither waiting nor delivered."""
        with anyio.fail_after(DEADLINE_S):
            while await self.bus.read("WORK", subjects.tool_pool("default"), count_max=1):
                await anyio.lowlevel.checkpoint()

    @asynccontextmanager
    async def executor(
        self,
        name: str = "executor-a",
        *,
        clock: Clock | None = None,
        tracing: Tracing | None = None,
        ack_wait_s: float = 5.0,
        **settings: Any,
    ) -> AsyncIterator[ExecutorActor]:
        """Run an executor of this process."""
        host = Host(
            self.bus,
            actor="executor",
            name=name,
            clock=clock or SystemClock(),
            tracing=tracing or Tracing(),
            ack_wait_s=ack_wait_s,
        )
        actor = ExecutorActor(host, ExecutorSettings(**settings))
        async with anyio.create_task_group() as tasks:
            await tasks.start(actor.run)
            yield actor
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def desk_on(bus: Bus) -> AsyncIterator[Desk]:
    """Declare the streams and open the supervisor's side."""
    await bus.declare(stream_specs(1))
    desk = Desk(bus)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.take)
        yield desk
        tasks.cancel_scope.cancel()


@pytest.fixture
def open_desk() -> Callable[[Bus], AbstractAsyncContextManager[Desk]]:
    """Open desks on any bus."""
    return desk_on


@pytest.fixture(params=["memory", "nats"])
def real_bus(request: pytest.FixtureRequest) -> NatsBus | None:
    """Return the bus on a real server, or None where a test is to use the one in memory."""
    return request.getfixturevalue("nats_bus") if request.param == "nats" else None


@pytest.fixture
async def desk(real_bus: NatsBus | None) -> AsyncIterator[Desk]:
    """Sit at a desk, on the bus in memory and on a real server."""
    if real_bus is not None:
        async with desk_on(real_bus) as desk:
            yield desk
    else:
        async with MemoryServer(SystemClock()).connect() as memory, desk_on(memory) as desk:
            yield desk


@pytest.fixture
def call_of() -> Any:
    """Make calls of sample functions."""

    def make(function: str, *, call: str = "call-1", effect: str = "once", **changes: Any) -> ToolCall:
        arguments = changes.pop("arguments", {})
        return ToolCall(
            run="run-1",
            call=call,
            turn=1,
            tool=function,
            arguments=arguments,
            effect=effect,  # type: ignore[arg-type]
            reply_bytes_max=changes.pop("reply_bytes_max", 65_536),
            python=f"{SAMPLES}:{function}",
            **changes,
        )

    return make
