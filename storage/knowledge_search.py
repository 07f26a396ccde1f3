"""Reading the knowledge index: which items share rare terms with a query, in the caller's scope.

A look-up must cost the same whether its words are rare or common. So only the rarest terms are looked up, a
word that a noticeable share of a large base holds is not looked up at all, and the lists that are read have a
budget in all. Words left out here still count in the ranking of the items that are found.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from temporality.protocol.editorial import KnowledgeItem, KnowledgeState
from temporality.storage.knowledge_profile import Profile
from temporality.storage.knowledge_schema import EVERYWHERE

TERMS_LOOKED_UP_MAX = 24
"""Lists read in one look-up; the rarest terms decide, the rest would add time and no candidates."""
KEYS_LOOKED_UP_MAX = 4
"""Exact facts of many items that are looked up besides, as far as the budget goes."""
POSTINGS_MAX = 2_000
"""Entries read in one look-up, about a microsecond each: keeps find_hints within its 10 ms."""
LARGE_BASE_ITEMS = 2_000
"""From this size on a term of many items is not looked up."""
COMMON_SHARE = 0.02
"""Share of a large base that makes a term common."""
CANDIDATES_MAX = 24
"""Items weighed in full: three times what is offered."""
READ_AT_ONCE = 32
"""Items whose scope is looked at in one statement, heaviest first, until enough visible ones are found."""
SUCCESSION_LENGTH_MAX = 8
"""Steps followed from a superseded item; also ends a cycle."""

_VISIBLE = """
    (i.project = '' OR i.project = :project) AND (i.team IS NULL OR i.team = :team)
    AND (i.user IS NULL OR i.user = :user) AND i.valid_from <= :now
"""
_OFFERABLE = "(i.is_offerable AND i.valid_until >= :now)"
_LEADS_ON = "EXISTS (SELECT 1 FROM supersession s WHERE s.old_id = i.knowledge_id)"

_POSTINGS = "SELECT rowid FROM item_terms WHERE item_terms MATCH ? ORDER BY rowid DESC LIMIT ?"
"""One short statement a term, which stays prepared: one for all terms takes longer to prepare than to run."""

_COLUMNS = f"i.item_key, i.knowledge_id, {_OFFERABLE}, i.by_person, i.topic, c.profile"
_CANDIDATES = (
    f"SELECT {_COLUMNS} FROM json_each(:keys) k CROSS JOIN item i ON i.item_key = k.value"
    " CROSS JOIN item_content c USING (item_key)"
    f" WHERE {_VISIBLE} AND CASE WHEN {_OFFERABLE}"
    f" THEN i.knowledge_id NOT IN (SELECT value FROM json_each(:excluded)) ELSE {_LEADS_ON} END"
    " ORDER BY k.key LIMIT :count"
)
"""Reads, of a list of items in order, those that the viewer may see; of others nothing is read."""


class Viewer(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, when: the scope is part of every query, never a filter after it (E7)."""

    project: str | None
    team: str | None
    user: str | None
    now: datetime

    def parameters(self) -> dict[str, object]:
        """Return the values that the scope's conditions name."""
        return {
            "project": self.project or EVERYWHERE,
            "team": self.team,
            "user": self.user,
            "now": self.now.timestamp(),
        }


@dataclass(frozen=True, slots=True)
class Found:
    """One item as the ranking needs it; `is_offerable` is about its state and validity now."""

    item_key: int
    knowledge_id: str
    is_offerable: bool
    by_person: bool
    topic: str | None
    profile: Profile


