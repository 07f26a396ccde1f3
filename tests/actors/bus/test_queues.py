"""What a queue promises to those who share it, on the model and on a real server alike."""

import anyio
import pytest

from temporality.actors.bus.port import BusClosed, BusError
from temporality.protocol.streams import Retention


async def fill(bus, spec, count):
    for number in range(count):
        await bus.publish(f"{spec.name}.a", str(number).encode(), message_id=str(number))


def share(bus, spec, *, ack_wait_s=30.0, in_flight_max=128, subject="a"):
    return bus.consume(
        spec.name,
        durable="d",
        subject=f"{spec.name}.{subject}",
        ack_wait_s=ack_wait_s,
        in_flight_max=in_flight_max,
    )


async def test_an_acknowledged_message_is_gone_from_the_queue(bus, broker, stream):
    spec = await stream(Retention.WORK_QUEUE)
    await fill(bus, spec, 2)
    async with share(bus, spec) as deliveries:
        first, second = await broker.soon(anext(deliveries)), await broker.soon(anext(deliveries))
        assert (first.payload, first.subject, first.sequence) == (b"0", f"{spec.name}.a", 1)
        assert (first.delivered, first.headers) == (1, {"Nats-Msg-Id": "0"})
        assert await bus.pending(spec.name, "d") == (0, 2)
        await first.ack()
        await second.ack()
        await broker.until(lambda: bus.pending(spec.name, "d"), (0, 0))
    assert await bus.last(spec.name, ">") is None


async def test_a_message_published_later_comes_without_being_asked_for_again(bus, other, broker, stream):
    spec = await stream(Retention.WORK_QUEUE)
    async with share(bus, spec) as deliveries:
        for number in range(300):
            await other.publish(f"{spec.name}.a", str(number).encode(), message_id=str(number))
            delivery = await broker.soon(anext(deliveries))
            assert delivery.payload == str(number).encode()
            await delivery.ack()


async def test_an_unsettled_delivery_comes_again_after_ack_wait(bus, broker, stream):
    spec = await stream(Retention.WORK_QUEUE)
    await fill(bus, spec, 1)
    async with share(bus, spec, ack_wait_s=0.5, in_flight_max=1) as deliveries:
        first = await broker.soon(anext(deliveries))
        again = await broker.soon(anext(deliveries))
        assert (again.sequence, first.delivered, again.delivered) == (first.sequence, 1, 2)


async def test_a_message_given_back_comes_again(bus, broker, stream):
    spec = await stream(Retention.WORK_QUEUE)
    await fill(bus, spec, 1)
    async with share(bus, spec) as deliveries:
        await (await broker.soon(anext(deliveries))).nak()
        again = await broker.soon(anext(deliveries))
        await again.nak(delay_s=0.3)
        before = broker.clock.now()
        third = await broker.soon(anext(deliveries))
        assert (again.delivered, third.delivered) == (2, 3)
        assert (broker.clock.now() - before).total_seconds() >= 0.25


async def test_in_progress_holds_a_delivery_beyond_ack_wait(bus, broker, stream):
    spec = await stream(Retention.WORK_QUEUE)
    await fill(bus, spec, 1)
    async with (
        share(bus, spec, ack_wait_s=1.0) as deliveries,
        bus.consume(
            spec.name, durable="ticks", subject=f"{spec.name}.tick", ack_wait_s=0.4, in_flight_max=1
        ) as ticks,
    ):
        held = await broker.soon(anext(deliveries))
        await bus.publish(f"{spec.name}.tick", b"", message_id="tick")
        for _ in range(5):  # a redelivery every 0.4 s stands for the time that passes: 1.6 s in all
            await broker.soon(anext(ticks))
            await held.in_progress()
        await held.ack()
        await broker.until(lambda: bus.pending(spec.name, "d"), (0, 0))
        assert len(deliveries) == 0


async def test_a_message_given_up_never_comes_again(bus, broker, stream):
    spec = await stream(Retention.WORK_QUEUE)
    await fill(bus, spec, 2)
    async with share(bus, spec, ack_wait_s=0.3, in_flight_max=1) as deliveries:
        await (await broker.soon(anext(deliveries))).term("not\nunderstood")
        assert (await broker.soon(anext(deliveries))).payload == b"1"
        assert (await broker.soon(anext(deliveries))).payload == b"1"
    assert [m.payload for m in await bus.read(spec.name, ">")] == [b"1"]


