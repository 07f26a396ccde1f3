"""Asking again, for a bounded time, for something that is known to exist and may not be here yet."""

from typing import Final

from temporality.actors.clock import Clock

PAUSE_FIRST_S: Final = 0.02
PAUSE_MAX_S: Final = 0.5


class Patience:
    """Pauses that double, until a deadline; one for everything that a task waits for."""

    def __init__(self, clock: Clock, limit_s: float) -> None:
        self._clock = clock
        self._deadline = clock.monotonic() + limit_s
        self._pause_s = PAUSE_FIRST_S

    async def wait(self) -> bool:
        """Pause and return True, or return False at once when the time is over."""
        now = self._clock.monotonic()
        if now >= self._deadline:
            return False
        await self._clock.sleep_until(min(now + self._pause_s, self._deadline))
        self._pause_s = min(self._pause_s * 2, PAUSE_MAX_S)
        return True
