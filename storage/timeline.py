"""The timeline: public facts by run, and one line about each run, as a fold of the stream FACTS.

The fold's position is written in the same transaction as its rows, so rows have neither a gap nor a repeat:
a fact at or below the position is dropped, and one that was published twice (after the stream's memory of ids
had run out) finds its place taken. Anybody may delete the file; it is folded again.

One process writes; any number of processes read at the same time (write-ahead log) and never wait for it.
"""

import json
import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import aiosqlite
import anyio
import msgspec

from temporality.protocol.errors import WorldError
from temporality.protocol.fact import PublicFact
from temporality.storage.database import open_database
from temporality.storage.timeline_rows import microseconds, packed, rfc3339, unpacked

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

_TELLING = frozenset(
    {
        "run.started",
        "model.replied",
        "activation.requested",
        "hint.delivery",
        "run.finished",
        "run.failed",
        "run.cancelled",
    }
)
"""Kinds of facts that change their run's line in the list of runs."""


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
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


class TimelineUnwritable(WorldError):
    """The file can't be written now (disk full, locked); nothing of the batch is kept."""


class Timeline(Protocol):
    """Keep public facts by run. Every method may be called at any time from one event loop."""

    async def append(self, facts: Sequence[tuple[int, PublicFact]]) -> int:
        """Keep facts with their stream sequences, and the last one as the position: all of it, or nothing.

        Facts at or below the position, and facts that are kept already, change nothing. Returns how many are
        new. Cancelling lets the transaction end first. Raises `TimelineUnwritable`.
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
async def open_timeline(path: Path) -> AsyncIterator["SqliteTimeline"]:
    """Open the file, to write or to read, and close it after; raises `UserError` if it can't be used."""
    async with open_database(path, schema=_SCHEMA) as connection:
        yield SqliteTimeline(connection)


class SqliteTimeline:
    """A timeline in a SQLite file, made by `open_timeline`.

    A batch costs the same dozen statements whatever its size: each statement is a trip to another thread.
    """

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._one_at_a_time = anyio.Lock()

    async def append(self, facts: Sequence[tuple[int, PublicFact]]) -> int:
        """See `Timeline.append`."""
        new = 0
        async with self._one_at_a_time:
            with anyio.CancelScope(shield=True):
                try:
                    await self._connection.execute("BEGIN IMMEDIATE")
                    new = await self._append(facts)
                    await self._connection.execute("COMMIT")
                except sqlite3.Error as error:
                    if self._connection.in_transaction:
                        await self._connection.execute("ROLLBACK")
                    raise TimelineUnwritable(type(error).__name__) from error
        return new

    async def position(self) -> int:
        """See `Timeline.position`."""
        rows = await self._rows("SELECT sequence FROM timeline_position")
        return int(rows[0][0]) if rows else 0

    async def facts(self, run: str) -> tuple[PublicFact, ...]:
        """See `Timeline.facts`."""
        rows = await self._rows(
            "SELECT project, number, place, timeline_kinds.kind, at_us, content FROM timeline_facts"
            " JOIN timeline_runs ON timeline_runs.id = timeline_facts.run"
            " JOIN timeline_kinds ON timeline_kinds.id = timeline_facts.kind"
            " WHERE timeline_runs.run = ? ORDER BY number, place",
            (run,),
        )
        return tuple(_fact(run, *row) for row in rows)

    async def runs(self, limit: int) -> tuple[RunSummary, ...]:
        """See `Timeline.runs`."""
        if not 1 <= limit <= RUNS_LISTED_MAX:
            raise ValueError(f"limit must be 1 to {RUNS_LISTED_MAX}, not {limit}")
        rows = await self._rows(
            "SELECT run, project, status, agent, task, started_us, ended_us, turns, activations, injected"
            " FROM timeline_runs ORDER BY id DESC LIMIT ?",
            (limit,),
        )
        return tuple(_summary(*row) for row in rows)

    async def _append(self, facts: Sequence[tuple[int, PublicFact]]) -> int:
        position = await self.position()
        above = [(sequence, fact) for sequence, fact in facts if sequence > position]
        if not above:
            return 0
        runs = await self._run_ids(fact for _, fact in above)
        kinds = await self._kind_ids({fact.kind for _, fact in above})
        named = {(runs[fact.run], fact.number, fact.index): fact for _, fact in above}
        for known in await self._known(named):
            del named[known]
        await self._connection.executemany(
            "INSERT INTO timeline_facts VALUES (?, ?, ?, ?, ?, ?)",
            [(*key, kinds[fact.kind], microseconds(fact.at), packed(fact)) for key, fact in named.items()],
        )
        await self._connection.executemany(
            "UPDATE timeline_runs SET agent = coalesce(?, agent), task = coalesce(?, task),"
            " status = coalesce(?, status), started_us = coalesce(?, started_us),"
            " ended_us = coalesce(?, ended_us), turns = max(turns, ?),"
            " activations = activations + ?, injected = injected + ? WHERE id = ?",
            [(*_changes(fact), runs[fact.run]) for fact in named.values() if fact.kind in _TELLING],
        )
        await self._connection.execute(
            "INSERT INTO timeline_position VALUES ('FACTS', ?)"
            " ON CONFLICT (stream) DO UPDATE SET sequence = excluded.sequence",
            (above[-1][0],),
        )
        return len(named)

    async def _run_ids(self, facts: Iterable[PublicFact]) -> dict[str, int]:
        projects = {fact.run: fact.project for fact in facts}
        await self._connection.executemany(
            "INSERT OR IGNORE INTO timeline_runs (run, project) VALUES (?, ?)", list(projects.items())
        )
        rows = await self._rows(
            "SELECT run, id FROM timeline_runs WHERE run IN (SELECT value FROM json_each(?))",
            (json.dumps(list(projects)),),
        )
        return dict(rows)

    async def _kind_ids(self, kinds: Iterable[str]) -> dict[str, int]:
        await self._connection.executemany(
            "INSERT OR IGNORE INTO timeline_kinds (kind) VALUES (?)", [(kind,) for kind in sorted(kinds)]
        )
        return dict(await self._rows("SELECT kind, id FROM timeline_kinds"))

    async def _known(self, keys: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        return await self._rows(
            "SELECT run, number, place FROM timeline_facts WHERE (run, number, place) IN"
            " (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')"
            " FROM json_each(?))",
            (json.dumps(list(keys)),),
        )

    async def _rows(self, query: str, parameters: Sequence[object] = ()) -> list[Any]:
        return list(await self._connection.execute_fetchall(query, parameters))


def _changes(fact: PublicFact) -> tuple[object, ...]:
    """Return what a new fact of a telling kind changes in its run's line, in the order of the statement."""
    data, at_us = fact.data, microseconds(fact.at)
    agent = task = status = started_us = ended_us = None
    turns = activations = injected = 0
    match fact.kind:
        case "run.started":
            agent, task, started_us = data.get("agent"), data.get("task"), at_us
        case "model.replied":
            turns = data.get("turn", 0)
        case "activation.requested":
            activations = 1
        case "hint.delivery":
            injected = int(data.get("injected", False))
        case _:
            status, ended_us = fact.kind.removeprefix("run."), at_us
    return agent, task, status, started_us, ended_us, turns, activations, injected


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
