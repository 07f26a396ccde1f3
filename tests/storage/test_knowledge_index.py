"""The index as a fold: positions, repeats, erasure, versions, bounds (A18, A19, A21, E7, E13)."""

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import anyio
import msgspec
import pytest

from temporality.protocol.editorial import ItemDecided, ItemForgotten, KnowledgeItem, KnowledgeState, Scope
from temporality.protocol.errors import UserError
from temporality.storage.knowledge import KnowledgeIndex, in_memory, open_knowledge
from temporality.storage.knowledge_fold import StoredRecord
from temporality.storage.knowledge_profile import Profile
from temporality.storage.knowledge_search import (
    CANDIDATES_MAX,
    LARGE_BASE_ITEMS,
    POSTINGS_MAX,
    TERMS_LOOKED_UP_MAX,
    Found,
    Snapshot,
    Viewer,
)

NOW = datetime(2027, 1, 1, tzinfo=UTC)
ANYBODY = Viewer(project=None, team=None, user=None, now=NOW)


class Words:
    """The smallest analyser: words as they are."""

    def __init__(self, version: str = "1") -> None:
        self.version = version

    def profile(self, item: KnowledgeItem) -> Profile:
        return Profile(
            keys=tuple(f"tool:{tool}" for tool in item.tools),
            text=tuple(item.proposition.split()),
            names=(),
            examples=(),
        )


class Broken(Words):
    def profile(self, item: KnowledgeItem) -> Profile:
        if "broken" in item.proposition:
            raise ValueError("can't be analysed")
        return super().profile(item)


def item(knowledge_id: str, proposition: str, **fields: object) -> KnowledgeItem:
    return msgspec.convert(
        {"knowledge_id": knowledge_id, "proposition": proposition, **fields}, KnowledgeItem
    )


def decided(sequence: int, decided_item: KnowledgeItem) -> StoredRecord:
    record = ItemDecided(item=decided_item, decided_by="ann", decided_at="2026-12-01")
    return StoredRecord(sequence=sequence, record=record)


def forgotten(sequence: int, knowledge_id: str, project: str | None = None) -> StoredRecord:
    record = ItemForgotten(
        knowledge_id=knowledge_id, project=project, decided_by="ann", decided_at="2026-12-01"
    )
    return StoredRecord(sequence=sequence, record=record)


def search(
    snapshot: Snapshot, words: str, viewer: Viewer = ANYBODY, excluded: Iterable[str] = (), keys: str = ""
) -> list[Found]:
    terms, facts = dict.fromkeys(words.split(), 1.0), dict.fromkeys(keys.split(), 1.0)
    frequencies = snapshot.frequencies({*terms, *facts})
    return snapshot.candidates(terms, facts, frequencies, viewer, excluded=set(excluded))


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def found(index: KnowledgeIndex, words: str) -> list[str]:
    return await index.look_up(lambda snapshot: [each.knowledge_id for each in search(snapshot, words)])


async def test_position_is_kept_with_the_rows_and_read_again(tmp_path: Path) -> None:
    async with open_knowledge(tmp_path / "k.db", Words()) as index:
        assert index.position == 0
        assert await index.fold([decided(3, item("a", "red")), decided(7, item("b", "blue"))]) == 7
    async with open_knowledge(tmp_path / "k.db", Words()) as index:
        assert index.position == 7
        assert await found(index, "red blue") == ["b", "a"]


async def test_record_at_or_below_the_position_is_dropped(tmp_path: Path) -> None:
    async with open_knowledge(tmp_path / "k.db", Words()) as index:
        await index.fold([decided(7, item("a", "red"))])
        assert await index.fold([decided(7, item("a", "blue")), decided(5, item("b", "red"))]) == 7
        assert await found(index, "red blue") == ["a"]
        assert await index.look_up(lambda snapshot: snapshot.frequencies({"red", "blue"})) == {"red": 1}


async def test_batch_that_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    async with open_knowledge(tmp_path / "k.db", Broken()) as index:
        with pytest.raises(ValueError, match="analysed"):
            await index.fold([decided(1, item("a", "red")), decided(2, item("b", "broken"))])
        assert (index.position, await found(index, "red")) == (0, [])
        assert await index.fold([decided(1, item("a", "red"))]) == 1
        assert await found(index, "red") == ["a"]


async def test_other_version_of_the_analysis_starts_the_fold_over(tmp_path: Path) -> None:
    async with open_knowledge(tmp_path / "k.db", Words("1")) as index:
        await index.fold([decided(4, item("a", "red"))])
    async with open_knowledge(tmp_path / "k.db", Words("2")) as index:
        assert (index.position, await found(index, "red")) == (0, [])
        assert await index.fold([decided(4, item("a", "red"))]) == 4
        assert await found(index, "red") == ["a"]


