"""A SQLite file as every store here opens one: write-ahead log, one writer, readers that never wait."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite

from temporality.protocol.errors import UserError

BUSY_TIMEOUT_MS = 5_000
"""How long a writer waits for another process's transaction; ours take milliseconds."""

JOURNAL_PAGES_MAX = 128
JOURNAL_BYTES_MAX = 524_288
"""The write-ahead log is moved into the file after half a megabyte, and cut back to that: all its pages are
copies, and nobody should find more of them than of what they are copies of."""

MAPPED_BYTES_MAX = 268_435_456
"""A file up to this size is read through the page cache of the system, without a call for each page."""

_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}",
    f"PRAGMA wal_autocheckpoint = {JOURNAL_PAGES_MAX}",
    f"PRAGMA journal_size_limit = {JOURNAL_BYTES_MAX}",
    f"PRAGMA mmap_size = {MAPPED_BYTES_MAX}",
)


@asynccontextmanager
async def open_database(path: Path, *, schema: str) -> AsyncIterator[aiosqlite.Connection]:
    """Open (or create) a SQLite file with `schema`, closing it at the end whatever happens.

    A commit survives a crash of the process; a power cut may undo the last ones (`synchronous=NORMAL`), which
    is right for a cache of a fold and for nothing else. Raises `UserError` if the file can't be used.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = await aiosqlite.connect(path, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(path, error) from error
    try:
        try:
            for pragma in _PRAGMAS:
                await connection.execute(pragma)
            await connection.executescript(schema)
        except sqlite3.Error as error:
            raise _unusable(path, error) from error
        yield connection
    finally:
        await connection.close()


def connect(path: Path | None, *, schema: str = "") -> sqlite3.Connection:
    """Open a SQLite file for work that is done whole in a worker thread, one thread at a time.

    The promises are those of `open_database`; None opens a base in memory. The caller closes the connection.
    Blocks: call it, and use what it returns, off the event loop.
    """
    where = path or Path(":memory:")
    try:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(where, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(where, error) from error
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        connection.executescript(schema)
    except sqlite3.Error as error:
        connection.close()
        raise _unusable(where, error) from error
    return connection


def _unusable(path: Path, error: Exception) -> UserError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UserError(str(path), f"can't be used: {reason}", "check the folder's rights and free space")
