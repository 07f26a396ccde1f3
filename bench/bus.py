"""What the bus costs, beside bare NATS in the same run: publish, request, and a queue's throughput.

    python bench/bus.py [--seconds 3] [--plain]    (uvloop unless --plain)

`bare` is the least that does the same: one future, one subscription for answers, no retries, no deadlines.
The figures of a run compare with each other only: the machine is shared, so the two take turns.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from temporality.actors.bus.nats import connect
from temporality.actors.bus.port import Bus
from temporality.deploy.embedded import embedded_server
from temporality.deploy.server_config import Sync
from temporality.protocol.streams import Retention, StreamSpec

RESULTS = Path(__file__).parent / "results" / "bus.json"
PAYLOAD = b"x" * 600
"""About a commit of a small turn."""
ROUND = 50
"""Operations before the other one has its turn."""

KEPT = StreamSpec(name="KEPT", subjects=("kept.*",), retention=Retention.LIMITS, private=True)
QUEUE = StreamSpec(name="QUEUE", subjects=("queue.*",), retention=Retention.WORK_QUEUE, private=True)

Operation = Callable[[int], Awaitable[object]]


class BareClient:
    """Question and answer over nats-py with nothing around them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._prefix = client.new_inbox()
        self._waiting: dict[str, asyncio.Future[Msg]] = {}

    async def open(self) -> None:
        """Subscribe for answers."""
        await self._client.subscribe(f"{self._prefix}.*", cb=self._receive)

    async def ask(self, subject: str, token: str, headers: dict[str, str] | None = None) -> Msg:
        """Ask and wait for the answer, for ever."""
        future = self._waiting[token] = asyncio.get_running_loop().create_future()
        await self._client.publish(subject, PAYLOAD, f"{self._prefix}.{token}", headers)
        answer: Msg = await future
        return answer

    async def _receive(self, message: Msg) -> None:
        self._waiting.pop(message.subject.rpartition(".")[2]).set_result(message)


async def take_turns(operations: dict[str, Operation], seconds: float) -> dict[str, dict[str, float]]:
    """Time each operation, alternating in rounds, and return its percentiles in milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in operations}
    end, number = time.monotonic() + seconds * len(operations), 0
    while time.monotonic() < end:
        for name, operation in operations.items():
            for _ in range(ROUND):
                number += 1
                started = time.perf_counter()
                await operation(number)
                times[name].append((time.perf_counter() - started) * 1000)
    return {
        name: {
            "p50_ms": round(statistics.median(found), 3),
            "p99_ms": round(statistics.quantiles(found, n=100)[98], 3),
            "count": len(found),
        }
        for name, found in times.items()
    }


async def publish(bus: Bus, bare: BareClient, seconds: float) -> dict[str, Any]:
    """Durable publishes, one after another, to a subject of their own each."""
    found: dict[str, Any] = await take_turns(
        {
            "bus": lambda n: bus.publish("kept.a", PAYLOAD, message_id=f"a{n}"),
            "bare": lambda n: bare.ask("kept.b", str(n), {"Nats-Msg-Id": f"b{n}"}),
        },
        seconds,
    )
    return with_ratio(found)


async def request(bus: Bus, client: Client, bare: BareClient, seconds: float) -> dict[str, Any]:
    """Questions to another connection that answers at once."""

    async def answer(message: Msg) -> None:
        await client.publish(message.reply, b"answer")

    await client.subscribe("ask.bench", cb=answer)
    await client.flush()
    found: dict[str, Any] = await take_turns(
        {
            "bus": lambda _: bus.request("ask.bench", PAYLOAD, timeout_s=5),
            "bare": lambda n: bare.ask("ask.bench", f"q{n}"),
        },
        seconds,
    )
    return with_ratio(found)


async def consume(bus: Bus, count: int) -> dict[str, Any]:
    """Take and acknowledge a backlog by one standing pull."""
    async with anyio.create_task_group() as tasks:
        limit = anyio.CapacityLimiter(64)

        async def fill(number: int) -> None:
            async with limit:
                await bus.publish("queue.a", PAYLOAD, message_id=f"q{number}")

        for number in range(count):
            tasks.start_soon(fill, number)
    started = time.perf_counter()
    async with bus.consume("QUEUE", durable="bench", subject="queue.a", ack_wait_s=30) as deliveries:
        for _ in range(count):
            await (await anext(deliveries)).ack()
        elapsed_s = time.perf_counter() - started
    return {"messages_per_s": round(count / elapsed_s), "count": count}


def with_ratio(found: dict[str, Any]) -> dict[str, Any]:
    """Add what the bus costs as a multiple of the bare client."""
    found["ratio_p50"] = round(found["bus"]["p50_ms"] / found["bare"]["p50_ms"], 3)
    return found


async def measure(sync: Sync, seconds: float) -> dict[str, Any]:
    """Run everything against a fresh server of that durability."""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            embedded_server(Path(folder), sync=sync) as server,
            connect(server.url, name="bench") as bus,
        ):
            await bus.declare([KEPT, QUEUE])
            client, answering = await nats.connect(server.url), await nats.connect(server.url)
            bare = BareClient(client)
            await bare.open()
            found = {
                "publish": await publish(bus, bare, seconds),
                "request": await request(bus, answering, bare, seconds),
                "consume": await consume(bus, 5000),
            }
            await client.close()
            await answering.close()
            return found


async def main(seconds: float, loop: str) -> None:
    """Measure both durabilities and write the results."""
    results: dict[str, Any] = {
        "loop": loop,
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }
    for sync in ("always", "default"):
        results[f"sync_{sync}"] = await measure(sync, seconds)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--seconds", type=float, default=3.0, help="for each operation")
    arguments.add_argument("--plain", action="store_true", help="asyncio's own loop instead of uvloop")
    options = arguments.parse_args()
    anyio.run(
        main,
        options.seconds,
        "asyncio" if options.plain else "uvloop",
        backend_options={"use_uvloop": not options.plain},
    )
