"""One connection to a server in memory: up, cut, or closed for good.

While it is cut nothing reaches the server: questions and publishes wait, core messages and acknowledgements
are buffered, and what the connection took part in (subscriptions, shares of queues, readers) is suspended.
When it is restored all of that goes on, as with a client that reconnects.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from temporality.actors.bus.port import AnswerTimeout, BusClosed, BusError
from temporality.actors.clock import Clock

API_TIMEOUT_S = 15.0
"""How long a question to the server waits for a cut connection to come back."""


class _Part:
    """Something the server does for this connection while it is up."""

    def __init__(
        self, join: Callable[[], None], leave: Callable[[], None], close: Callable[[BusError], None]
    ) -> None:
        self.join = join
        self.leave = leave
        self.close = close


class MemoryConnection:
    """The line between a `MemoryBus` and its server."""

    def __init__(self, clock: Clock) -> None:
        self.on_reconnect: list[Callable[[], None]] = []
        self._clock = clock
        self._is_up = True
        self._failure: BusError | None = None
        self._parts: list[_Part] = []
        self._buffer: list[Callable[[], None]] = []
        self._waiting: set[asyncio.Future[Any]] = set()
        self._restored: list[asyncio.Future[Any]] = []

    @property
    def is_usable(self) -> bool:
        """Whether the connection is not closed."""
        return self._failure is None

    def check(self) -> None:
        """Raise `BusClosed` after the end."""
        if self._failure is not None:
            raise self._failure

    def cut(self) -> None:
        """Lose the network. Idempotent."""
        if self._is_up:
            self._is_up = False
            for part in self._parts:
                part.leave()

    def restore(self) -> None:
        """Have the network back; what waited goes on, and whoever asked for it is told. Idempotent."""
        if self._is_up or self._failure is not None:
            return
        self._is_up = True
        buffered, self._buffer = self._buffer, []
        for post in buffered:
            post()
        for part in self._parts:
            part.join()
        restored, self._restored = self._restored, []
        for waiter in restored:
            if not waiter.done():
                waiter.set_result(None)
        for callback in tuple(self.on_reconnect):
            callback()

    def close(self) -> None:
        """End for good: whatever waits raises `BusClosed`. Idempotent."""
        if self._failure is not None:
            return
        failure = self._failure = BusClosed("the bus was closed")
        for part in self._parts:
            if self._is_up:
                part.leave()
            part.close(failure)
        self._is_up = False
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(failure)

    @contextmanager
    def part(
        self, join: Callable[[], None], leave: Callable[[], None], close: Callable[[BusError], None]
    ) -> Iterator[None]:
        """Take part in something while the context is open, across cuts, until the connection is closed."""
        part = _Part(join, leave, close)
        self._parts.append(part)
        if self._is_up:
            join()
        try:
            yield
        finally:
            self._parts.remove(part)
            if self._is_up:
                leave()

    def post(self, message: Callable[[], None]) -> None:
        """Send something now, or when the connection is back."""
        self.check()
        if self._is_up:
            message()
        else:
            self._buffer.append(message)

    async def reach(self, deadline: float | None = None) -> bool:
        """Wait until the server can be reached; say so, or False at the deadline.

        Without a deadline of the caller's raises `AnswerTimeout` at the one of all questions.
        """
        self.check()
        await asyncio.sleep(0)
        self.check()
        if self._is_up:
            return True
        if deadline is not None:
            return await self.until_restored(deadline)
        if not await self.until_restored(self._clock.monotonic() + API_TIMEOUT_S):
            raise AnswerTimeout(f"no answer within {API_TIMEOUT_S:.0f} s")
        return True

    async def until_restored(self, deadline: float) -> bool:
        """Wait until the connection is cut and back; say so, or False at the deadline."""
        waiter: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._restored.append(waiter)
        try:
            return await self.wait(waiter, deadline)
        finally:
            if waiter in self._restored:
                self._restored.remove(waiter)

    async def pause(self, seconds: float, deadline: float) -> bool:
        """Let `seconds` pass; False if the deadline came first."""
        due = self._clock.monotonic() + seconds
        waiter: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self.wait(waiter, min(due, deadline))
        return due <= deadline

    async def wait(self, waiter: "asyncio.Future[Any]", deadline: float) -> bool:
        """Wait for `waiter`; say whether it came before the deadline. Raises `BusClosed` at a close."""
        self.check()
        cancel = self._clock.call_at(
            deadline, lambda: None if waiter.done() else waiter.set_exception(_Late())
        )
        self._waiting.add(waiter)
        try:
            await waiter
        except _Late:
            return False
        finally:
            cancel()
            self._waiting.discard(waiter)
        return True


class _Late(Exception):
    """The deadline came first."""
