"""Snapshots of runs in SQLite: what a supervisor reads instead of a run's whole history.

A snapshot is a cache of a fold and may be lost; the commits in the stream are the truth. It is written only
in what is new: what a run started with once, its small state at each barrier, and the transcript's new
messages.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import aiosqlite
import anyio

from temporality.storage.database import open_database

SCHEMA = """
CREATE TABLE IF NOT EXISTS snapshots (
    run TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL,
    number INTEGER NOT NULL,
    origin BLOB NOT NULL,
    state BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS transcript (
    run TEXT NOT NULL,
    position INTEGER NOT NULL,
    message BLOB NOT NULL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run after its commit `number`, stored at stream sequence `sequence`.

    `origin` never changes during a run; `messages` are the transcript's messages from `position` on.
    """

    run: str
    sequence: int
    number: int
    origin: bytes
    state: bytes
    position: int = 0
    messages: tuple[bytes, ...] = ()


class Snapshots(Protocol):
    """Keep the latest snapshot of each run."""

    async def save(self, snapshots: Sequence[Snapshot]) -> None:
        """Keep the snapshots, all in one transaction; an older one than is kept changes nothing."""
        ...

    async def load(self, run: str) -> Snapshot | None:
        """Return the run's latest snapshot without its messages; `position` counts those kept."""
        ...

    async def transcript(self, run: str) -> tuple[bytes, ...]:
        """Return the run's messages as far as they are kept, in order."""
        ...


class SqliteSnapshots:
    """Snapshots in one SQLite file; any number of supervisors of a machine may share it."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def save(self, snapshots: Sequence[Snapshot]) -> None:
        """Keep the snapshots, all in one transaction; an older one than is kept changes nothing."""
        try:
            await self._connection.execute("BEGIN IMMEDIATE")
            await self._connection.executemany(
                "INSERT INTO snapshots (run, sequence, number, origin, state) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (run) DO UPDATE SET sequence = excluded.sequence,"
                " number = excluded.number, state = excluded.state"
                " WHERE excluded.sequence > snapshots.sequence",
                [(s.run, s.sequence, s.number, s.origin, s.state) for s in snapshots],
            )
            await self._connection.executemany(
                "INSERT OR IGNORE INTO transcript (run, position, message) VALUES (?, ?, ?)",
                [
                    (s.run, s.position + index, message)
                    for s in snapshots
                    for index, message in enumerate(s.messages)
                ],
            )
            await self._connection.commit()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._connection.rollback()
            raise

    async def load(self, run: str) -> Snapshot | None:
        """Return the run's latest snapshot without its messages; `position` counts those kept."""
        async with self._connection.execute(
            "SELECT sequence, number, origin, state,"
            " (SELECT COUNT(*) FROM transcript WHERE transcript.run = snapshots.run)"
            " FROM snapshots WHERE run = ?",
            (run,),
        ) as cursor:
            row = await cursor.fetchone()
        if row is None:
            return None
        sequence, number, origin, state, position = row
        return Snapshot(
            run=run, sequence=sequence, number=number, origin=origin, state=state, position=position
        )

    async def transcript(self, run: str) -> tuple[bytes, ...]:
        """Return the run's messages as far as they are kept, in order."""
        async with self._connection.execute(
            "SELECT message FROM transcript WHERE run = ? ORDER BY position", (run,)
        ) as cursor:
            return tuple(row[0] for row in await cursor.fetchall())


class MemorySnapshots:
    """Snapshots in memory, for one process and for simulations; passes the same conformance tests."""

    def __init__(self) -> None:
        self._snapshots: dict[str, Snapshot] = {}
        self._messages: dict[str, dict[int, bytes]] = {}

    async def save(self, snapshots: Sequence[Snapshot]) -> None:
        """Keep the snapshots; an older one than is kept changes nothing."""
        for snapshot in snapshots:
            kept = self._snapshots.get(snapshot.run)
            if kept is None or snapshot.sequence > kept.sequence:
                origin = kept.origin if kept else snapshot.origin
                self._snapshots[snapshot.run] = replace(snapshot, origin=origin, messages=())
            messages = self._messages.setdefault(snapshot.run, {})
            for index, message in enumerate(snapshot.messages):
                messages.setdefault(snapshot.position + index, message)

    async def load(self, run: str) -> Snapshot | None:
        """Return the run's latest snapshot without its messages; `position` counts those kept."""
        kept = self._snapshots.get(run)
        return replace(kept, position=len(self._messages.get(run, {}))) if kept else None

    async def transcript(self, run: str) -> tuple[bytes, ...]:
        """Return the run's messages as far as they are kept, in order."""
        return tuple(message for _, message in sorted(self._messages.get(run, {}).items()))


@asynccontextmanager
async def open_snapshots(path: Path) -> AsyncIterator[SqliteSnapshots]:
    """Open the file of snapshots, creating it; raises `UserError` if it can't be written."""
    async with open_database(path, schema=SCHEMA) as connection:
        yield SqliteSnapshots(connection)
