"""One conformance suite for both stores of snapshots."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from temporality.protocol.errors import UserError
from temporality.storage.snapshots import MemorySnapshots, Snapshot, Snapshots, open_snapshots


@pytest.fixture(params=["sqlite", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Snapshots]:
    if request.param == "memory":
        yield MemorySnapshots()
        return
    async with open_snapshots(tmp_path / "snapshots.db") as snapshots:
        yield snapshots


def snapshot(sequence: int, *, position: int = 0, messages: tuple[bytes, ...] = ()) -> Snapshot:
    return Snapshot(
        run="r1",
        sequence=sequence,
        number=sequence,
        origin=b"origin",
        state=b"state %d" % sequence,
        position=position,
        messages=messages,
    )


async def test_run_without_a_snapshot_loads_as_none(store: Snapshots) -> None:
    assert await store.load("r1") is None


async def test_latest_snapshot_is_loaded_with_the_count_of_its_messages(store: Snapshots) -> None:
    await store.save([snapshot(3, messages=(b"a", b"b"))])
    await store.save([snapshot(5, position=2, messages=(b"c",))])
    loaded = await store.load("r1")
    assert loaded == snapshot(5, position=3)
    assert await store.transcript("r1") == (b"a", b"b", b"c")


async def test_older_snapshot_changes_nothing(store: Snapshots) -> None:
    await store.save([snapshot(5, messages=(b"a",)), snapshot(3, messages=(b"x",))])
    assert await store.load("r1") == snapshot(5, position=1)
    assert await store.transcript("r1") == (b"a",)


async def test_snapshots_survive_closing_the_file(tmp_path: Path) -> None:
    async with open_snapshots(tmp_path / "s.db") as store:
        await store.save([snapshot(1)])
    async with open_snapshots(tmp_path / "s.db") as store:
        assert await store.load("r1") == snapshot(1)


async def test_file_that_is_no_database_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(UserError, match=r"s\.db: can't be used: .+ — check the folder"):
        async with open_snapshots(path):
            pass
