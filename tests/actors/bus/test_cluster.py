"""Expected sequences on a cluster of three, where a refusal does not prove that somebody else has won."""

import anyio
import pytest
from tests.actors.bus.proxy import lossy_proxy

from temporality.actors.bus.nats import connect
from temporality.actors.bus.port import WrongLastSequence
from temporality.protocol.streams import Retention, StreamSpec

DEADLINE_S = 45.0
"""Forming a cluster and changing a leader take seconds; twice that is a failure."""

KEPT = StreamSpec(name="KEPT", subjects=("kept.>",), retention=Retention.LIMITS, private=True)


@pytest.fixture
async def bus(nats_cluster):
    async with connect([server.url for server in nats_cluster], name="test", timeout_s=DEADLINE_S) as bus:
        await bus.declare([KEPT], replicas=3)
        await bus.purge("KEPT", ">")
        yield bus


async def test_of_writers_that_expect_the_same_sequence_exactly_one_wins_each_round(bus, nats_cluster):
    winners = []

    async def write(writer, sequence):
        async with connect(nats_cluster[writer].url, name=f"writer-{writer}") as own:
            try:
                await own.publish(
                    "kept.race", b"%d" % writer, message_id=f"{sequence}-{writer}", expected_last=sequence
                )
            except WrongLastSequence:
                return
            winners.append(writer)

    with anyio.fail_after(DEADLINE_S):
        for round_number in range(1, 6):
            last = await bus.last("KEPT", "kept.race")
            async with anyio.create_task_group() as tasks:
                for writer in range(3):
                    tasks.start_soon(write, writer, last.sequence if last else 0)
            assert len(winners) == round_number
            assert (await bus.last("KEPT", "kept.race")).payload == b"%d" % winners[-1]


async def test_after_a_lost_acknowledgement_reading_the_last_message_tells_who_won(bus, nats_cluster):
    server = nats_cluster[0]
    async with lossy_proxy(server.port) as proxy:
        url = f"nats://{server.user.name}:{server.user.password}@127.0.0.1:{proxy.port}"
        # One address only: the cluster tells the client of its other servers, past the proxy.
        async with connect(url, name="lossy") as lossy:
            proxy.swallow_answers()
            outcome = []

            async def publish():
                try:
                    published = await lossy.publish(
                        "kept.lost", b"mine", message_id="lost-1", expected_last=0
                    )
                    outcome.append("duplicate" if published.duplicate else "stored twice")
                except WrongLastSequence:
                    outcome.append("looks lost")

            with anyio.fail_after(DEADLINE_S):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(publish)
                    await proxy.swallowed(b'"seq"')
                    proxy.cut()
    assert outcome[0] in ("duplicate", "looks lost")
    assert (await bus.last("KEPT", "kept.lost")).headers["Nats-Msg-Id"] == "lost-1"
    assert len(await bus.read("KEPT", "kept.lost")) == 1


async def test_a_publish_and_a_queue_go_on_after_the_leader_is_killed(bus, nats_cluster):
    queue = StreamSpec(name="QUEUE", subjects=("queue.>",), retention=Retention.WORK_QUEUE, private=True)
    await bus.declare([queue], replicas=3)
    async with bus.consume("QUEUE", durable="d", subject="queue.a", ack_wait_s=3) as deliveries:
        with anyio.fail_after(DEADLINE_S):
            await bus.publish("queue.a", b"before", message_id="q1", timeout_s=DEADLINE_S)
            await (await anext(deliveries)).ack()
            leader = await leader_of(bus, "QUEUE", nats_cluster)
            await leader.kill()
            try:
                await bus.publish("queue.a", b"after", message_id="q2", timeout_s=DEADLINE_S)
                while (delivery := await anext(deliveries)).payload != b"after":
                    await delivery.ack()
            finally:
                await leader.start()


async def leader_of(bus, stream, servers):
    info = await bus.request(f"$JS.API.STREAM.INFO.{stream}", b"", timeout_s=5)
    return next(
        server for server in servers if b'"leader":"%s"' % server.folder.name.encode() in info.payload
    )
