"""Loading a run: from its snapshot and what came after, or from everything, whatever the snapshot is like."""

import logging
from dataclasses import replace

import pytest

from temporality.actors.supervisor.commits import StoredCommit
from temporality.actors.supervisor.runs import LoadedRun, load_run
from temporality.actors.supervisor.saver import WAITING_BYTES_MAX, Saver
from temporality.protocol.codec import decode, encode
from temporality.protocol.run import Commit, RunFinished
from temporality.storage.snapshots import MemorySnapshots, Snapshot, open_snapshots

from .scenes import failed, succeeded
from .system import System, system

LOG = logging.getLogger("test")


async def played(on: System, turns: int = 3) -> None:
    """Play a run up to an outstanding model call."""
    await on.supervisor()
    await on.start()
    for turn in range(turns):
        call = await on.model_call()
        if turn == 1:
            await on.start("r2")  # its commit lies between r1's third and fourth
            await on.model_call()
        await on.model_asks(call, ("look", f'{{"n": {turn}}}'), ("git__log", "{}"))
        one, two = await on.tool_call(), await on.tool_call()
        await on.finish_together([(one, failed(f"no such table t{turn}")), (two, succeeded())])
    await on.model_call()
    await on.served()


async def folded(on: System, upto: int | None = None) -> LoadedRun:
    """The run as the fold of its commits, up to a number."""
    loaded = LoadedRun("r1")
    for stored in (await on.commits())[:upto]:
        loaded.advance(StoredCommit(stored.sequence, decode(stored.payload, Commit)))
    return loaded


async def loaded_from(on: System, *snapshots: Snapshot) -> LoadedRun:
    """What is loaded beside these snapshots."""
    kept = MemorySnapshots()
    await kept.save(snapshots)
    return await load_run(on.bus, kept, "r1", LOG)


async def test_run_without_commits_is_new():
    async with system() as on:
        loaded = await loaded_from(on)
        assert (loaded.sequence, loaded.last) == (0, None)
        assert loaded.state == LoadedRun("r1").state


@pytest.mark.parametrize("number", [1, 2, 4, 7])
async def test_snapshot_and_the_commits_after_it_give_the_state_of_all_commits(number: int):
    """A27: byte for byte, wherever the snapshot was taken."""
    async with system() as on:
        await played(on)
        whole = await folded(on)
        earlier, at = await folded(on, number), await folded(on, number)
        loaded = await loaded_from(on, at.snapshot())
        assert encode(loaded.state) == encode(whole.state)
        assert (loaded.sequence, loaded.last) == (whole.sequence, whole.last)
        assert loaded.position == at.position
        assert encode([*earlier.unsaved, *loaded.unsaved]) == encode(whole.unsaved)


