"""A bus to serve on, a worker to be served by, and a handler that remembers; by either clock."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.lowlevel

from temporality.actors.bus.memory import MemoryServer
from temporality.actors.bus.port import Bus, Stored
from temporality.actors.clock import Clock, VirtualClock
from temporality.actors.crash import CrashPoints
from temporality.actors.host import Host, Received, Send
from temporality.actors.tracing import Tracing
from temporality.protocol import subjects
from temporality.protocol.run import TimerFired
from temporality.protocol.streams import DEAD, WORK

DURABLE = "queue"
QUEUE = subjects.tool_pool("default")
CAUSED = subjects.tool_pool("caused")
QUESTION = subjects.ask("worker", "position")
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
DEADLINE_S = 20.0
"""Nothing here takes this long, by either clock; reaching it is a failure."""

Handler = Callable[[Received[TimerFired]], Awaitable[Sequence[Send]]]


class World:
    """A bus with the system's streams, its clock, and a way to wait for what it brings."""

    def __init__(self, bus: Bus, clock: Clock, server: MemoryServer | None = None) -> None:
        self.bus = bus
        self.clock = clock
        self.server = server

    def host(self, *, crash: CrashPoints | None = None, ack_wait_s: float = 5.0) -> Host:
        return Host(
            self.bus,
            actor="worker",
            name="worker-1",
            clock=self.clock,
            tracing=Tracing(),
            crash=crash,
            ack_wait_s=ack_wait_s,
        )

    async def put(self, payload: bytes, message_id: str, **headers: str) -> None:
        await self.bus.publish(QUEUE, payload, message_id=message_id, headers=headers)

    async def dead(self) -> Stored | None:
        return await self.bus.last(DEAD, "temporality.dead.>")

    async def caused(self) -> list[Stored]:
        return await self.bus.read(WORK, CAUSED)

    async def settled(self) -> bool:
        return await self.bus.pending(WORK, DURABLE) == (0, 0)

    async def until(self, holds: Callable[[], Awaitable[object]]) -> None:
        """Wait until something holds; virtual time moves on whenever everybody waits for it."""
        with anyio.fail_after(DEADLINE_S):
            while not await holds():
                for _ in range(50):
                    await anyio.lowlevel.checkpoint()
                if isinstance(self.clock, VirtualClock) and not await holds():
                    due = self.clock.next_due()
                    assert due is not None, "nothing that comes in time brings it about"
                    self.clock.advance(due - self.clock.monotonic())


@asynccontextmanager
async def working(host: Host, handle: Handler, concurrency: int = 1) -> AsyncIterator[anyio.CancelScope]:
    """Serve the queue while the context lasts; leaving it cancels the service."""
    async with anyio.create_task_group() as tasks:
        await tasks.start(
            partial(
                host.work,
                stream=WORK,
                durable=DURABLE,
                subject=QUEUE,
                kind=TimerFired,
                handle=handle,
                concurrency=concurrency,
            )
        )
        yield tasks.cancel_scope
        tasks.cancel_scope.cancel()


class Handled:
    """A handler that remembers what it received and when, and then does what it is told."""

    def __init__(self, clock: Clock, *, fails: Callable[[int], Exception | None] = lambda _: None) -> None:
        self.received: list[Received[TimerFired]] = []
        self.at: list[float] = []
        self._clock = clock
        self._fails = fails

    async def __call__(self, received: Received[TimerFired]) -> Sequence[Send]:
        self.received.append(received)
        self.at.append(self._clock.monotonic())
        if (error := self._fails(len(self.received))) is not None:
            raise error
        return [Send(CAUSED, TimerFired(name=received.message.name), f"caused-{received.id}")]

    @property
    def names(self) -> list[str]:
        return [received.message.name for received in self.received]

    def delays(self) -> list[float]:
        return [round(after - before, 3) for before, after in zip(self.at, self.at[1:], strict=False)]


async def passed(clock: Clock, seconds: float) -> bool:
    return clock.monotonic() >= seconds
