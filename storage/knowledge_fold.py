"""The knowledge index as a fold: records of the KNOWLEDGE stream in, one transaction a batch.

The position is written with the rows, and a record at or below it is dropped, so records may come again after
a crash or from another reader. An item's last record replaces all that was known of it. Candidates and
rejected items are never searched (A21): of those, and of forgotten ones, only id and state stay, so that what
depends on them can say so. Superseded and retired items stay searchable, to lead to their successors (A22).
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from temporality.protocol.editorial import ItemForgotten, KnowledgeItem, KnowledgeRecord, KnowledgeState
from temporality.storage.knowledge_profile import Analyser, Profile
from temporality.storage.knowledge_schema import EMPTY, EVER_AFTER, EVER_BEFORE, EVERYWHERE

SEARCHABLE = frozenset(
    {
        KnowledgeState.REVIEWED,
        KnowledgeState.CHALLENGED,
        KnowledgeState.SUPERSEDED,
        KnowledgeState.RETIRED,
    }
)


class StoredRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record with its sequence in the stream."""

    sequence: int
    record: KnowledgeRecord


@dataclass(slots=True)
class _Change:
    """What a batch changes in the totals, written once at its end."""

    items: int = 0
    terms: int = 0
    frequencies: Counter[str] = field(default_factory=Counter)
    forgets: bool = False

    def count(self, profile: Profile, sign: int) -> None:
        self.items += sign
        self.terms += sign * profile.length
        for term in profile.indexed():
            self.frequencies[term] += sign


def prepare(connection: sqlite3.Connection, analysis: str) -> None:
    """Make an empty base, or one of another `analysis` (an analyser's version), start at the first record."""
    row = connection.execute("SELECT analysis FROM fold").fetchone()
    if row is None or row[0] != analysis:
        restart(connection, analysis)


def restart(connection: sqlite3.Connection, analysis: str) -> None:
    """Take out everything, in one transaction; the next record to fold is the stream's first."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in EMPTY:
            connection.execute(statement)
        connection.execute("INSERT INTO fold VALUES (1, ?, 0, 0, 0)", (analysis,))
    except BaseException:
        _undo(connection)
        raise
    connection.execute("COMMIT")


def position(connection: sqlite3.Connection) -> int:
    """Return the sequence of the last folded record, 0 for none."""
    return int(connection.execute("SELECT sequence FROM fold").fetchone()[0])


def fold(connection: sqlite3.Connection, analyser: Analyser, records: Iterable[StoredRecord]) -> int:
    """Fold records, in the order of the stream, and return the position; all of them, or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        last = position(connection)
        change = _Change()
        for stored in records:
            if stored.sequence > last:
                _apply(connection, analyser, stored, change)
                last = stored.sequence
        _write_totals(connection, change, last)
    except BaseException:
        _undo(connection)
        raise
    connection.execute("COMMIT")
    if change.forgets:
        _erase(connection)
    return last


def _undo(connection: sqlite3.Connection) -> None:
    """End the transaction, unless SQLite has ended it itself: it does so when the disk is full."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _apply(connection: sqlite3.Connection, analyser: Analyser, stored: StoredRecord, change: _Change) -> None:
    sequence, record = stored.sequence, stored.record
    if isinstance(record, ItemForgotten):
        project = record.project or EVERYWHERE
        _take_out(connection, record.knowledge_id, project, change)
        _put_state(connection, sequence, record.knowledge_id, project, KnowledgeState.DELETED)
        change.forgets = True
        return
    item = record.item
    project = item.scope.project or EVERYWHERE
    _take_out(connection, item.knowledge_id, project, change)
    if item.state in SEARCHABLE:
        _put_item(connection, sequence, item, analyser.profile(item), change)
    else:
        _put_state(connection, sequence, item.knowledge_id, project, item.state)


def _take_out(connection: sqlite3.Connection, knowledge_id: str, project: str, change: _Change) -> None:
    found = connection.execute(
        "SELECT item_key, profile FROM item LEFT JOIN item_content USING (item_key)"
        " WHERE knowledge_id = ? AND project = ?",
        (knowledge_id, project),
    ).fetchone()
    if found is None:
        return
    key, encoded = found
    if encoded is not None:
        profile = msgspec.msgpack.decode(encoded, type=Profile)
        change.count(profile, -1)
        connection.execute(
            "INSERT INTO item_terms (item_terms, rowid, terms) VALUES ('delete', ?, ?)", (key, _row(profile))
        )
    for table, column in (("item", "item_key"), ("item_content", "item_key"), ("supersession", "new_key")):
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (key,))


def _put_item(
    connection: sqlite3.Connection, key: int, item: KnowledgeItem, profile: Profile, change: _Change
) -> None:
    begins, ends = item.validity()
    change.count(profile, +1)
    connection.execute(
        "INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            key,
            item.knowledge_id,
            item.scope.project or EVERYWHERE,
            item.scope.team,
            item.scope.user,
            item.state.value,
            item.state.is_offerable,
            begins.timestamp() if begins else EVER_BEFORE,
            ends.timestamp() if ends else EVER_AFTER,
            item.reviewed_by == "person",
            item.topics[0] if item.topics else None,
        ),
    )
    encode = msgspec.msgpack.encode
    connection.execute("INSERT INTO item_content VALUES (?, ?, ?)", (key, encode(item), encode(profile)))
    connection.execute("INSERT INTO item_terms (rowid, terms) VALUES (?, ?)", (key, _row(profile)))
    connection.executemany(
        "INSERT OR IGNORE INTO supersession VALUES (?, ?)", [(old_id, key) for old_id in item.supersedes]
    )


def _put_state(
    connection: sqlite3.Connection, key: int, knowledge_id: str, project: str, state: KnowledgeState
) -> None:
    connection.execute(
        "INSERT INTO item VALUES (?, ?, ?, NULL, NULL, ?, 0, ?, ?, 0, NULL)",
        (key, knowledge_id, project, state.value, EVER_BEFORE, EVER_AFTER),
    )


def _write_totals(connection: sqlite3.Connection, change: _Change, last: int) -> None:
    connection.execute(
        "UPDATE fold SET sequence = ?, items = items + ?, terms = terms + ?",
        (last, change.items, change.terms),
    )
    changed = [(term, count) for term, count in sorted(change.frequencies.items()) if count]
    connection.executemany(
        "INSERT INTO term VALUES (?, ?) ON CONFLICT (term) DO UPDATE SET items = items + excluded.items",
        changed,
    )
    connection.executemany(
        "DELETE FROM term WHERE term = ? AND items <= 0", [(term,) for term, count in changed if count < 0]
    )


def _erase(connection: sqlite3.Connection) -> None:
    """Merge the full-text index, which keeps a deleted item's words until then, and empty the log (E13)."""
    connection.execute("INSERT INTO item_terms (item_terms) VALUES ('optimize')")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _row(profile: Profile) -> str:
    return " ".join(sorted(profile.indexed()))
