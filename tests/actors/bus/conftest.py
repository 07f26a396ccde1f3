"""Both buses behind one door: each test of the contract runs on the model and on a real server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from itertools import count
from typing import Protocol, TypeVar

import anyio
import anyio.lowlevel
import pytest

from temporality.actors.bus.memory import MemoryServer
from temporality.actors.bus.nats import connect
from temporality.actors.bus.port import Bus
from temporality.actors.clock import Clock, SystemClock, VirtualClock
from temporality.deploy.embedded import EmbeddedServer
from temporality.protocol.streams import Retention, StreamSpec

T = TypeVar("T")

DEADLINE_S = 20.0
"""Nothing awaited on the real server takes this long; reaching it is a failure."""
_numbers = count(1)


class Broker(Protocol):
    """A server to test against: connections to it, its clock, and a way to wait for what time brings."""

    clock: Clock

    def connect(self) -> AbstractAsyncContextManager[Bus]: ...
    async def soon(self, wanted: Awaitable[T]) -> T: ...
    async def until(self, question: Callable[[], Awaitable[T]], answer: T) -> None: ...


class RealBroker:
    """A real server, where time passes by itself."""

    def __init__(self, server: EmbeddedServer) -> None:
        self._server = server
        self.clock: Clock = SystemClock()

    def connect(self) -> AbstractAsyncContextManager[Bus]:
        return connect(self._server.url, name="test")

    async def soon(self, wanted: Awaitable[T]) -> T:
        with anyio.fail_after(DEADLINE_S):
            return await wanted

    async def until(self, question: Callable[[], Awaitable[T]], answer: T) -> None:
        await self.soon(_ask_until(question, answer))


class ModelBroker:
    """The model, whose time is moved on whenever everybody waits for it."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.server = MemoryServer(self.clock)

    def connect(self) -> AbstractAsyncContextManager[Bus]:
        return self.server.connect()

    async def soon(self, wanted: Awaitable[T]) -> T:
        found: list[T] = []
        failed: list[Exception] = []
        finished = anyio.Event()

        async def wait() -> None:
            try:
                found.append(await wanted)
            except Exception as error:  # noqa: BLE001  # raised again outside of the task group
                failed.append(error)
            finished.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await self._pass_time(finished)
        if failed:
            raise failed[0]
        return found[0]

    async def until(self, question: Callable[[], Awaitable[T]], answer: T) -> None:
        await self.soon(_ask_until(question, answer))

    async def _pass_time(self, finished: anyio.Event) -> None:
        end = self.clock.monotonic() + DEADLINE_S
        while True:
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
                if finished.is_set():
                    return
            due = self.clock.next_due()
            if due is None or due > end:
                raise TimeoutError("nothing that comes in time brings it about")
            self.clock.advance(due - self.clock.monotonic())


async def _ask_until(question: Callable[[], Awaitable[T]], answer: T) -> None:
    while await question() != answer:
        await anyio.lowlevel.checkpoint()


@pytest.fixture
def model() -> ModelBroker:
    """The model alone, for what only it can do."""
    return ModelBroker()


@pytest.fixture(params=["model", "nats"])
def broker(request: pytest.FixtureRequest, model: ModelBroker) -> Broker:
    """The model, then a real server."""
    if request.param == "model":
        return model
    return RealBroker(request.getfixturevalue("nats_server"))


@pytest.fixture
async def bus(broker: Broker) -> AsyncIterator[Bus]:
    """A connection to the server under test."""
    async with broker.connect() as connection:
        yield connection


@pytest.fixture
async def other(broker: Broker) -> AsyncIterator[Bus]:
    """Another connection to the same server."""
    async with broker.connect() as connection:
        yield connection


DeclareStream = Callable[..., Awaitable[StreamSpec]]


@pytest.fixture
def stream(bus: Bus) -> DeclareStream:
    """Declare a stream of this test's own, with the subjects `<name>.>`."""

    async def declare(
        retention: Retention = Retention.LIMITS, *, schedules: bool = False, partitions: int = 0
    ) -> StreamSpec:
        name = f"T{next(_numbers)}"
        transform = None
        if partitions:
            destination = f"{name}.in.{{{{partition({partitions},1)}}}}.{{{{wildcard(1)}}}}"
            transform = (f"{name}.in.*", destination)
        spec = StreamSpec(
            name=name,
            subjects=(f"{name}.>",),
            retention=retention,
            private=True,
            schedules=schedules,
            transform=transform,
        )
        await bus.declare([spec])
        return spec

    return declare
