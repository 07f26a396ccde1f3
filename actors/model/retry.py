"""How long a failing provider is waited for here, and when it becomes a durable timer's business.

A model call occupies a delivery while it waits, and a wait that lives in a process dies with it. So only
short waits happen here: a few tries with growing pauses, and a `Retry-After` that fits. What takes longer is
reported with `retry_after_s`; the run supervisor turns that into a timer, which survives everything.
"""

from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

import anyio
from tenacity import AsyncRetrying, RetryCallState

from temporality.actors.model.provider import CallFailed, ModelReply

HOLD_MAX_S: Final = 20.0
"""Longest sum of pauses of one call: a caller that waits keeps others in its queue waiting."""

ATTEMPTS_MAX: Final = 5
"""Attempts of one call: the pauses between them sum up to about 6 s."""

PAUSE_FIRST_S: Final = 0.5
PAUSE_MAX_S: Final = 8.0

RETRY_LATER_S: Final = 30.0
"""When a provider that stays down, and doesn't say for how long, is asked again by the supervisor."""

Pause = Callable[[float], Awaitable[None]]


async def attempt_until_done(
    attempt: Callable[[], Awaitable[ModelReply]], *, random: Random, pause: Pause = anyio.sleep
) -> ModelReply:
    """Attempt until there is a reply or nothing more can be done here; raises the last `CallFailed`."""

    async def once() -> ModelReply:
        return await attempt()

    retrying = AsyncRetrying(
        sleep=pause,
        retry=_helps,
        wait=lambda state: _pause_s(_failure(state), state.attempt_number, random),
        stop=lambda state: (
            state.attempt_number >= ATTEMPTS_MAX or state.idle_for + state.upcoming_sleep > HOLD_MAX_S
        ),
        reraise=True,
    )
    return await retrying(once)


def retry_later_s(failure: CallFailed) -> float | None:
    """Return after how many seconds the call may be made anew, None if that is pointless."""
    match failure.retry:
        case "never" | "once":
            return None
        case "later":
            return failure.retry_after_s or RETRY_LATER_S
        case "backoff":
            return max(failure.retry_after_s or 0.0, RETRY_LATER_S)


def _helps(state: RetryCallState) -> bool:
    failure = _failure(state)
    if failure is None:
        return False
    return failure.retry == "backoff" or (failure.retry == "once" and state.attempt_number == 1)


def _failure(state: RetryCallState) -> CallFailed | None:
    error = state.outcome.exception() if state.outcome else None
    return error if isinstance(error, CallFailed) else None


def _pause_s(failure: CallFailed | None, attempt: int, random: Random) -> float:
    """Return what the provider asks for, else a pause that doubles; half of it random, against crowds."""
    if failure is not None and failure.retry_after_s is not None:
        return failure.retry_after_s
    longest = min(PAUSE_FIRST_S * 2.0 ** (attempt - 1), PAUSE_MAX_S)
    return longest * (0.5 + 0.5 * random.random())