class Snapshot:
    """The index at one moment; blocking, for one thread at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        row = connection.execute("SELECT items, terms FROM fold").fetchone()
        self.items = int(row[0])
        self.length_mean = row[1] / row[0] if row[0] else 1.0

    def frequencies(self, terms: Collection[str]) -> Mapping[str, int]:
        """Return in how many items each of the terms stands; terms of none are left out."""
        rows = self._connection.execute(
            "SELECT t.term, t.items FROM json_each(?) CROSS JOIN term t ON t.term = value",
            (json.dumps(sorted(terms), ensure_ascii=False),),
        )
        return dict(rows.fetchall())

    def candidates(
        self,
        terms: Mapping[str, float],
        keys: Mapping[str, float],
        frequencies: Mapping[str, int],
        viewer: Viewer,
        *,
        excluded: Collection[str] = (),
        count_max: int = CANDIDATES_MAX,
    ) -> list[Found]:
        """Return the visible items that share most weight with a query, at most `count_max`.

        `terms` and `keys` map what is looked up to its weight. Items that can't be offered are returned only
        if something supersedes them; `excluded` ids are left out of the others.
        """
        weights: dict[int, float] = {}
        for term, weight, read in self._affordable(terms, keys, frequencies):
            for (key,) in self._connection.execute(_POSTINGS, (_phrase(term), read)).fetchall():
                weights[key] = weights.get(key, 0.0) + weight
        heaviest = [key for _, key in sorted(zip(weights.values(), weights, strict=True), reverse=True)]
        parameters = viewer.parameters() | {"excluded": json.dumps(sorted(excluded)), "count": count_max}
        found: list[Found] = []
        for start in range(0, len(heaviest), READ_AT_ONCE):
            keys_read = json.dumps(heaviest[start : start + READ_AT_ONCE])
            rows = self._connection.execute(_CANDIDATES, parameters | {"keys": keys_read})
            found += map(_found, rows.fetchall())
            if len(found) >= count_max:
                break
        return found[:count_max]

    def successors(self, knowledge_ids: Collection[str], viewer: Viewer) -> dict[str, Found]:
        """Return, for each id that something visible supersedes, what stands at the end of the line (A22)."""
        start = {knowledge_id: knowledge_id for knowledge_id in knowledge_ids}
        ends: dict[str, Found] = {}
        for _ in range(SUCCESSION_LENGTH_MAX):
            step = self._superseding(set(start.values()), viewer)
            moved = {first: step[last] for first, last in start.items() if last in step}
            ends |= {first: found for first, found in moved.items() if found.is_offerable}
            start = {first: found.knowledge_id for first, found in moved.items()}
            if not start:
                break
        return {first: found for first, found in ends.items() if found.knowledge_id != first}

    def contents(self, item_keys: Collection[int]) -> dict[int, KnowledgeItem]:
        """Return the items with these keys."""
        rows = self._connection.execute(
            "SELECT item_key, content FROM item_content WHERE item_key IN (SELECT value FROM json_each(?))",
            (json.dumps(list(item_keys)),),
        )
        return {key: msgspec.msgpack.decode(content, type=KnowledgeItem) for key, content in rows.fetchall()}

    def states(self, knowledge_ids: Iterable[str], viewer: Viewer) -> dict[str, KnowledgeState]:
        """Return the states of those of the items that the viewer may know of."""
        rows = self._connection.execute(
            f"SELECT i.knowledge_id, i.state FROM item i WHERE {_VISIBLE}"
            " AND i.knowledge_id IN (SELECT value FROM json_each(:ids)) ORDER BY i.project",
            viewer.parameters() | {"ids": json.dumps(sorted(knowledge_ids))},
        )
        return {knowledge_id: KnowledgeState(state) for knowledge_id, state in rows.fetchall()}

    def _affordable(
        self, terms: Mapping[str, float], keys: Mapping[str, float], frequencies: Mapping[str, int]
    ) -> Sequence[tuple[str, float, int]]:
        """Return what is looked up: term, weight, and how many entries of its list are read.

        What weighs most comes first; then, of exact facts that many items share, what the budget still
        allows, newest first, since they may be the only reason there is.
        """
        common = COMMON_SHARE * self.items if self.items >= LARGE_BASE_ITEMS else self.items
        heaviest = sorted(
            (-weight, term) for term, weight in {**terms, **keys}.items() if term in frequencies
        )
        rare = [(term, -negative) for negative, term in heaviest if frequencies[term] <= common]
        shared = [
            (term, -negative) for negative, term in heaviest if frequencies[term] > common and term in keys
        ]
        budget = POSTINGS_MAX
        chosen = []
        for term, weight in (*rare[:TERMS_LOOKED_UP_MAX], *shared[:KEYS_LOOKED_UP_MAX]):
            read = min(frequencies[term], budget)
            if read:
                chosen.append((term, weight, read))
            budget -= read
        return chosen

    def _superseding(self, knowledge_ids: Collection[str], viewer: Viewer) -> dict[str, Found]:
        rows = self._connection.execute(
            f"SELECT s.old_id, {_COLUMNS}"
            " FROM supersession s CROSS JOIN item i ON i.item_key = s.new_key"
            " CROSS JOIN item_content c USING (item_key)"
            f" WHERE s.old_id IN (SELECT value FROM json_each(:ids)) AND {_VISIBLE}"
            f" ORDER BY {_OFFERABLE}, i.item_key",
            viewer.parameters() | {"ids": json.dumps(sorted(knowledge_ids))},
        )
        return {row[0]: _found(row[1:]) for row in rows.fetchall()}


def _found(row: Sequence[object]) -> Found:
    key, knowledge_id, is_offerable, by_person, topic, profile = row
    return Found(
        item_key=int(str(key)),
        knowledge_id=str(knowledge_id),
        is_offerable=bool(is_offerable),
        by_person=bool(by_person),
        topic=None if topic is None else str(topic),
        profile=_PROFILES.decode(profile),  # type: ignore[arg-type]
    )


_PROFILES = msgspec.msgpack.Decoder(Profile)


def _phrase(term: str) -> str:
    """Return `term` as a quoted string of the query language: data never becomes syntax (A18)."""
    return '"' + term.replace('"', '""') + '"'
