"""A SQLite file as every store here opens one: write-ahead log, one writer, readers that never wait."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite

from temporality.protocol.errors import UserError

BUSY_TIMEOUT_MS = 5_000
"""How long a writer waits for another process's transaction; ours take milliseconds."""

JOURNAL_BYTES_MAX = 4_194_304
"""The write-ahead log is cut back to this after a checkpoint, so that it does not keep its largest size."""


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
            await connection.execute("PRAGMA journal_mode = WAL")
            await connection.execute("PRAGMA synchronous = NORMAL")
            await connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            await connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES_MAX}")
            await connection.executescript(schema)
        except sqlite3.Error as error:
            raise _unusable(path, error) from error
        yield connection
    finally:
        await connection.close()


def _unusable(path: Path, error: Exception) -> UserError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UserError(str(path), f"can't be used: {reason}", "check the folder's rights and free space")
