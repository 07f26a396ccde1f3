"""What only the model can do: break in exactly the place that a test names."""

import anyio
import anyio.lowlevel
import pytest

from temporality.actors.bus.port import (
    AnswerTimeout,
    BusClosed,
    PublishRefused,
    PublishUnconfirmed,
    WrongLastSequence,
)
from temporality.protocol.streams import Retention, StreamSpec

KEPT = StreamSpec(name="KEPT", subjects=("kept.>",), retention=Retention.LIMITS, private=True)
QUEUE = StreamSpec(
    name="QUEUE", subjects=("queue.>",), retention=Retention.WORK_QUEUE, private=True, schedules=True
)


@pytest.fixture
async def bus(model):
    async with model.connect() as bus:
        await bus.declare([KEPT, QUEUE])
        yield bus


async def test_a_lost_acknowledgement_leaves_the_message_stored_and_the_caller_unsure(model, bus):
    model.server.faults.lose_next_ack("kept.*")
    with pytest.raises(PublishUnconfirmed):
        await model.soon(bus.publish("kept.a", b"x", message_id="1"))
    assert model.clock.monotonic() == 10.0
    assert len(await bus.read("KEPT", "kept.a")) == 1
    assert (await bus.publish("kept.a", b"x", message_id="1")).duplicate


async def test_a_lost_message_is_not_stored(model, bus):
    model.server.faults.lose_next_message("kept.a")
    with pytest.raises(PublishUnconfirmed):
        await model.soon(bus.publish("kept.a", b"x", message_id="1", timeout_s=1))
    assert await bus.last("KEPT", "kept.a") is None


async def test_a_fault_waits_for_the_subject_it_is_meant_for_and_is_used_up(model, bus):
    model.server.faults.lose_next_ack("kept.b")
    await bus.publish("kept.a", b"x", message_id="1")
    with pytest.raises(PublishUnconfirmed):
        await model.soon(bus.publish("kept.b", b"x", message_id="2"))
    await bus.publish("kept.b", b"x", message_id="3")


async def test_a_publish_that_waits_for_its_acknowledgement_is_sent_again_on_reconnect(model, bus):
    model.server.faults.lose_next_ack("kept.a")
    outcome = []

    async def publish():
        try:
            await bus.publish("kept.a", b"x", message_id="1", expected_last=0)
        except WrongLastSequence as error:
            outcome.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        await anyio.wait_all_tasks_blocked()
        bus.connection.cut()
        bus.connection.restore()
    assert len(outcome) == 1


async def test_a_delayed_publish_loses_its_race(model, bus):
    model.server.faults.delay_next("kept.a", 5)
    async with anyio.create_task_group() as tasks:
        refused = []

        async def late():
            try:
                await bus.publish("kept.a", b"late", message_id="1", expected_last=0)
            except WrongLastSequence as error:
                refused.append(error)

        tasks.start_soon(late)
        await anyio.wait_all_tasks_blocked()
        await bus.publish("kept.a", b"first", message_id="2", expected_last=0)
        model.clock.advance(5)
    assert len(refused) == 1


async def test_a_repeated_delivery_comes_twice_at_once(model, bus):
    model.server.faults.repeat_next_delivery("queue.a")
    await bus.publish("queue.a", b"x", message_id="1")
    async with bus.consume("QUEUE", durable="d", subject="queue.a", ack_wait_s=5) as deliveries:
        first, second = await anext(deliveries), await anext(deliveries)
        assert (first.sequence, first.delivered, second.sequence, second.delivered) == (1, 1, 1, 2)
        await second.ack()
        assert await bus.pending("QUEUE", "d") == (0, 0)


async def test_a_full_disk_refuses_everything_until_there_is_room(model, bus):
    model.server.faults.disk_full = True
    bucket = await bus.bucket("b", ttl_s=5)
    for refused in (
        bus.publish("kept.a", b"x", message_id="1"),
        bus.schedule("queue.timer", "queue.a", b"x", at=model.clock.now()),
        bucket.create("k", b"x"),
    ):
        with pytest.raises(PublishRefused):
            await refused
    model.server.faults.disk_full = False
    assert not (await bus.publish("kept.a", b"x", message_id="1")).duplicate


async def test_a_cut_connection_goes_on_where_it_was_when_it_is_back(model, bus):
    back = []
    bus.on_reconnect(lambda: back.append(True))
    async with (
        model.connect() as other,
        bus.consume("QUEUE", durable="d", subject="queue.a", ack_wait_s=5) as deliveries,
        bus.follow("KEPT", "kept.>") as messages,
        bus.subscribe("core") as core,
    ):
        await other.publish("queue.a", b"0", message_id="q0")
        held = await anext(deliveries)
        bus.connection.cut()
        await held.ack()
        await bus.send("core.out", b"buffered")
        await other.publish("queue.a", b"1", message_id="q1")
        await other.publish("kept.a", b"1", message_id="k1")
        await other.send("core", b"lost")
        assert await other.pending("QUEUE", "d") == (1, 1)
        assert (len(deliveries), len(messages), len(core)) == (0, 0, 0)
        async with other.subscribe("core.out") as sent:
            bus.connection.restore()
            assert (await anext(sent)).payload == b"buffered"
        assert ((await anext(deliveries)).payload, (await anext(messages)).payload) == (b"1", b"1")
        assert (len(core), back) == (0, [True])
        assert await other.pending("QUEUE", "d") == (0, 1)


async def test_while_it_is_cut_calls_wait_and_give_up_at_their_deadlines(model, bus):
    bus.connection.cut()
    with pytest.raises(PublishUnconfirmed):
        await model.soon(bus.publish("kept.a", b"x", message_id="1", timeout_s=2))
    with pytest.raises(AnswerTimeout):
        await model.soon(bus.request("ask", b"x", timeout_s=2))
    with pytest.raises(AnswerTimeout):
        await model.soon(bus.last("KEPT", "kept.a"))


async def test_closing_a_cut_connection_ends_those_who_wait(bus):
    bus.connection.cut()
    closed = []

    async def publish():
        try:
            await bus.publish("kept.a", b"x", message_id="1")
        except BusClosed as error:
            closed.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        await anyio.wait_all_tasks_blocked()
        await bus.aclose()
    assert len(closed) == 1


async def test_ids_are_forgotten_after_the_dedupe_window(model, bus):
    await bus.publish("kept.a", b"x", message_id="1")
    model.clock.advance(119)
    assert (await bus.publish("kept.a", b"x", message_id="1")).duplicate
    model.clock.advance(2)
    assert not (await bus.publish("kept.a", b"x", message_id="1")).duplicate