async def test_restarted_index_takes_sequences_from_one_again(tmp_path: Path) -> None:
    async with open_knowledge(tmp_path / "k.db", Words()) as index:
        await index.fold([decided(9, item("a", "red"))])
        await index.restart()
        assert (index.position, await found(index, "red")) == (0, [])
        assert await index.fold([decided(1, item("b", "red"))]) == 1
        assert await found(index, "red") == ["b"]


async def test_forgetting_leaves_no_word_of_the_item_in_any_file(tmp_path: Path) -> None:
    """E13."""
    secret = item("a", "zanzibarquark meets vexillology", scope={"project": "demo"})
    async with open_knowledge(tmp_path / "k.db", Words()) as index:
        await index.fold([decided(1, secret), decided(2, item("b", "other words here"))])
        assert await index.look_up(lambda snapshot: snapshot.items) == 2
        await index.fold([forgotten(3, "a", "demo")])
        assert await index.look_up(lambda snapshot: snapshot.items) == 1
        left = contents(tmp_path)
    assert b"other" in left
    assert b"zanzibarquark" not in left
    assert b"vexillology" not in left


async def test_one_id_in_two_projects_is_two_items(tmp_path: Path) -> None:
    """E7."""
    ours, theirs = item("a", "red", scope={"project": "ours"}), item("a", "blue", scope={"project": "theirs"})
    async with open_knowledge(tmp_path / "k.db", Words()) as index:
        await index.fold([decided(1, ours), decided(2, theirs), forgotten(3, "a", "theirs")])
        viewer = Viewer(project="ours", team=None, user=None, now=NOW)
        assert await index.look_up(lambda s: [each.item_key for each in search(s, "red blue", viewer)]) == [1]


@pytest.mark.parametrize("state", [KnowledgeState.CANDIDATE, KnowledgeState.REJECTED, KnowledgeState.DELETED])
def test_item_that_is_not_searchable_leaves_only_its_state(state: KnowledgeState) -> None:
    """A21."""
    snapshot = in_memory([item("a", "red", state=state)], Words())
    assert (snapshot.items, snapshot.frequencies({"red"})) == (0, {})
    assert snapshot.states(["a"], ANYBODY) == {"a": state}
    assert snapshot.contents([1]) == {}


@pytest.mark.parametrize(
    ("scope", "viewer", "sees"),
    [
        (Scope(), ANYBODY, True),
        (Scope(project="p"), ANYBODY, False),
        (Scope(project="p"), Viewer(project="p", team=None, user=None, now=NOW), True),
        (Scope(team="t"), Viewer(project="p", team="t", user=None, now=NOW), True),
        (Scope(team="t"), Viewer(project="p", team="u", user=None, now=NOW), False),
        (Scope(user="ann"), Viewer(project="p", team=None, user="ann", now=NOW), True),
        (Scope(project="p", user="ann"), Viewer(project="p", team=None, user="bob", now=NOW), False),
    ],
)
def test_scope_decides_what_is_found_and_what_is_known_of(scope: Scope, viewer: Viewer, sees: bool) -> None:
    """E7."""
    hidden = msgspec.structs.replace(item("a", "red"), scope=scope)
    successor = msgspec.structs.replace(item("b", "blue", supersedes=["c"]), scope=scope)
    snapshot = in_memory([hidden, successor], Words())
    assert [each.knowledge_id for each in search(snapshot, "red", viewer)] == ["a"] * sees
    assert list(snapshot.states(["a"], viewer)) == ["a"] * sees
    assert list(snapshot.successors(["c"], viewer)) == ["c"] * sees


def test_items_out_of_scope_do_not_use_up_the_candidates() -> None:
    """E7: the scope is a condition of the query, so a crowd of others leaves room for one's own."""
    others = [item(f"other-{n}", "red", scope={"project": "other"}) for n in range(CANDIDATES_MAX * 3)]
    snapshot = in_memory([item("mine", "red", scope={"project": "mine"}), *others], Words())
    viewer = Viewer(project="mine", team=None, user=None, now=NOW)
    assert [each.knowledge_id for each in search(snapshot, "red", viewer)] == ["mine"]


def test_excluded_items_do_not_use_up_the_candidates() -> None:
    """A14."""
    many = [item(f"issued-{n}", "red") for n in range(CANDIDATES_MAX * 3)]
    snapshot = in_memory([item("new", "red"), *many], Words())
    issued = [each.knowledge_id for each in many]
    assert [each.knowledge_id for each in search(snapshot, "red", excluded=issued)] == ["new"]


