"""What is promised when a server dies or an answer gets lost: real processes, real kills."""

import anyio
import pytest
from tests.actors.bus.proxy import lossy_proxy

from temporality.actors.bus.nats import connect
from temporality.actors.bus.port import BusError, PublishRefused, WrongLastSequence
from temporality.protocol.streams import Retention, StreamSpec

DEADLINE_S = 30.0

KEPT = StreamSpec(name="KEPT", subjects=("kept.>",), retention=Retention.LIMITS, private=True)
QUEUE = StreamSpec(name="QUEUE", subjects=("queue.>",), retention=Retention.WORK_QUEUE, private=True)


@pytest.fixture
async def bus(nats_bus):
    await nats_bus.declare([KEPT, QUEUE])
    return nats_bus


async def test_a_publish_in_flight_gets_through_when_the_server_is_killed_and_back(bus, nats_server):
    await nats_server.kill()
    async with anyio.create_task_group() as tasks:
        results = []

        async def publish(number):
            results.append(await bus.publish(f"kept.{number}", b"x", message_id=f"in-flight-{number}"))

        for number in range(10):
            tasks.start_soon(publish, number)
        await nats_server.start()
    assert len(results) == 10
    assert len(await bus.read("KEPT", "kept.*")) == 10


async def test_kills_under_load_lose_no_acknowledged_message_and_store_none_twice(bus, nats_server):
    acknowledged = []

    async def write():
        for number in range(400):
            published = await bus.publish("kept.load", b"%d" % number, message_id=f"load-{number}")
            acknowledged.append((number, published.sequence))

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            for wanted in (100, 200, 300):
                while len(acknowledged) < wanted:
                    await anyio.lowlevel.checkpoint()
                await nats_server.restart()
        found = await bus.read("KEPT", "kept.load", count_max=1000)
    assert [int(message.payload) for message in found] == list(range(400))
    assert {message.sequence for message in found} == {sequence for _, sequence in acknowledged}


async def test_consumers_readers_and_subscriptions_go_on_after_a_restart(bus, nats_server):
    back = anyio.Event()
    bus.on_reconnect(back.set)
    async with (
        bus.consume("QUEUE", durable="d", subject="queue.a", ack_wait_s=2) as deliveries,
        bus.follow("KEPT", "kept.>") as messages,
        bus.subscribe("core.a") as core,
    ):
        with anyio.fail_after(DEADLINE_S):
            await bus.publish("queue.a", b"before", message_id="q1")
            await (await anext(deliveries)).ack()
            await bus.publish("kept.a", b"before", message_id="k1")
            assert (await anext(messages)).payload == b"before"
            await nats_server.restart()
            await back.wait()
            await bus.publish("queue.a", b"after", message_id="q2")
            await bus.publish("kept.a", b"after", message_id="k2")
            await bus.send("core.a", b"after")
            while (delivery := await anext(deliveries)).payload != b"after":
                await delivery.ack()  # an acknowledgement that the kill overtook
            assert [(await anext(messages)).payload, (await anext(core)).payload] == [b"after", b"after"]


async def test_questions_about_streams_wait_for_the_server(bus, nats_server):
    await bus.publish("kept.a", b"x", message_id="wait-1")
    await nats_server.kill()
    async with anyio.create_task_group() as tasks:
        found = []

        async def ask():
            found.append(await bus.last("KEPT", "kept.a"))

        tasks.start_soon(ask)
        await nats_server.start()
    assert found[0].payload == b"x"


async def test_a_publish_whose_acknowledgement_is_lost_is_sent_again_and_stored_once(bus, nats_server):
    async with lossy_proxy(nats_server.port) as proxy, through(proxy, nats_server) as lossy:
        proxy.swallow_answers()
        async with anyio.create_task_group() as tasks:
            results = []

            async def publish():
                results.append(await lossy.publish("kept.lost", b"once", message_id="lost-1"))

            tasks.start_soon(publish)
            await proxy.swallowed(b'"seq"')
            proxy.cut()
    assert results[0].duplicate
    assert len(await bus.read("KEPT", "kept.lost")) == 1


