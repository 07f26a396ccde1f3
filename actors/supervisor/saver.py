"""Snapshots written behind the runs' backs: all that are due in one transaction, none on the hot path."""

import logging

import anyio

from temporality.storage.snapshots import Snapshot, Snapshots

SHUTDOWN_S = 5.0
RETRY_DELAY_S = 1.0


class Saver:
    """Write the latest snapshot of each run that has a new one; a failure is logged and tried again.

    A snapshot is a cache: losing one costs reading more commits at the next load, nothing else.
    """

    def __init__(self, snapshots: Snapshots, log: logging.Logger) -> None:
        self._snapshots = snapshots
        self._log = log
        self._due: list[Snapshot] = []
        self._wake = anyio.Event()

    def save(self, snapshot: Snapshot) -> None:
        """Have a snapshot written soon."""
        self._due.append(snapshot)
        self._wake.set()

    async def run(self) -> None:
        """Write snapshots until cancelled, then once more."""
        try:
            while True:
                await self._wake.wait()
                self._wake = anyio.Event()
                if not await self._write():
                    await anyio.sleep(RETRY_DELAY_S)
                    self._wake.set()
        finally:
            with anyio.move_on_after(SHUTDOWN_S, shield=True):
                await self._write()

    async def _write(self) -> bool:
        due, self._due = self._due, []
        if not due:
            return True
        try:
            await self._snapshots.save(due)
        except Exception as error:  # noqa: BLE001
            # A full disk or a locked file must not stop the runs: the commits are safe in the stream.
            self._due = [*due, *self._due]
            self._log.warning("snapshots could not be written: %s", type(error).__name__)
            return False
        return True