async def test_no_more_than_in_flight_max_are_held_at_once(bus, broker, stream):
    spec = await stream(Retention.WORK_QUEUE)
    await fill(bus, spec, 5)
    async with share(bus, spec, in_flight_max=2) as deliveries:
        held = [await broker.soon(anext(deliveries)) for _ in range(2)]
        assert await bus.pending(spec.name, "d") == (3, 2)
        await held[0].ack()
        await broker.soon(anext(deliveries))
        await broker.until(lambda: bus.pending(spec.name, "d"), (2, 2))


async def test_those_who_share_a_durable_name_get_each_message_once(bus, other, broker, stream):
    spec = await stream(Retention.WORK_QUEUE)
    taken = {"bus": [], "other": []}
    complete = anyio.Event()

    async def work(name, deliveries):
        async for delivery in deliveries:
            taken[name].append(delivery.payload)
            await delivery.ack()
            if len(taken["bus"]) + len(taken["other"]) == 40:
                complete.set()

    async with share(bus, spec) as mine, share(other, spec) as theirs, anyio.create_task_group() as tasks:
        tasks.start_soon(work, "bus", mine)
        tasks.start_soon(work, "other", theirs)
        await fill(bus, spec, 40)
        await broker.soon(complete.wait())
        tasks.cancel_scope.cancel()
    assert sorted(map(int, taken["bus"] + taken["other"])) == list(range(40))
    assert taken["bus"]
    assert taken["other"]


async def test_leaving_gives_back_at_once_what_nobody_has_taken(bus, other, broker, stream):
    spec = await stream(Retention.WORK_QUEUE)
    await fill(bus, spec, 3)
    async with share(bus, spec) as deliveries:
        first = await broker.soon(anext(deliveries))
        await broker.until(lambda: bus.pending(spec.name, "d"), (0, 3))
    async with share(other, spec) as deliveries:
        given_back = [await broker.soon(anext(deliveries)) for _ in range(2)]
    assert first.payload == b"0"
    assert sorted((d.payload, d.delivered) for d in given_back) == [(b"1", 2), (b"2", 2)]


async def test_an_acknowledgement_is_no_fence(bus, broker, stream):
    spec = await stream(Retention.WORK_QUEUE)
    await fill(bus, spec, 1)
    async with share(bus, spec, ack_wait_s=0.4) as deliveries:
        expired = await broker.soon(anext(deliveries))
        await broker.soon(anext(deliveries))
        await expired.ack()
        await broker.until(lambda: bus.pending(spec.name, "d"), (0, 0))
    assert await bus.last(spec.name, ">") is None


async def test_filters_of_a_work_queue_must_not_overlap(bus, stream):
    spec = await stream(Retention.WORK_QUEUE)
    async with share(bus, spec, subject="*"):
        with pytest.raises(BusError):
            async with bus.consume(spec.name, durable="e", subject=f"{spec.name}.a", ack_wait_s=5):
                pass


async def test_a_consumer_of_a_kept_stream_goes_on_where_it_was_and_removes_nothing(bus, broker, stream):
    spec = await stream()
    await fill(bus, spec, 2)
    async with share(bus, spec, in_flight_max=1) as deliveries:
        await (await broker.soon(anext(deliveries))).ack()
        await broker.until(lambda: bus.pending(spec.name, "d"), (0, 1))
    async with share(bus, spec) as deliveries:
        again = await broker.soon(anext(deliveries))
        assert again.payload == b"1"
        await again.ack()
    assert len(await bus.read(spec.name, ">")) == 2


async def test_closing_the_bus_ends_iterating_and_the_next_share_gets_what_was_held(
    broker, bus, other, stream
):
    spec = await stream(Retention.WORK_QUEUE)
    await fill(bus, spec, 1)
    async with share(other, spec, ack_wait_s=0.5) as deliveries:
        await broker.soon(anext(deliveries))
        await other.aclose()
        with pytest.raises(BusClosed):
            await anext(deliveries)
    async with share(bus, spec, ack_wait_s=0.5) as deliveries:
        assert (await broker.soon(anext(deliveries))).delivered == 2