async def test_a_publish_that_is_never_answered_is_sent_again_with_the_same_id_and_reply(
    nats_bus, nats_server
):
    async with (
        connect(nats_server.url, name="leader") as leader,
        leader.subscribe("played.leader") as copies,
        anyio.create_task_group() as tasks,
    ):

        async def die_and_let_another_answer():
            first, second = await anext(copies), await anext(copies)
            assert (first.reply, first.headers) == (second.reply, second.headers)
            await leader.send(first.reply, b'{"stream":"PLAYED","seq":7}')

        tasks.start_soon(die_and_let_another_answer)
        published = await nats_bus.publish("played.leader", b"x", message_id="silence-1")
    assert (published.stream, published.sequence) == ("PLAYED", 7)


@pytest.mark.usefixtures("bus")
async def test_a_lost_acknowledgement_with_an_expectation_looks_like_a_lost_race(nats_server):
    async with lossy_proxy(nats_server.port) as proxy, through(proxy, nats_server) as lossy:
        proxy.swallow_answers()
        async with anyio.create_task_group() as tasks:
            outcome = []

            async def publish():
                try:
                    await lossy.publish("kept.won", b"mine", message_id="won-1", expected_last=0)
                except WrongLastSequence as error:
                    outcome.append(error)

            tasks.start_soon(publish)
            await proxy.swallowed(b'"seq"')
            proxy.cut()
        last = await lossy.last("KEPT", "kept.won")
    assert len(outcome) == 1
    assert last.headers["Nats-Msg-Id"] == "won-1"  # reading the subject tells that it was ours


@pytest.mark.usefixtures("bus")
async def test_a_lease_whose_acknowledgement_is_lost_is_known_to_be_ours(nats_server):
    async with lossy_proxy(nats_server.port) as proxy, through(proxy, nats_server) as lossy:
        bucket = await lossy.bucket("leases", ttl_s=60)
        proxy.swallow_answers()
        async with anyio.create_task_group() as tasks:
            revisions = []

            async def create():
                revisions.append(await bucket.create("k", b"mine"))

            tasks.start_soon(create)
            await proxy.swallowed(b'"seq"')
            proxy.cut()
        assert revisions[0] == (await bucket.get("k"))[1]


async def test_a_deleted_consumer_is_made_again(bus):
    async with bus.consume("QUEUE", durable="gone", subject="queue.b", ack_wait_s=5) as deliveries:
        await bus.publish("queue.b", b"first", message_id="gone-0")
        await (await anext(deliveries)).ack()  # so the standing request has reached the server
        with anyio.fail_after(DEADLINE_S):
            while await bus.pending("QUEUE", "gone") != (0, 0):
                await anyio.lowlevel.checkpoint()
        answer = await bus.request("$JS.API.CONSUMER.DELETE.QUEUE.gone", b"", timeout_s=5)
        assert b'"success":true' in answer.payload
        await bus.publish("queue.b", b"x", message_id="gone-1")
        with anyio.fail_after(DEADLINE_S):
            assert (await anext(deliveries)).payload == b"x"


async def test_a_full_store_refuses_and_keeps_what_it_has(bus):
    update = (
        b'{"name":"KEPT","subjects":["kept.>"],"retention":"limits","storage":"file","num_replicas":1,'
        b'"discard":"new","max_msgs":2,"duplicate_window":120000000000,"allow_direct":true}'
    )
    assert b'"error"' not in (await bus.request("$JS.API.STREAM.UPDATE.KEPT", update, timeout_s=5)).payload
    for number in range(2):
        await bus.publish("kept.full", b"x", message_id=f"full-{number}")
    with pytest.raises(PublishRefused, match="maximum messages exceeded"):
        await bus.publish("kept.full", b"x", message_id="full-3")
    assert len(await bus.read("KEPT", "kept.full")) == 2


async def test_a_server_that_is_not_there_is_told_with_its_address():
    with pytest.raises(BusError, match=r"127\.0\.0\.1:1\b"):
        async with connect("nats://user:secret@127.0.0.1:1", name="test", timeout_s=0.5):
            pass


async def test_a_wrong_password_is_told_at_once_and_not_shown(nats_server):
    url = f"nats://temporality:guessed@127.0.0.1:{nats_server.port}"
    with pytest.raises(BusError, match=r"(?i)authorization") as refused:
        async with connect(url, name="test", timeout_s=3600):
            pass
    assert "guessed" not in str(refused.value)


def through(proxy, server):
    return connect(f"nats://{server.user.name}:{server.user.password}@127.0.0.1:{proxy.port}", name="lossy")
