"""Folds the public facts into the timeline, many in one transaction.

Facts that come while a batch is written are the next batch: the busier the system, the fewer transactions a
fact. A fact that this version can't read is passed over: it stays in the stream for one that can.
"""

import anyio
from anyio.abc import TaskStatus

from temporality.actors.bus.batches import follow_in_batches
from temporality.actors.bus.port import Stored
from temporality.actors.host import Host
from temporality.protocol import subjects
from temporality.protocol.codec import decode
from temporality.protocol.errors import InvalidMessage
from temporality.protocol.fact import PublicFact
from temporality.protocol.streams import FACTS
from temporality.storage.timeline import Timeline, TimelineUnwritable

BATCH_FACTS_MAX = 1_000
"""Facts in one transaction: some ten milliseconds, during which another writer of the file waits."""

BATCH_INTERVAL_S = 0.05
"""A reader of the timeline is at most this late, and a quiet system writes twenty times a second at most."""

RETRY_INTERVAL_S = 2.0
"""How long a disk that is full is left alone."""


class TimelineProjection:
    """Keep the timeline up to date with FACTS."""

    def __init__(self, host: Host, timeline: Timeline) -> None:
        self._host = host
        self._timeline = timeline

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Fold until cancelled, from the timeline's own position on; started once it follows the stream."""
        position = await self._timeline.position()
        async with follow_in_batches(
            self._host.bus, FACTS, subjects.facts(), after=position, count_max=BATCH_FACTS_MAX
        ) as batches:
            task_status.started()
            while True:
                await self._write(await batches.next())
                self._host.crash.reached("telemetry.projected")
                await self._pause(BATCH_INTERVAL_S)

    async def _write(self, batch: list[Stored]) -> None:
        await self._keep([(message.sequence, fact) for message in batch if (fact := self._read(message))])

    async def _keep(self, facts: list[tuple[int, PublicFact]]) -> None:
        while True:
            try:
                await self._timeline.append(facts)
            except TimelineUnwritable as error:
                self._host.log.warning("the timeline can't be written: %s", error)
                await self._pause(RETRY_INTERVAL_S)
            else:
                return

    async def _pause(self, seconds: float) -> None:
        await self._host.clock.sleep_until(self._host.clock.monotonic() + seconds)

    def _read(self, message: Stored) -> PublicFact | None:
        try:
            fact: PublicFact = decode(message.payload, PublicFact)
        except InvalidMessage:
            self._host.log.warning("fact %d of the stream can't be read", message.sequence)
            return None
        return fact
