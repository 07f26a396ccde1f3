"""Snapshots written behind the runs' backs: all that are due in one transaction, none on the hot path.

A snapshot is a cache: losing one costs reading more commits at the next load, nothing else. So a disk that
fails is waited for, and if it fails for so long that what waits fills memory, all of it is dropped and the
runs concerned are forgotten: loaded anew, they know again what their last snapshot lacks.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

import anyio

from temporality.actors.clock import Clock
from temporality.storage.snapshots import Snapshot, Snapshots

SHUTDOWN_S = 5.0
WRITE_INTERVAL_S = 0.1
"""Pause after a transaction: a run of fast turns is written every few of them instead of at each."""

RETRY_DELAY_S = 1.0
WAITING_BYTES_MAX = 67_108_864
"""Snapshots that wait for a failing disk: some thousand runs' worth, a small part of a machine's memory."""


class Saver:
    """Write the latest snapshot of each run that has a new one; a failure is logged and tried again.

    `forget` is called with each run whose snapshot had to be dropped.
    """

    def __init__(
        self, snapshots: Snapshots, log: logging.Logger, clock: Clock, forget: Callable[[str], None]
    ) -> None:
        self._snapshots = snapshots
        self._log = log
        self._clock = clock
        self._forget = forget
        self._due: dict[str, Snapshot] = {}
        self._waiting_bytes = 0
        self._wake = anyio.Event()

    def save(self, snapshot: Snapshot) -> None:
        """Have a snapshot written soon; it goes on where the run's one before it ended."""
        waiting = self._due.get(snapshot.run)
        self._due[snapshot.run] = _joined(waiting, snapshot) if waiting else snapshot
        self._waiting_bytes += _size(snapshot)
        if self._waiting_bytes > WAITING_BYTES_MAX:
            self._drop()
        self._wake.set()

    async def run(self) -> None:
        """Write snapshots until cancelled; `finish` then writes what is left."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            if await self._write():
                await self._clock.sleep_until(self._clock.monotonic() + WRITE_INTERVAL_S)
            else:
                await self._clock.sleep_until(self._clock.monotonic() + RETRY_DELAY_S)
                self._wake.set()

    async def finish(self) -> None:
        """Write what is due, also when cancelled: at most `SHUTDOWN_S`."""
        with anyio.move_on_after(SHUTDOWN_S, shield=True):
            await self._write()

    async def _write(self) -> bool:
        due, self._due, self._waiting_bytes = self._due, {}, 0
        if not due:
            return True
        try:
            await self._snapshots.save(list(due.values()))
        except Exception as error:  # noqa: BLE001
            # A full disk or a locked file must not stop the runs: the commits are safe in the stream.
            self._log.warning("snapshots could not be written: %s", type(error).__name__)
            self._put_back(due)
            return False
        except BaseException:
            self._put_back(due)  # cancelled: `finish` writes them
            raise
        return True

    def _put_back(self, due: dict[str, Snapshot]) -> None:
        later, self._due = self._due, due
        self._waiting_bytes += sum(_size(snapshot) for snapshot in due.values())
        for snapshot in later.values():
            earlier = self._due.get(snapshot.run)
            self._due[snapshot.run] = _joined(earlier, snapshot) if earlier else snapshot

    def _drop(self) -> None:
        self._log.warning("%d snapshots that could not be written are dropped", len(self._due))
        dropped, self._due, self._waiting_bytes = self._due, {}, 0
        for run in dropped:
            self._forget(run)


def _joined(earlier: Snapshot, later: Snapshot) -> Snapshot:
    """Return one snapshot that says what both say; a run loaded in between begins again where it must."""
    if later.position <= earlier.position:
        return later
    kept = earlier.messages[: later.position - earlier.position]
    return replace(later, position=earlier.position, messages=(*kept, *later.messages))


def _size(snapshot: Snapshot) -> int:
    return len(snapshot.origin) + len(snapshot.state) + sum(map(len, snapshot.messages))
