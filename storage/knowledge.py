"""The knowledge index as the retriever holds it: one writer, some readers, nothing that blocks the event
loop.

Each fold and each look-up is one piece of blocking work in a worker thread, on a connection of its own,
inside one transaction: a look-up sees the index at one moment, however many records are folded meanwhile. A
thread switch for the whole look-up costs less than one for each of its statements.
"""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from queue import LifoQueue
from typing import TypeVar
from weakref import finalize

import anyio
from anyio import to_thread

from temporality.protocol.editorial import ItemDecided, KnowledgeItem
from temporality.protocol.errors import WorldError
from temporality.storage import knowledge_fold
from temporality.storage.database import connect
from temporality.storage.knowledge_fold import StoredRecord
from temporality.storage.knowledge_profile import Analyser
from temporality.storage.knowledge_schema import SCHEMA
from temporality.storage.knowledge_search import Snapshot

READERS = 2
"""Look-ups at once: more would only share the interpreter's lock."""

T = TypeVar("T")


class KnowledgeUnwritable(WorldError):
    """The file can't be written now (disk full, locked); nothing of the batch is kept, and reading works."""


class KnowledgeIndex:
    """What `find_hints` searches, folded from the KNOWLEDGE stream; open it with `open_knowledge`."""

    def __init__(self, path: Path, analyser: Analyser, writer: sqlite3.Connection) -> None:
        self._path = path
        self._analyser = analyser
        self._writer = writer
        self._writing = anyio.Lock()
        self._threads = anyio.CapacityLimiter(READERS)
        self._readers: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._position = knowledge_fold.position(writer)

    @property
    def position(self) -> int:
        """The sequence of the last folded record, 0 for none: where reading the stream goes on."""
        return self._position

    async def fold(self, records: Iterable[StoredRecord]) -> int:
        """Fold records in stream order, all or none, and return the position; repeats are dropped.

        Cancellation waits for the transaction that is under way. Raises `KnowledgeUnwritable`.
        """
        batch = tuple(records)
        return await self._write(lambda writer: knowledge_fold.fold(writer, self._analyser, batch))

    async def restart(self) -> None:
        """Forget all that was folded: the stream was made anew, and counts from 1 again. Raises as `fold`."""
        await self._write(self._empty)

    async def look_up(self, work: Callable[[Snapshot], T]) -> T:
        """Do blocking `work` on the index as it stands at one moment, and return what it returns.

        Cancellation waits for the work that is under way, which is bounded.
        """
        return await to_thread.run_sync(self._look_up, work, limiter=self._threads)

    def close(self) -> None:
        """Close all connections; no work may be under way."""
        while not self._readers.empty():
            self._readers.get_nowait().close()
        self._writer.close()

    async def _write(self, work: Callable[[sqlite3.Connection], int]) -> int:
        async with self._writing:
            try:
                self._position = await to_thread.run_sync(work, self._writer)
            except sqlite3.OperationalError as error:
                raise KnowledgeUnwritable(str(error)) from error
            return self._position

    def _empty(self, writer: sqlite3.Connection) -> int:
        knowledge_fold.restart(writer, self._analyser.version)
        return knowledge_fold.position(writer)

    def _look_up(self, work: Callable[[Snapshot], T]) -> T:
        reader = connect(self._path) if self._readers.empty() else self._readers.get_nowait()
        try:
            reader.execute("BEGIN")
            try:
                return work(Snapshot(reader))
            finally:
                reader.execute("ROLLBACK")
        finally:
            self._readers.put(reader)


@asynccontextmanager
async def open_knowledge(path: Path, analyser: Analyser) -> AsyncIterator[KnowledgeIndex]:
    """Open (or create) the index in the file at `path`, and close it at the end.

    A file that another version of the analysis wrote is emptied, to be folded again from the first record.
    Raises `UserError` if the file can't be used.
    """
    writer = await to_thread.run_sync(lambda: connect(path, schema=SCHEMA))
    try:
        await to_thread.run_sync(knowledge_fold.prepare, writer, analyser.version)
        index = KnowledgeIndex(path, analyser, writer)
    except BaseException:
        writer.close()
        raise
    try:
        yield index
    finally:
        index.close()


def in_memory(items: Iterable[KnowledgeItem], analyser: Analyser) -> Snapshot:
    """Return the index of `items` alone, numbered in their order, for a process that only looks things up.

    Its connection is closed when nobody holds the snapshot any more.
    """
    connection = connect(None, schema=SCHEMA)
    knowledge_fold.prepare(connection, analyser.version)
    records = (
        StoredRecord(
            sequence=number,
            record=ItemDecided(item=item.identified(), decided_by="import", decided_at="1970-01-01"),
        )
        for number, item in enumerate(items, start=1)
    )
    knowledge_fold.fold(connection, analyser, records)
    snapshot = Snapshot(connection)
    finalize(snapshot, connection.close)
    return snapshot
