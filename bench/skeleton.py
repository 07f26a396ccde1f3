"""A bare skeleton of a turn: the same durable messages between three processes, plain nats-py, no product.

What a turn can't do without: model call and reply, tool call and outcome, two commits with an expected
sequence. No state, no transcript, no barrier, no facts; the ratio to it is what the product costs.
"""

import asyncio
import multiprocessing
import time
from itertools import pairwise
from multiprocessing.connection import Connection

import nats
import uvloop
from bench.noop_tool import noop
from nats.errors import TimeoutError as FetchTimeout
from nats.js.api import ConsumerConfig, RetentionPolicy, StreamConfig
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

PREFIX = "skeleton"
ACK_WAIT_S = 5.0
COMMIT_OVERHEAD = b"x" * 600
"""About what ids, facts and outgoing messages add to the content of a commit."""


async def _streams(js: JetStreamContext) -> None:
    queue = RetentionPolicy.WORK_QUEUE
    await js.add_stream(StreamConfig(name="SKEL_IN", subjects=[f"{PREFIX}.in.>"], retention=queue))
    await js.add_stream(StreamConfig(name="SKEL_WORK", subjects=[f"{PREFIX}.work.>"], retention=queue))
    await js.add_stream(StreamConfig(name="SKEL_RUNS", subjects=[f"{PREFIX}.run.>"]))


async def _pull(js: JetStreamContext, stream: str, subject: str):  # type: ignore[no-untyped-def]
    config = ConsumerConfig(ack_wait=ACK_WAIT_S)
    return await js.pull_subscribe(
        subject, durable=subject.strip(".>").replace(".", "-"), stream=stream, config=config
    )


async def _worker(url: str, kind: str, stop: Connection) -> None:
    connection = await nats.connect(url)
    js = connection.jetstream()
    subscription = await _pull(js, "SKEL_WORK", f"{PREFIX}.work.{kind}")
    stop.send("ready")
    count = 0
    while not stop.poll():
        try:
            (message,) = await subscription.fetch(1, timeout=1)
        except FetchTimeout:
            continue
        count += 1
        body = noop(count).encode() if kind == "tool" else b'{"calls": [{"name": "noop", "n": 1}]}'
        await js.publish(f"{PREFIX}.in.{kind}", body, headers={"Nats-Msg-Id": f"{kind}{count}{time.time()}"})
        await message.ack()
    await connection.close()


def _run_worker(url: str, kind: str, stop: Connection) -> None:
    uvloop.run(_worker(url, kind, stop))


async def _supervise(url: str, turns: int) -> list[float]:
    connection = await nats.connect(url)
    js = connection.jetstream()
    subscription = await _pull(js, "SKEL_IN", f"{PREFIX}.in.>")
    last, ends = 0, []

    async def commit(body: bytes, number: int) -> None:
        nonlocal last
        headers = {"Nats-Expected-Last-Subject-Sequence": str(last), "Nats-Msg-Id": f"c{number}{time.time()}"}
        last = (await js.publish(f"{PREFIX}.run.r", body + COMMIT_OVERHEAD, headers=headers)).seq

    async def work(kind: str, number: int) -> None:
        headers = {"Nats-Msg-Id": f"w{kind}{number}{time.time()}"}
        await js.publish(f"{PREFIX}.work.{kind}", b"x" * 300, headers=headers)

    await work("model", 0)
    for number in range(turns):
        (reply,) = await subscription.fetch(1, timeout=10)
        await commit(reply.data, 2 * number)
        await work("tool", number)
        await reply.ack()
        (outcome,) = await subscription.fetch(1, timeout=10)
        await commit(outcome.data, 2 * number + 1)
        await work("model", number + 1)
        await outcome.ack()
        ends.append(time.perf_counter())
    await connection.close()
    return [after - before for before, after in pairwise(ends)]


async def _prepare(url: str) -> None:
    connection = await nats.connect(url)
    js = connection.jetstream()
    for name in ("SKEL_IN", "SKEL_WORK", "SKEL_RUNS"):
        try:
            await js.delete_stream(name)
        except NotFoundError:
            continue
    await _streams(js)
    await connection.close()


def measure(url: str, turns: int) -> list[float]:
    """Return the seconds of each turn of the skeleton on the server at `url`."""
    asyncio.run(_prepare(url))
    context = multiprocessing.get_context("spawn")
    workers = []
    for kind in ("model", "tool"):
        ours, theirs = context.Pipe()
        process = context.Process(target=_run_worker, args=(url, kind, theirs), daemon=True)
        process.start()
        workers.append((process, ours))
    for _, pipe in workers:
        pipe.recv()
    try:
        return uvloop.run(_supervise(url, turns))
    finally:
        for process, pipe in workers:
            pipe.send("stop")
            process.join(timeout=10)
