"""The timeline: public facts by run, and one line about each run, as a fold of the stream FACTS.

The fold's position is written in the same transaction as its rows, so rows have neither a gap nor a repeat:
a fact at or below the position is dropped, and one that was published twice (after the stream's memory of ids
had run out) finds its place taken. Anybody may delete the file; it is folded again.

One process writes; any number of processes read at the same time (write-ahead log) and never wait for it.
"""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread
import msgspec
from anyio import CapacityLimiter

from temporality.protocol.fact import PublicFact
from temporality.storage.timeline_rows import microseconds, packed, rfc3339, unpacked

BUSY_TIMEOUT_S = 5.0
"""How long a writer waits for another one, at a change of shifts; readers never wait."""

RUNS_LISTED_MAX = 1_000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS timeline_position (
    stream TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS timeline_kinds (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL UNIQUE
);
CREATE TABLE IF NOT EXISTS timeline_runs (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    agent TEXT NOT NULL DEFAULT '',
    task TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL DEFAULT 'running',
    started_us INTEGER,
    ended_us INTEGER,
    turns INTEGER NOT NULL DEFAULT 0,
    activations INTEGER NOT NULL DEFAULT 0,
    injected INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS timeline_facts (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    place INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    at_us INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (run, number, place)
) WITHOUT ROWID;
"""

_ENDED = {"run.finished": "finished", "run.failed": "failed", "run.cancelled": "cancelled"}


class RunSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run in a list: `status` is running, finished, failed or cancelled; times are RFC 3339, UTC.

    `activations` counts look-ups, `injected` the hints that came into the run's messages.
    """

    run: str
    project: str
    status: str
    agent: str = ""
    task: str = ""
    started: str | None = None
    ended: str | None = None
    turns: int = 0
    activations: int = 0
    injected: int = 0


class Timeline(Protocol):
    """Keep public facts by run. Every method may be called at any time from one event loop."""

    async def append(self, facts: Sequence[tuple[int, PublicFact]]) -> int:
        """Keep facts with their stream sequences, and the last one as the position: all of it, or nothing.

        Facts at or below the position, and facts that are kept already, change nothing. Returns how many are
        new. Cancelling lets the transaction end first.
        """
        ...

    async def position(self) -> int:
        """Return the stream sequence up to which facts are kept; 0 before the first."""
        ...

    async def facts(self, run: str) -> tuple[PublicFact, ...]:
        """Return the run's facts in the order in which they became true; none for an unknown run."""
        ...

    async def runs(self, limit: int) -> tuple[RunSummary, ...]:
        """Return the latest runs, newest first, at most `limit` (1 to 1,000)."""
        ...


@asynccontextmanager
async def open_timeline(path: Path | str) -> AsyncIterator["SqliteTimeline"]:
    """Open the file, to write or to read, creating it and its folder if they are missing; close it after.

    `:memory:` keeps it in memory.
    """
    connection = await anyio.to_thread.run_sync(_opened, str(path))
    try:
        yield SqliteTimeline(connection)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(connection.close)


class SqliteTimeline:
    """A timeline in a SQLite file, made by `open_timeline`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._one_at_a_time = CapacityLimiter(1)
        self._kinds: dict[str, int] = {}

    async def append(self, facts: Sequence[tuple[int, PublicFact]]) -> int:
        """See `Timeline.append`."""
        return await anyio.to_thread.run_sync(self._append, facts, limiter=self._one_at_a_time)

    async def position(self) -> int:
        """See `Timeline.position`."""
        return await anyio.to_thread.run_sync(self._position, limiter=self._one_at_a_time)

    async def facts(self, run: str) -> tuple[PublicFact, ...]:
        """See `Timeline.facts`."""
        return await anyio.to_thread.run_sync(self._facts, run, limiter=self._one_at_a_time)

    async def runs(self, limit: int) -> tuple[RunSummary, ...]:
        """See `Timeline.runs`."""
        if not 1 <= limit <= RUNS_LISTED_MAX:
            raise ValueError(f"limit must be 1 to {RUNS_LISTED_MAX}, not {limit}")
        return await anyio.to_thread.run_sync(self._runs, limit, limiter=self._one_at_a_time)

    def _append(self, facts: Sequence[tuple[int, PublicFact]]) -> int:
        self._kinds.clear()  # what an undone transaction has named is not there
        with self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            position = self._position()
            fresh = [(sequence, fact) for sequence, fact in facts if sequence > position]
            new = sum(self._keep(fact) for _, fact in fresh)
            if fresh:
                connection.execute(
                    "INSERT INTO timeline_position VALUES ('FACTS', ?)"
                    " ON CONFLICT (stream) DO UPDATE SET sequence = excluded.sequence",
                    (max(sequence for sequence, _ in fresh),),
                )
        return new

    def _position(self) -> int:
        row = self._connection.execute("SELECT sequence FROM timeline_position").fetchone()
        return int(row[0]) if row else 0

    def _keep(self, fact: PublicFact) -> bool:
        """Keep one fact; say whether it is new. Its run's line changes with it, and only then."""
        at_us = microseconds(fact.at)
        run = self._run(fact)
        kept = self._connection.execute(
            "INSERT OR IGNORE INTO timeline_facts VALUES (?, ?, ?, ?, ?, ?)",
            (run, fact.number, fact.index, self._kind(fact.kind), at_us, packed(fact)),
        )
        if kept.rowcount == 0:
            return False
        for change, value in _changes(fact, at_us).items():
            self._connection.execute(f"UPDATE timeline_runs SET {change} WHERE id = ?", (value, run))
        return True

    def _run(self, fact: PublicFact) -> int:
        known = self._connection.execute("SELECT id FROM timeline_runs WHERE run = ?", (fact.run,)).fetchone()
        if known:
            return int(known[0])
        made = self._connection.execute(
            "INSERT INTO timeline_runs (run, project) VALUES (?, ?) RETURNING id", (fact.run, fact.project)
        )
        return int(made.fetchone()[0])

    def _kind(self, kind: str) -> int:
        if kind not in self._kinds:
            self._connection.execute("INSERT OR IGNORE INTO timeline_kinds (kind) VALUES (?)", (kind,))
            row = self._connection.execute("SELECT id FROM timeline_kinds WHERE kind = ?", (kind,)).fetchone()
            self._kinds[kind] = int(row[0])
        return self._kinds[kind]

    def _facts(self, run: str) -> tuple[PublicFact, ...]:
        rows = self._connection.execute(
            "SELECT project, number, place, timeline_kinds.kind, at_us, content FROM timeline_facts"
            " JOIN timeline_runs ON timeline_runs.id = timeline_facts.run"
            " JOIN timeline_kinds ON timeline_kinds.id = timeline_facts.kind"
            " WHERE timeline_runs.run = ? ORDER BY number, place",
            (run,),
        )
        return tuple(_fact(run, *row) for row in rows)

    def _runs(self, limit: int) -> tuple[RunSummary, ...]:
        rows = self._connection.execute(
            "SELECT run, project, status, agent, task, started_us, ended_us, turns, activations, injected"
            " FROM timeline_runs ORDER BY id DESC LIMIT ?",
            (limit,),
        )
        return tuple(_summary(*row) for row in rows)


def _changes(fact: PublicFact, at_us: int) -> dict[str, Any]:
    """Return what a new fact changes in its run's line, as assignments with one value each."""
    data = fact.data
    match fact.kind:
        case "run.started":
            return {
                "agent = ?": data.get("agent", ""),
                "task = ?": data.get("task", ""),
                "started_us = ?": at_us,
            }
        case "model.replied":
            return {"turns = max(turns, ?)": data.get("turn", 0)}
        case "activation.requested":
            return {"activations = activations + ?": 1}
        case "hint.delivery" if data.get("injected"):
            return {"injected = injected + ?": 1}
        case "run.finished" | "run.failed" | "run.cancelled":
            return {"status = ?": _ENDED[fact.kind], "ended_us = ?": at_us}
        case _:
            return {}


def _fact(
    run: str, project: str, number: int, place: int, kind: str, at_us: int, content: bytes
) -> PublicFact:
    cause, data = unpacked(content)
    return PublicFact(
        id=f"{run}.{number}.{place}",
        kind=kind,
        project=project,
        run=run,
        number=number,
        index=place,
        at=rfc3339(at_us),
        data=data,
        cause=cause,
    )


def _summary(
    run: str,
    project: str,
    status: str,
    agent: str,
    task: str,
    started_us: int | None,
    ended_us: int | None,
    turns: int,
    activations: int,
    injected: int,
) -> RunSummary:
    return RunSummary(
        run=run,
        project=project,
        status=status,
        agent=agent,
        task=task,
        started=None if started_us is None else rfc3339(started_us),
        ended=None if ended_us is None else rfc3339(ended_us),
        turns=turns,
        activations=activations,
        injected=injected,
    )


def _opened(path: str) -> sqlite3.Connection:
    if path != ":memory:":
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    # A power cut may take the last transactions with it: they are folded again from the stream.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.executescript(_SCHEMA)
    return connection
