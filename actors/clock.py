"""Time as an argument: the real clock, and one that stands still until a test moves it.

Wall time (`now`) dates what is stored; monotonic time measures and waits. The two never share a name, because
wall time jumps. A component that has to act at a later time asks for a call (`call_at`) or sleeps
(`sleep_until`), so that under the virtual clock a day passes in no time, and always in the same order.
"""

import asyncio
import heapq
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What tells the time and wakes up; `monotonic` times are in seconds from an arbitrary start."""

    def now(self) -> datetime:
        """Return the wall time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return the monotonic time in seconds."""
        ...

    async def sleep_until(self, monotonic: float) -> None:
        """Wait until that monotonic time; a past one returns at the next chance to run."""
        ...

    def call_at(self, monotonic: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` on the event loop at that time; return what cancels it (also when it has run)."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the wall time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the monotonic time in seconds."""
        return time.monotonic()

    async def sleep_until(self, monotonic: float) -> None:
        """Wait until that monotonic time."""
        await asyncio.sleep(max(0.0, monotonic - self.monotonic()))

    def call_at(self, monotonic: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` on the running event loop at that time."""
        delay_s = max(0.0, monotonic - self.monotonic())
        return asyncio.get_running_loop().call_later(delay_s, callback).cancel


class _Call:
    """A call to come; ordered by time, then by the order of asking."""

    __slots__ = ("callback", "due", "number")

    def __init__(self, due: float, number: int, callback: Callable[[], None] | None) -> None:
        self.due = due
        self.number = number
        self.callback = callback

    def __lt__(self, other: "_Call") -> bool:
        return (self.due, self.number) < (other.due, other.number)

    def cancel(self) -> None:
        """Forget the callback; the entry leaves the queue when its time comes."""
        self.callback = None


class VirtualClock:
    """A clock that only moves when told to; calls that fall due run in order, each at its own time."""

    def __init__(self, start: datetime = datetime(2000, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed_s = 0.0
        self._calls: list[_Call] = []
        self._count = 0

    def now(self) -> datetime:
        """Return the virtual wall time."""
        return self._start + timedelta(seconds=self._elapsed_s)

    def monotonic(self) -> float:
        """Return the virtual seconds since the start."""
        return self._elapsed_s

    async def sleep_until(self, monotonic: float) -> None:
        """Wait until the clock has been moved to that time."""
        if monotonic <= self._elapsed_s:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        cancel = self.call_at(monotonic, lambda: None if woken.done() else woken.set_result(None))
        try:
            await woken
        finally:
            cancel()

    def call_at(self, monotonic: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the clock is moved to that time; a past one waits for the next move."""
        call = _Call(max(monotonic, self._elapsed_s), self._count, callback)
        self._count += 1
        heapq.heappush(self._calls, call)
        return call.cancel

    def next_due(self) -> float | None:
        """Return when the next call falls due, or None if nothing waits for time to pass."""
        while self._calls and self._calls[0].callback is None:
            heapq.heappop(self._calls)
        return self._calls[0].due if self._calls else None

    def advance(self, seconds: float) -> None:
        """Move time on, running every call that falls due on the way; tasks they wake run afterwards."""
        if seconds < 0:
            raise ValueError("time does not go back")
        target = self._elapsed_s + seconds
        while (due := self.next_due()) is not None and due <= target:
            self._elapsed_s = max(self._elapsed_s, due)
            callback = heapq.heappop(self._calls).callback
            if callback is not None:
                callback()
        self._elapsed_s = target
