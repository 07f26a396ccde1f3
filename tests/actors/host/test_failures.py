"""What can't be understood is buried, what fails is given back; no message holds up or ends the others."""

from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporality.actors.bus.port import BusError
from temporality.actors.host import (
    DEAD_LETTER_BYTES_MAX,
    DELIVERIES_MAX,
    DETAIL_HEADER,
    REASON_HEADER,
    RETRY_DELAY_MAX_S,
    SUBJECT_HEADER,
    WORLD_RETRY_DELAY_S,
    Received,
    Send,
    header_text,
)
from temporality.protocol import subjects
from temporality.protocol.codec import encode
from temporality.protocol.message import ID_HEADER, TRACE_HEADER
from temporality.protocol.run import TimerFired
from temporality.protocol.streams import WORK

from .world import DEADLINE_S, QUEUE, TRACEPARENT, Handled, World, passed, working

# --- what can't be understood -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "detail"),
    [
        (b"not json", "JSON is malformed"),
        (b'{"type":"timer.fired"}', "missing required field `name`"),
        (b'{"type":"other","name":"x"}', "Invalid value 'other' - at `$.type`"),
        (b"", "truncated"),
        (b'{"type":"timer.fired","name":"\xff"}', ""),
    ],
)
async def test_message_that_is_malformed_is_a_dead_letter_and_the_next_one_is_served(
    world: World, payload: bytes, detail: str
) -> None:
    handled = Handled(world.clock)
    await world.put(payload, "bad", **{ID_HEADER: "bad", TRACE_HEADER: TRACEPARENT})
    await world.put(encode(TimerFired(name="good")), "good")
    async with working(world.host(), handled):
        await world.until(world.settled)
    assert handled.names == ["good"]
    letter = await world.dead()
    assert letter is not None
    assert letter.subject == subjects.dead(WORK, "malformed")
    assert letter.payload == payload
    assert letter.headers[REASON_HEADER] == "malformed"
    assert letter.headers[SUBJECT_HEADER] == QUEUE
    assert (letter.headers[ID_HEADER], letter.headers[TRACE_HEADER]) == ("bad", TRACEPARENT)
    assert detail in letter.headers[DETAIL_HEADER]


async def test_huge_malformed_message_is_buried_cut(world: World) -> None:
    await world.put(b"x" * (DEAD_LETTER_BYTES_MAX + 50_000), "huge")
    async with working(world.host(), Handled(world.clock)):
        await world.until(world.settled)
    letter = await world.dead()
    assert letter is not None
    assert len(letter.payload) == DEAD_LETTER_BYTES_MAX


async def test_letter_that_can_t_be_buried_yet_is_buried_later(model: World) -> None:
    assert model.server is not None
    await model.put(b"not json", "bad")
    model.server.faults.disk_full = True
    async with working(model.host(), Handled(model.clock)):
        await model.until(lambda: passed(model.clock, 3 * WORLD_RETRY_DELAY_S))
        assert await model.dead() is None
        model.server.faults.disk_full = False
        await model.until(model.settled)
    assert await model.dead() is not None


# --- what fails -------------------------------------------------------------------------------------------


async def test_fault_of_ours_gives_back_with_growing_delay_and_then_buries(model: World) -> None:
    handled = Handled(model.clock, fails=lambda _: RuntimeError("the secret is 4711"))
    await model.put(encode(TimerFired(name="one")), "m-1")
    async with working(model.host(), handled):
        await model.until(model.settled)
    assert handled.delays() == [1.0, 2.0, 4.0, 8.0, 16.0, RETRY_DELAY_MAX_S, RETRY_DELAY_MAX_S]
    assert [received.delivered for received in handled.received] == list(range(1, DELIVERIES_MAX + 1))
    letter = await model.dead()
    assert letter is not None
    assert letter.subject == subjects.dead(WORK, "failed")
    assert letter.headers[DETAIL_HEADER].startswith("RuntimeError at ")
    assert "4711" not in str(letter.headers)
    assert await model.caused() == []


