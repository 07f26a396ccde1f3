"""What is caused is stored before the acknowledgement; nothing is lost or doubled by a crash in between."""

from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest

from temporality.actors.crash import CrashPoints
from temporality.actors.host import WORLD_RETRY_DELAY_S, Received, Send
from temporality.protocol.codec import decode, encode
from temporality.protocol.message import CAUSE_HEADER, ID_HEADER, SCHEMA_HEADER, TRACE_HEADER
from temporality.protocol.run import TimerFired
from temporality.protocol.streams import WORK

from .world import QUEUE, TRACEPARENT, Handled, World, passed, working

# --- what goes well ---------------------------------------------------------------------------------------


async def test_message_is_handled_what_it_caused_is_stored_and_then_it_is_gone(world: World) -> None:
    handled = Handled(world.clock)
    await world.put(
        encode(TimerFired(name="one")),
        "m-1",
        **{ID_HEADER: "m-1", CAUSE_HEADER: "c-0", TRACE_HEADER: TRACEPARENT},
    )
    async with working(world.host(), handled):
        await world.until(world.settled)
    (received,) = handled.received
    assert (received.id, received.cause, received.traceparent) == ("m-1", "c-0", TRACEPARENT)
    assert (received.subject, received.delivered) == (QUEUE, 1)
    (stored,) = await world.caused()
    assert decode(stored.payload, TimerFired) == TimerFired(name="one")
    assert {stored.headers[name] for name in (ID_HEADER, CAUSE_HEADER, SCHEMA_HEADER, TRACE_HEADER)} == {
        "caused-m-1",
        "m-1",
        "1",
        TRACEPARENT,
    }


async def test_message_without_headers_gets_an_id_that_its_repeat_has_too(model: World) -> None:
    handled = Handled(model.clock, fails=lambda time: RuntimeError() if time == 1 else None)
    await model.put(encode(TimerFired(name="one")), "m-1")
    async with working(model.host(), handled):
        await model.until(model.settled)
    first, second = handled.received
    assert first.id == second.id == f"{WORK}-{first.sequence}"


async def test_as_many_messages_are_handled_at_once_as_allowed(model: World) -> None:
    release, busy = anyio.Event(), []

    async def handle(received: Received[TimerFired]) -> Sequence[Send]:
        busy.append(received.message.name)
        await release.wait()
        return []

    for index in range(5):
        await model.put(encode(TimerFired(name=f"t{index}")), f"m-{index}")
    async with working(model.host(), handle, concurrency=3):
        for _ in range(200):
            await anyio.lowlevel.checkpoint()
        assert busy == ["t0", "t1", "t2"]
        release.set()
        await model.until(model.settled)
    assert len(busy) == 5


# --- what was caused is stored before the acknowledgement -------------------------------------------------


class Died(BaseException):
    """Stands for the end of the process."""


class DiesAt(CrashPoints):
    """End the work at one point, once, as far as it can be done without ending the test."""

    def __init__(self, point: str) -> None:
        super().__init__()
        self._left = [point]

    def reached(self, point: str) -> None:
        if point in self._left:
            self._left.remove(point)
            raise Died


@pytest.mark.parametrize(
    ("point", "stored", "served_again"),
    [("worker.handled", 0, True), ("worker.published", 1, True), ("worker.acked", 1, False)],
)
async def test_crash_between_any_two_steps_loses_and_doubles_nothing(
    world: World, point: str, stored: int, served_again: bool
) -> None:
    handled = Handled(world.clock)
    await world.put(encode(TimerFired(name="one")), "m-1", **{ID_HEADER: "m-1"})
    with pytest.raises(BaseExceptionGroup) as raised:
        async with working(world.host(crash=DiesAt(point)), handled):
            await anyio.sleep_forever()
    assert raised.group_contains(Died)
    assert len(await world.caused()) == stored
    async with working(world.host(), handled):
        await world.until(world.settled)
    assert (len(handled.received) > 1) == served_again
    assert len(await world.caused()) == 1


async def test_message_whose_effect_can_t_be_stored_is_not_acknowledged(model: World) -> None:
    assert model.server is not None
    handled = Handled(model.clock)
    await model.put(encode(TimerFired(name="one")), "m-1")
    model.server.faults.disk_full = True
    async with working(model.host(), handled):
        await model.until(lambda: passed(model.clock, 3 * WORLD_RETRY_DELAY_S))
        assert not await model.settled()
        model.server.faults.disk_full = False
        await model.until(model.settled)
    assert len(handled.received) > 1
    assert len(await model.caused()) == 1
