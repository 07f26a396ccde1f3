"""Messages for later, and where the server puts them: the timers and partitions of the system."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporality.actors.bus.memory.subject import matches, overlap, partition, transform
from temporality.actors.bus.port import BusError
from temporality.protocol.streams import Retention


def queue(bus, spec):
    return bus.consume(spec.name, durable="d", subject=f"{spec.name}.in.>", ack_wait_s=5)


async def test_a_scheduled_message_comes_at_its_time_with_its_headers(bus, broker, stream):
    spec = await stream(Retention.WORK_QUEUE, schedules=True)
    at = broker.clock.now() + timedelta(seconds=0.5)
    await bus.schedule(
        f"{spec.name}.timer.a", f"{spec.name}.in.a", b"tick", at=at, headers={"traceparent": "00-a"}
    )
    async with queue(bus, spec) as deliveries:
        tick = await broker.soon(anext(deliveries))
        assert broker.clock.now() >= at
        assert (tick.payload, tick.subject, tick.headers) == (
            b"tick",
            f"{spec.name}.in.a",
            {"traceparent": "00-a"},
        )
        await tick.ack()
        await broker.until(lambda: bus.last(spec.name, ">"), None)


async def test_a_time_in_the_past_fires_at_once(bus, broker, stream):
    spec = await stream(Retention.WORK_QUEUE, schedules=True)
    past = broker.clock.now() - timedelta(hours=1)
    await bus.schedule(f"{spec.name}.timer.a", f"{spec.name}.in.a", b"tick", at=past)
    async with queue(bus, spec) as deliveries:
        assert (await broker.soon(anext(deliveries))).payload == b"tick"


async def test_scheduling_again_on_the_same_subject_replaces(bus, broker, stream):
    spec = await stream(Retention.WORK_QUEUE, schedules=True)
    soon, later = broker.clock.now() + timedelta(seconds=0.3), broker.clock.now() + timedelta(seconds=0.8)
    await bus.schedule(f"{spec.name}.timer.a", f"{spec.name}.in.a", b"first", at=soon)
    await bus.schedule(f"{spec.name}.timer.a", f"{spec.name}.in.a", b"second", at=later)
    async with queue(bus, spec) as deliveries:
        assert (await broker.soon(anext(deliveries))).payload == b"second"
        assert broker.clock.now() >= later


async def test_purging_the_schedules_subject_cancels_it(bus, broker, stream):
    spec = await stream(Retention.WORK_QUEUE, schedules=True)
    soon, later = broker.clock.now() + timedelta(seconds=0.3), broker.clock.now() + timedelta(seconds=0.8)
    await bus.schedule(f"{spec.name}.timer.a", f"{spec.name}.in.a", b"cancelled", at=soon)
    await bus.schedule(f"{spec.name}.timer.b", f"{spec.name}.in.b", b"kept", at=later)
    await bus.purge(spec.name, f"{spec.name}.timer.a")
    async with queue(bus, spec) as deliveries:
        assert (await broker.soon(anext(deliveries))).payload == b"kept"


async def test_a_schedule_can_not_leave_its_stream(bus, broker, stream):
    spec, elsewhere = await stream(schedules=True), await stream()
    with pytest.raises(BusError):
        await bus.schedule(f"{spec.name}.timer.a", f"{elsewhere.name}.in.a", b"x", at=broker.clock.now())


async def test_a_stream_that_was_not_declared_for_it_refuses_schedules(bus, broker, stream):
    spec = await stream()
    with pytest.raises(BusError):
        await bus.schedule(f"{spec.name}.timer.a", f"{spec.name}.in.a", b"x", at=broker.clock.now())


async def test_senders_need_not_know_the_partition_and_timers_reach_it_too(bus, broker, stream):
    spec = await stream(Retention.WORK_QUEUE, schedules=True, partitions=16)
    runs = [f"run-{number}" for number in range(40)] + ["z", "Ж".encode().hex(), "a=b_c", "x" * 128]
    for run in runs:
        await bus.publish(f"{spec.name}.in.{run}", run.encode(), message_id=run)
    await bus.schedule(f"{spec.name}.timer.t", f"{spec.name}.in.timed", b"timed", at=broker.clock.now())
    found = {}
    async with queue(bus, spec) as deliveries:
        for _ in range(len(runs) + 1):
            delivery = await broker.soon(anext(deliveries))
            found[delivery.payload.decode()] = delivery.subject
            await delivery.ack()
    expected = {run: f"{spec.name}.in.{partition([run], 16)}.{run}" for run in [*runs, "timed"]}
    assert found == expected


@given(st.lists(st.text("abcXYZ019_=-", min_size=1, max_size=12), min_size=1, max_size=4), st.integers(1, 64))
def test_a_partition_is_always_one_of_them(tokens, count):
    assert 0 <= partition(tokens, count) < count


def test_a_transform_leaves_other_subjects_alone_and_an_unknown_function_is_told():
    rewrite = transform("a.*.*", "b.{{wildcard(2)}}.{{partition(4,1)}}")
    assert rewrite("a.x.y") == f"b.y.{partition(['x'], 4)}"
    assert rewrite("c.x.y") == "c.x.y"
    with pytest.raises(ValueError, match="split"):
        transform("a.*", "b.{{split(1,-)}}")


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.*", "a", False),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a", True),
        ("*.b", "a.c", False),
    ],
)
def test_a_filter_matches_as_on_the_server(pattern, subject, expected):
    assert matches(pattern, subject) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("a.*", "*.b", True), ("a.>", "a.b.c", True), ("a.b", "a.c", False), ("a.*", "a.b.c", False)],
)
def test_filters_overlap_if_one_subject_matches_both(one, other, expected):
    assert overlap(one, other) is overlap(other, one) is expected