async def test_message_that_succeeds_at_last_is_no_dead_letter(world: World) -> None:
    handled = Handled(world.clock, fails=lambda time: RuntimeError() if time == 1 else None)
    await world.put(encode(TimerFired(name="one")), "m-1")
    async with working(world.host(), handled):
        await world.until(world.settled)
    assert [received.delivered for received in handled.received] == [1, 2]
    assert len(await world.caused()) == 1
    assert await world.dead() is None


@pytest.mark.parametrize(
    "error",
    [
        BusError("down"),
        ExceptionGroup("together", [BusError("down"), ExceptionGroup("in", [BusError("full")])]),
    ],
    ids=["alone", "of several tasks"],
)
async def test_failing_world_gives_back_for_as_long_as_it_fails(model: World, error: Exception) -> None:
    tries = 3 * DELIVERIES_MAX
    handled = Handled(model.clock, fails=lambda time: error if time < tries else None)
    await model.put(encode(TimerFired(name="one")), "m-1")
    async with working(model.host(), handled):
        await model.until(model.settled)
    assert handled.delays() == [WORLD_RETRY_DELAY_S] * (tries - 1)
    assert await model.dead() is None
    assert len(await model.caused()) == 1


async def test_group_with_one_fault_of_ours_is_a_fault_of_ours(model: World) -> None:
    group = ExceptionGroup("together", [BusError("down"), KeyError("x")])
    handled = Handled(model.clock, fails=lambda _: group)
    await model.put(encode(TimerFired(name="one")), "m-1")
    async with working(model.host(), handled):
        await model.until(model.dead)
    assert len(handled.received) == DELIVERIES_MAX


async def test_failing_message_does_not_hold_up_others(model: World) -> None:
    """While it waits for its next try, its place is free."""
    handled = Handled(model.clock, fails=lambda time: RuntimeError() if time == 1 else None)
    await model.put(encode(TimerFired(name="bad")), "m-1")
    await model.put(encode(TimerFired(name="good")), "m-2")
    async with working(model.host(), handled):
        await model.until(model.settled)
    assert handled.names == ["bad", "good", "bad"]
    assert handled.at[1] == handled.at[0]


async def test_cancelled_worker_gives_back_at_once(world: World) -> None:
    """So a drained process costs no `ack_wait`."""
    holding = anyio.Event()

    async def hang(_: Received[TimerFired]) -> Sequence[Send]:
        holding.set()
        await anyio.sleep_forever()
        return []

    await world.put(encode(TimerFired(name="one")), "m-1")
    async with working(world.host(ack_wait_s=600.0), hang):
        with anyio.fail_after(DEADLINE_S):
            await holding.wait()
    began = world.clock.monotonic()
    handled = Handled(world.clock)
    async with working(world.host(ack_wait_s=600.0), handled):
        await world.until(world.settled)
    (received,) = handled.received
    assert received.delivered > 1
    assert world.clock.monotonic() - began < DEADLINE_S


async def test_heartbeats_keep_a_long_message_from_being_served_twice(model: World) -> None:
    release = anyio.Event()
    served = []

    async def slow(received: Received[TimerFired]) -> Sequence[Send]:
        served.append(received.delivered)
        await release.wait()
        return []

    await model.put(encode(TimerFired(name="one")), "m-1")
    async with working(model.host(ack_wait_s=5.0), slow, concurrency=4):
        await model.until(lambda: passed(model.clock, 60.0))
        release.set()
        await model.until(model.settled)
    assert served == [1]


@given(st.text(), st.integers(1, 50))
def test_any_text_becomes_one_printable_line_for_a_header(text: str, characters_max: int) -> None:
    line = header_text(text, characters_max)
    assert line.isascii()
    assert line.isprintable()
    assert len(line) <= characters_max * len("\\U0001f600")