def test_words_that_many_items_of_a_large_base_hold_are_not_looked_up() -> None:
    """A19."""
    crowd = [item(f"i-{n}", f"common word{n}") for n in range(LARGE_BASE_ITEMS)]
    snapshot = in_memory(crowd, Words())
    assert search(snapshot, "common") == []
    assert [each.knowledge_id for each in search(snapshot, "common word7")] == ["i-7"]
    small = in_memory(crowd[:100], Words())
    assert len(search(small, "common")) == CANDIDATES_MAX


def test_fact_that_many_items_share_is_looked_up_within_the_budget() -> None:
    """A19: the tool alone may be the reason, however many items are about it."""
    crowd = [item(f"i-{n}", f"word{n}", tools=["bash"]) for n in range(POSTINGS_MAX + 50)]
    snapshot = in_memory(crowd, Words())
    assert len(search(snapshot, "nothing", keys="tool:bash")) == CANDIDATES_MAX
    newest = f"i-{POSTINGS_MAX + 49}"
    assert search(snapshot, newest.replace("i-", "word"), keys="tool:bash")[0].knowledge_id == newest


def test_rarest_words_are_looked_up_when_there_are_too_many() -> None:
    """A19."""
    words = [f"w{n}" for n in range(TERMS_LOOKED_UP_MAX)]
    crowd = [item(f"i-{n}", " ".join(words)) for n in range(3)]
    snapshot = in_memory([*crowd, item("rare", "needle")], Words())
    weights = {**dict.fromkeys(words, 0.5), "needle": 1.0}
    candidates = snapshot.candidates(weights, {}, snapshot.frequencies(weights), ANYBODY, count_max=9)
    assert "rare" in [each.knowledge_id for each in candidates]


@pytest.mark.parametrize(
    "word", ['"', '"a"', "a*", "NEAR(a", "a:b", "^a", "-a", "AND", "ünïcødé", "привет", "日本語"]
)
def test_any_word_is_found_as_it_is(word: str) -> None:
    """A18."""
    snapshot = in_memory([item("it", word), item("other", "else")], Words())
    assert [each.knowledge_id for each in search(snapshot, word)] == ["it"]


async def test_look_up_sees_one_moment_while_records_are_folded(tmp_path: Path) -> None:
    started, go_on = anyio.Event(), anyio.Event()

    def twice(snapshot: Snapshot) -> tuple[int, int]:
        first = len(search(snapshot, "red"))
        anyio.from_thread.run_sync(started.set)
        anyio.from_thread.run(go_on.wait)
        return first, len(search(snapshot, "red"))

    async with open_knowledge(tmp_path / "k.db", Words()) as index:
        await index.fold([decided(1, item("a", "red"))])
        seen: list[tuple[int, int]] = []

        async def look() -> None:
            seen.append(await index.look_up(twice))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            await started.wait()
            await index.fold([decided(2, item("b", "red"))])
            assert await found(index, "red") == ["b", "a"]
            go_on.set()
    assert seen == [(1, 1)]


async def test_look_up_leaves_the_event_loop_free(tmp_path: Path) -> None:
    """The work is seen under way in its thread while the loop goes on; on the loop this would never end."""
    started, go_on = anyio.Event(), anyio.Event()

    def work(_: Snapshot) -> str:
        anyio.from_thread.run_sync(started.set)
        anyio.from_thread.run(go_on.wait)
        return "done"

    async with open_knowledge(tmp_path / "k.db", Words()) as index, anyio.create_task_group() as tasks:

        async def free() -> None:
            await started.wait()
            go_on.set()

        tasks.start_soon(free)
        assert await index.look_up(work) == "done"


async def test_failing_look_up_leaves_the_index_usable(tmp_path: Path) -> None:
    def fail(_: Snapshot) -> None:
        raise ZeroDivisionError

    async with open_knowledge(tmp_path / "k.db", Words()) as index:
        await index.fold([decided(1, item("a", "red"))])
        with pytest.raises(ZeroDivisionError):
            await index.look_up(fail)
        assert await found(index, "red") == ["a"]


async def test_file_that_is_no_index_is_refused_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "k.db").write_bytes(b"not a database at all, but long enough to be read as one" * 20)
    with pytest.raises(UserError, match="can't be used"):
        async with open_knowledge(tmp_path / "k.db", Words()):
            pass
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="can't be used"):
        async with open_knowledge(tmp_path / "folder", Words()):
            pass


async def test_index_is_readable_with_any_sqlite_tool(tmp_path: Path) -> None:
    async with open_knowledge(tmp_path / "k.db", Words()) as index:
        await index.fold([decided(1, item("a", "red green"))])
        with sqlite3.connect(tmp_path / "k.db") as other:
            rows = other.execute("SELECT knowledge_id, state FROM item").fetchall()
        other.close()
    assert rows == [("a", "reviewed")]
