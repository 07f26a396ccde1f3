"""The claim and the record of a call on the run's own subject; see `decider.py` for what they decide.

Nothing here acts on hope: an attempt may act only when the server has shown it a claim to act on, and a call
is answered only when its outcome is stored. So a publish whose acknowledgement is lost is settled by reading
the subject again: the attempt's own claim or record there means that it was stored.

The two halves are patient in different ways. Before acting, a failing bus is simply reported: the call goes
back to its queue. After acting, there is no way back (a `once` call is not repeated), so the record is tried
until it is stored, however long the bus is down; the delivery is held as long as the process lives.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from temporality.actors.bus.port import (
    Bus,
    BusClosed,
    BusError,
    PermissionDenied,
    PublishUnconfirmed,
    Stored,
    WrongLastSequence,
)
from temporality.actors.clock import Clock
from temporality.actors.executor.decider import NEXT, Claimant, Step, copy_of, standing
from temporality.actors.host import headers_of
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.streams import RUNS, WORK
from temporality.protocol.tool import OperationClaimed, OperationRecord, OperationRecorded, ToolCall

CLAIM_TRIES_MAX = 8
"""Rounds of claim and look; losing so often means that the bus is in trouble, and the queue can wait."""
RETRY_FIRST_S = 0.05
RETRY_MAX_S = 2.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an attempt may do: `step`, and the message it saw last (`after`) or the `recorded` outcome."""

    step: Step
    after: int = 0
    recorded: OperationRecorded | None = None


class Operations:
    """Claims and records calls for one executor process."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock

    async def claim(self, call: ToolCall, me: Claimant, queue: str, *, seen_before: bool) -> Verdict:
        """Claim `call` for this attempt, or find out why not.

        `seen_before` (a redelivery) looks before it claims; `queue` is the subject of the attempt's copy.
        Raises `BusError` when the bus can't tell; then nothing may be done.
        """
        delay_s = RETRY_FIRST_S
        verdict = await self._look(call, me, queue) if seen_before else Verdict(Step.CLAIM)
        for _ in range(CLAIM_TRIES_MAX):
            if verdict.step is not Step.CLAIM:
                return verdict
            claimed = OperationClaimed(executor=str(me), effect=call.effect)
            try:
                published = await self._publish(call, claimed, f"{call.call}.claim.{me.attempt}", expected=0)
                return Verdict(Step.ACT, after=published)
            except (WrongLastSequence, PublishUnconfirmed):
                verdict = await self._look(call, me, queue)
                if verdict.step is Step.CLAIM:  # neither ours nor another's is there
                    delay_s = await paused(self._clock, delay_s)
        raise WrongLastSequence(f"the claim of {call.call} could not be settled")

    async def _look(self, call: ToolCall, me: Claimant, queue: str) -> Verdict:
        """Read how far the call has come."""
        stored = await self._bus.last(RUNS, subjects.operation(call.run, call.call))
        record = _record_in(stored)
        queued = False
        if isinstance(record, OperationClaimed) and (copy := copy_of(record)) not in {None, me.copy}:
            queued = await self._is_queued(queue, copy or 0)
            if not queued:  # its holder may have recorded and acknowledged just now
                stored = await self._bus.last(RUNS, subjects.operation(call.run, call.call))
                record = _record_in(stored)
        effect = "once" if call.effect == "none" else call.effect
        step = NEXT[standing(record, me, other_copy_is_queued=queued), effect]
        recorded = record if isinstance(record, OperationRecorded) else None
        return Verdict(step, after=stored.sequence if stored else 0, recorded=recorded)

    async def _is_queued(self, queue: str, copy: int) -> bool:
        found = await self._bus.read(WORK, queue, after=copy - 1, count_max=1)
        return bool(found) and found[0].sequence == copy

    async def record(
        self, call: ToolCall, me: Claimant, outcome: OperationRecorded, *, after: int
    ) -> OperationRecorded:
        """Store the outcome as the successor of message `after`, and return the outcome that stands.

        Another one stands if somebody recorded first. Tried until it is settled; raises only `BusClosed` and
        `PermissionDenied`.
        """
        delay_s = RETRY_FIRST_S
        while True:
            try:
                await self._publish(call, outcome, f"{call.call}.record.{me.attempt}", expected=after)
            except (BusClosed, PermissionDenied):
                raise
            except BusError:
                stored = await until_done(
                    lambda: self._bus.last(RUNS, subjects.operation(call.run, call.call)), self._clock
                )
                record = _record_in(stored)
                if isinstance(record, OperationRecorded):
                    return record
                after = stored.sequence if stored else 0
                delay_s = await paused(self._clock, delay_s)
            else:
                return outcome

    async def _publish(
        self, call: ToolCall, record: OperationRecord, message_id: str, *, expected: int
    ) -> int:
        published = await self._bus.publish(
            subjects.operation(call.run, call.call),
            encode(record),
            message_id=message_id,
            headers=headers_of(message_id, call.call, None),
            expected_last=expected,
        )
        return published.sequence


async def until_done(attempt: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Try again until the bus does it; raises only `BusClosed` and `PermissionDenied`."""
    delay_s = RETRY_FIRST_S
    while True:
        try:
            return await attempt()
        except (BusClosed, PermissionDenied):
            raise
        except BusError:
            delay_s = await paused(clock, delay_s)


async def paused(clock: Clock, delay_s: float) -> float:
    """Wait for `delay_s` and return the next delay."""
    await clock.sleep_until(clock.monotonic() + delay_s)
    return min(delay_s * 2, RETRY_MAX_S)


def _record_in(stored: Stored | None) -> OperationRecord | None:
    return None if stored is None else decode(stored.payload, OperationRecord)