@pytest.mark.parametrize(
    "lie",
    [
        lambda snapshot: replace(snapshot, sequence=snapshot.sequence + 1),
        lambda snapshot: replace(snapshot, sequence=snapshot.sequence - 1),
        lambda snapshot: replace(snapshot, sequence=snapshot.sequence + 10_000),
        lambda snapshot: replace(snapshot, state=b"{"),
        lambda snapshot: replace(snapshot, state=b'{"status":"no such status"}'),
        lambda snapshot: replace(snapshot, origin=b""),
        lambda snapshot: replace(snapshot, state=snapshot.state[: len(snapshot.state) // 2]),
    ],
    ids=[
        "not the predecessor",
        "not its number",
        "ahead of the stream",
        "no JSON",
        "wrong value",
        "empty",
        "cut",
    ],
)
async def test_snapshot_that_does_not_belong_to_the_commits_is_left_out(lie):
    async with system() as on:
        await played(on)
        whole = await folded(on)
        snapshot = (await folded(on, 3)).snapshot()
        loaded = await loaded_from(on, lie(snapshot))
        assert encode(loaded.state) == encode(whole.state)
        assert encode(loaded.unsaved) == encode(whole.unsaved), "all of the transcript is to be saved again"
        assert loaded.position == 0


async def test_snapshot_of_another_history_with_the_last_sequence_is_left_out():
    """A stream that was made anew counts from 1 again; a file of the old one must not pass for it."""
    async with system() as on:
        await played(on)
        whole = await folded(on)
        other = replace((await folded(on, 2)).snapshot(), sequence=whole.sequence)
        assert encode((await loaded_from(on, other)).state) == encode(whole.state)


async def test_supervisor_with_damaged_snapshots_goes_on_with_its_runs(tmp_path, caplog):
    """A row that can't be read must not stop a run: the commits are the truth."""
    async with system() as on, open_snapshots(tmp_path / "snapshots.db") as snapshots:
        await on.supervisor()
        await on.start()
        call = await on.model_call()
        await on.served()
        await on.supervisors[0].stop()
        damaged = replace((await folded(on)).snapshot(), state=b"\x00 not what it was")
        await snapshots.save([damaged])
        await on.supervisor(snapshots=snapshots)
        await on.model_asks(call, content="done")
        while not await on.of(RunFinished):
            await on.quiet(0.1)
    assert "the snapshot of r1 could not be read: InvalidMessage" in caplog.text


class Broken(MemorySnapshots):
    """A file that can't be read at all."""

    async def load(self, run):  # noqa: ARG002
        """Fail as SQLite does."""
        raise OSError(5, "Input/output error")


async def test_file_of_snapshots_that_cannot_be_read_stops_no_run():
    async with system() as on:
        await on.supervisor(snapshots=Broken())
        await on.start()
        await on.model_asks(await on.model_call(), content="done")
        await on.served()
        assert len(await on.of(RunFinished)) == 1
        assert await on.dead_letters() == []


# --- the saver --------------------------------------------------------------------------------------------


def snapshot(position: int, *messages: str, sequence: int = 1, run: str = "r1") -> Snapshot:
    """A snapshot whose messages begin at `position`."""
    texts = tuple(message.encode() for message in messages)
    return Snapshot(
        run=run, sequence=sequence, number=1, origin=b"{}", state=b"{}", position=position, messages=texts
    )


class Stubborn(MemorySnapshots):
    """A disk that refuses some times, and counts what it is given."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals = refusals
        self.batches: list[list[Snapshot]] = []

    async def save(self, snapshots):
        """Refuse, or keep."""
        if self.refusals:
            self.refusals -= 1
            raise OSError(28, "No space left on device")
        self.batches.append(list(snapshots))
        await super().save(snapshots)


async def saved(on: System, disk: MemorySnapshots, *snapshots: Snapshot) -> list[str]:
    """Have snapshots saved one after another; return the runs that were forgotten."""
    forgotten: list[str] = []
    saver = Saver(disk, LOG, on.clock, forgotten.append)
    on.tasks.start_soon(saver.run)
    for each in snapshots:
        saver.save(each)
        await on.quiet()
    await on.quiet(5.0)
    return forgotten


async def test_snapshots_that_wait_for_the_disk_are_joined_and_lose_no_message():
    async with system() as on:
        disk = Stubborn(refusals=2)
        await saved(on, disk, snapshot(0, "a", "b"), snapshot(2, "c", sequence=2), snapshot(3, sequence=3))
        assert [len(batch) for batch in disk.batches] == [1]
        assert await disk.transcript("r1") == (b"a", b"b", b"c")
        kept = await disk.load("r1")
        assert kept is not None
        assert (kept.sequence, kept.position) == (3, 3)


@pytest.mark.parametrize("waits", [snapshot(0, "a", "b"), snapshot(2, "c"), snapshot(1, "b", "c")])
async def test_run_loaded_anew_while_its_snapshot_waits_begins_again_where_the_disk_ends(waits: Snapshot):
    async with system() as on:
        disk = Stubborn(refusals=1)
        await saved(on, disk, waits, snapshot(0, "a", "b", "c", "d", sequence=2))
        assert await disk.transcript("r1") == (b"a", b"b", b"c", b"d")


async def test_snapshots_of_several_runs_are_one_transaction():
    async with system() as on:
        disk = Stubborn(refusals=0)
        saver = Saver(disk, LOG, on.clock, lambda _: None)
        for run in ("r1", "r2", "r3"):
            saver.save(snapshot(0, "a", run=run))
        on.tasks.start_soon(saver.run)
        await on.quiet(1.0)
        assert [len(batch) for batch in disk.batches] == [3]


async def test_more_than_memory_should_hold_is_dropped_and_its_runs_are_forgotten():
    async with system() as on:
        disk = Stubborn(refusals=10_000)
        big = "x" * (WAITING_BYTES_MAX // 2)
        forgotten = await saved(on, disk, snapshot(0, big), snapshot(0, big, run="r2"))
        assert sorted(forgotten) == ["r1", "r2"]


class Slow(MemorySnapshots):
    """A disk on which a write is always under way when the process ends."""

    def __init__(self, on: System) -> None:
        super().__init__()
        self._on = on
        self.slow = True

    async def save(self, snapshots):
        """Take ten seconds, the first time."""
        if self.slow:
            self.slow = False
            await self._on.clock.sleep_until(self._on.clock.monotonic() + 10.0)
        await super().save(snapshots)


async def test_write_that_is_cancelled_by_the_end_is_made_good_before_it():
    async with system() as on:
        disk = Slow(on)
        supervisor = await on.supervisor(snapshots=disk)
        await on.start()
        await on.model_call()
        await on.quiet()
        assert await disk.load("r1") is None
        await on.soon(supervisor.stop())
        kept = await disk.load("r1")
        assert kept is not None
        assert kept.number == 1
