"""A stream followed in batches: what has come while the last batch was being worked on is the next one.

So the busier a stream is, the less its follower pays a message, and a quiet one is followed without delay.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from temporality.actors.bus.background import beside
from temporality.actors.bus.port import Bus, Stored


class Batches:
    """What a stream brings, in its order."""

    def __init__(self, receive: MemoryObjectReceiveStream[Stored], count_max: int) -> None:
        self._receive = receive
        self._count_max = count_max

    async def next(self) -> list[Stored]:
        """Wait for a message, and return it with those that have come behind it; cancelling loses none."""
        found = [await self._receive.receive()]
        try:
            while len(found) < self._count_max:
                found.append(self._receive.receive_nowait())
        except (anyio.WouldBlock, anyio.EndOfStream):
            pass
        return found


@asynccontextmanager
async def follow_in_batches(
    bus: Bus, stream: str, subject: str, *, after: int, count_max: int
) -> AsyncIterator[Batches]:
    """Follow a stream as `Bus.follow` does while the context is open, at most `count_max` messages a batch.

    When the bus is over, its `BusClosed` ends the body.
    """
    send, receive = anyio.create_memory_object_stream[Stored](count_max)

    async with send, receive, bus.follow(stream, subject, after=after) as stored:

        async def pass_on() -> None:
            async for message in stored:
                await send.send(message)

        async with beside(pass_on):
            yield Batches(receive, count_max)
