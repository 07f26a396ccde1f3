"""Two clocks of one kind: the machine's, and one that a test moves."""

from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel
import pytest

from temporality.actors.clock import SystemClock, VirtualClock


def test_virtual_time_stands_still_until_it_is_moved():
    clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
    assert (clock.monotonic(), clock.now()) == (0.0, datetime(2026, 1, 1, tzinfo=UTC))
    clock.advance(90)
    assert (clock.monotonic(), clock.now()) == (90.0, datetime(2026, 1, 1, 0, 1, 30, tzinfo=UTC))
    with pytest.raises(ValueError, match="back"):
        clock.advance(-1)


def test_calls_run_in_the_order_of_their_times_each_at_its_own():
    clock = VirtualClock()
    seen = []

    def note(name):
        return lambda: seen.append((name, clock.monotonic()))

    clock.call_at(2, note("late"))
    clock.call_at(1, note("first asked"))
    clock.call_at(1, note("second asked"))
    clock.call_at(1, note("cancelled"))()
    clock.call_at(3, note("not yet"))
    clock.advance(2.5)
    assert seen == [("first asked", 1), ("second asked", 1), ("late", 2)]
    assert (clock.monotonic(), clock.next_due()) == (2.5, 3)


def test_a_call_may_ask_for_another_within_the_same_move():
    clock = VirtualClock()
    seen = []
    clock.call_at(1, lambda: clock.call_at(2, lambda: seen.append(clock.monotonic())))
    clock.advance(5)
    assert seen == [2]
    assert clock.next_due() is None


async def test_a_sleeper_wakes_when_its_time_has_come_and_not_before():
    clock = VirtualClock()
    woken = []

    async def sleep(until):
        await clock.sleep_until(until)
        woken.append(until)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleep, 2.0)
        tasks.start_soon(sleep, 1.0)
        tasks.start_soon(sleep, 0.0)
        await anyio.wait_all_tasks_blocked()
        assert woken == [0.0]
        clock.advance(1.5)
        await anyio.wait_all_tasks_blocked()
        assert woken == [0.0, 1.0]
        clock.advance(0.5)
    assert woken == [0.0, 1.0, 2.0]


async def test_a_cancelled_sleeper_leaves_nothing_behind():
    clock = VirtualClock()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep_until, 1.0)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert clock.next_due() is None


async def test_the_machines_clock_tells_utc_and_calls_back():
    clock = SystemClock()
    assert clock.now().utcoffset() == timedelta(0)
    called, not_called = anyio.Event(), anyio.Event()
    clock.call_at(clock.monotonic() + 0.01, not_called.set)()
    clock.call_at(clock.monotonic() + 0.02, called.set)
    with anyio.fail_after(10):
        await clock.sleep_until(clock.monotonic() - 1)
        await called.wait()
    assert not not_called.is_set()
