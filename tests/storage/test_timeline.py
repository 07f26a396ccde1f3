"""The timeline keeps each fact once, with its position, and anybody may read beside the writer."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporality.protocol.fact import PublicFact
from temporality.storage.timeline import RUNS_LISTED_MAX, SqliteTimeline, TimelineUnwritable, open_timeline
from temporality.storage.timeline_rows import microseconds, packed, rfc3339, unpacked

AT = "2026-11-30T10:00:00.123456+00:00"


def fact(
    number: int, index: int = 0, *, run: str = "r1", kind: str = "tool.called", at: str = AT, **data: object
) -> PublicFact:
    return PublicFact(
        id=f"{run}.{number}.{index}",
        kind=kind,
        project="demo",
        run=run,
        number=number,
        index=index,
        at=at,
        data=data,
        cause="c1",
    )


def whole_run(run: str = "r1") -> list[PublicFact]:
    return [
        fact(1, run=run, kind="run.started", agent="helper", task="tidy up"),
        fact(2, run=run, kind="model.replied", turn=1, call="m1"),
        fact(2, 1, run=run, kind="tool.called", turn=1, call="c1", tool="ls"),
        fact(3, run=run, kind="activation.requested", activation_id="a1"),
        fact(3, 1, run=run, kind="hint.delivery", injected=True),
        fact(3, 2, run=run, kind="hint.delivery", injected=False, reason="budget"),
        fact(4, run=run, kind="model.replied", turn=2, call="m2"),
        fact(4, 1, run=run, kind="run.finished", at="2026-11-30T10:01:00+00:00", turns=2),
    ]


def numbered(facts: list[PublicFact], after: int = 0) -> list[tuple[int, PublicFact]]:
    return list(enumerate(facts, start=after + 1))


@pytest.fixture
async def timeline(tmp_path: Path) -> AsyncIterator[SqliteTimeline]:
    async with open_timeline(tmp_path / "data" / "timeline.db") as opened:
        yield opened


async def test_facts_come_back_as_they_were_in_the_order_of_the_run(timeline: SqliteTimeline) -> None:
    facts = whole_run()
    await timeline.append(numbered(facts[::-1]))
    assert await timeline.facts("r1") == tuple(facts)
    assert await timeline.facts("unknown") == ()


async def test_fact_at_or_below_the_position_is_dropped(timeline: SqliteTimeline) -> None:
    await timeline.append([(7, fact(1))])
    assert await timeline.append([(6, fact(2)), (7, fact(3))]) == 0
    assert await timeline.position() == 7
    assert [one.number for one in await timeline.facts("r1")] == [1]


async def test_fact_published_twice_is_kept_and_counted_once(timeline: SqliteTimeline) -> None:
    """A49: the stream forgets ids after its dedupe window."""
    facts = whole_run()
    assert await timeline.append(numbered(facts)) == len(facts)
    before = await timeline.runs(10)
    assert await timeline.append(numbered([*facts, *facts], after=len(facts))) == 0
    assert await timeline.append([(100, fact(5)), (101, fact(5))]) == 1
    assert await timeline.runs(10) == before
    assert await timeline.position() == 101


async def test_run_is_listed_with_what_became_of_it(timeline: SqliteTimeline) -> None:
    facts = whole_run()
    await timeline.append(numbered(facts[:-1]))
    (running,) = await timeline.runs(10)
    assert (running.status, running.ended) == ("running", None)
    await timeline.append([(len(facts), facts[-1])])
    (finished,) = await timeline.runs(10)
    assert msgspec.to_builtins(finished) == {
        "run": "r1",
        "project": "demo",
        "status": "finished",
        "agent": "helper",
        "task": "tidy up",
        "started": AT,
        "ended": "2026-11-30T10:01:00+00:00",
        "turns": 2,
        "activations": 1,
        "injected": 1,
    }


@pytest.mark.parametrize("end", ["finished", "failed", "cancelled"])
async def test_late_start_does_not_make_an_ended_run_running(timeline: SqliteTimeline, end: str) -> None:
    await timeline.append([(1, fact(9, kind=f"run.{end}"))])
    await timeline.append([(2, fact(1, kind="run.started", agent="helper", task="t"))])
    (summary,) = await timeline.runs(10)
    assert (summary.status, summary.agent) == (end, "helper")


async def test_newest_runs_are_listed_first_and_no_more_than_asked(timeline: SqliteTimeline) -> None:
    await timeline.append(numbered([fact(1, run=f"r{n}", kind="run.started") for n in range(5)]))
    assert [summary.run for summary in await timeline.runs(2)] == ["r4", "r3"]
    for limit in (0, RUNS_LISTED_MAX + 1):
        with pytest.raises(ValueError, match="limit"):
            await timeline.runs(limit)


async def test_another_connection_reads_while_a_writer_writes(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    async with open_timeline(path) as writer, open_timeline(path) as reader:
        await writer.append([(1, fact(1))])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert len(await reader.facts("r1")) == 1
        other.execute("ROLLBACK")
        other.close()


async def test_batch_that_can_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    async with open_timeline(path) as timeline:
        await timeline.append([(1, fact(1))])
        other = sqlite3.connect(path)
        other.execute(
            "CREATE TRIGGER full BEFORE UPDATE ON timeline_position BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
        other.commit()
        with pytest.raises(TimelineUnwritable):
            await timeline.append([(2, fact(2, kind="a.new.kind"))])
        assert await timeline.position() == 1
        assert len(await timeline.facts("r1")) == 1
        other.execute("DROP TRIGGER full")
        other.commit()
        other.close()
        assert await timeline.append([(2, fact(2, kind="a.new.kind"))]) == 1
        assert [one.kind for one in await timeline.facts("r1")] == ["tool.called", "a.new.kind"]


async def test_cancelled_writer_keeps_all_of_its_batch_or_nothing(timeline: SqliteTimeline) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await timeline.append(numbered(whole_run()))
    position = await timeline.position()
    assert len(await timeline.facts("r1")) == position
    await timeline.append(numbered(whole_run()))
    assert len(await timeline.facts("r1")) == len(whole_run())


async def test_turn_takes_a_few_hundred_bytes(tmp_path: Path) -> None:
    turns = 200
    path = tmp_path / "timeline.db"
    facts = [
        one
        for turn in range(1, turns + 1)
        for one in (
            fact(
                2 * turn, kind="model.replied", call=f"model-{turn:024x}", turn=turn, calls=1, duration_ms=9
            ),
            fact(2 * turn, 1, kind="tool.called", call=f"call-{turn:024x}", turn=turn, tool="read_file"),
            fact(2 * turn + 1, kind="tool.replied", call=f"call-{turn:024x}", turn=turn, outcome="succeeded"),
            fact(2 * turn + 1, 1, kind="turn.closed", turn=turn, evaluators=["tool.failed"], barrier_ms=2),
            fact(2 * turn + 1, 2, kind="model.called", call=f"model-{turn + 1:024x}", turn=turn + 1),
        )
    ]
    async with open_timeline(path) as timeline:
        await timeline.append(numbered(facts))
    assert path.stat().st_size / turns < 500


@settings(max_examples=60, deadline=None)
@given(
    cause=st.none() | st.text(max_size=40),
    data=st.dictionaries(
        st.text(max_size=20), st.text(max_size=400) | st.integers(-(2**53), 2**53) | st.booleans(), max_size=9
    ),
)
def test_packed_fact_is_the_same_unpacked(cause: str | None, data: dict[str, object]) -> None:
    one = msgspec.structs.replace(fact(1), cause=cause, data=data)
    assert unpacked(packed(one)) == (cause, data)


def test_row_written_by_the_first_version_is_readable() -> None:
    kept = bytes.fromhex(
        "0183c69681a191b189a999b985656252724a6a1a8c8f1e8bb8d541bd6b4c6af42262322f5f011883190a69404dc0a00500"
    )
    call = "call-0123456789abcdef01234567"
    assert unpacked(kept) == (
        call,
        {
            "call": call,
            "turn": 3,
            "outcome": "failed",
            "error_class": "tool_error",
            "message": "no such file",
        },
    )


@given(st.datetimes())
def test_wall_time_survives_to_the_microsecond(moment: object) -> None:
    text = f"{moment}".replace(" ", "T") + "+00:00"
    assert microseconds(rfc3339(microseconds(text))) == microseconds(text)


def test_wall_times_of_all_notations_are_the_same_moment() -> None:
    assert (
        len({microseconds(text) for text in (AT, AT[:-6] + "Z", AT[:-6], "2026-11-30T12:00:00.123456+02:00")})
        == 1
    )
