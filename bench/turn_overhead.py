"""What a turn costs: all actors in processes of their own, a no-op tool, a scripted model in process.

    python -m bench.turn_overhead [--turns 300] [--rounds 3]

Each round measures the product and, on the same server, a bare skeleton of the same durable messages
(`bench/skeleton.py`); the ratio is of their medians. Reported beside it: a long run's last turns against its
first ones, and bytes stored against the content of the run.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread
from bench import skeleton

from temporality.actors.bus.port import Bus
from temporality.deploy.assembly import open_bus
from temporality.deploy.config import Config, EmbeddedNats, Environment, NatsSettings
from temporality.deploy.local import deployment
from temporality.protocol import subjects
from temporality.protocol.agent import AgentSpec, ModelSpec, PrimingSpec, RunLimits, ToolsSpec
from temporality.protocol.codec import decode, encode
from temporality.protocol.fact import PublicFact
from temporality.protocol.identity import RunIdentity, new_run_id
from temporality.protocol.run import Commit, ModelReplied, RunFailed, RunFinished, StartRun, ToolReplied
from temporality.protocol.streams import FACTS, RUNS
from temporality.protocol.tool import content_of

REPOSITORY = Path(__file__).parents[1]
RESULTS = REPOSITORY / "bench" / "results" / "turn_overhead.json"
LONG_RUN_TURNS = 1_010
FOLD_WAIT_S = 2.0
WINDOW = 20
"""Turns around the 10th and the 1,000th whose medians are compared."""


class Measured(msgspec.Struct, kw_only=True):
    """One run: seconds of each turn, of the provider in it, and characters of content."""

    run: str
    turns_s: list[float]
    provider_s: list[float]
    content: int


def script(turns: int) -> str:
    """Return the text of a script that calls the tool `turns` times, then answers."""
    call = '{name: noop, arguments: {n: "{{turn:int}}"}}'
    rule = f"{{when: {{turn: {{max: {turns}}}}}, reply: {{tool_calls: [{call}]}}}}"
    return f"model: bench\nreplies: [{rule}, {{reply: {{content: done}}}}]"


async def measure_run(bus: Bus, turns: int) -> Measured:
    """Run an agent of `turns` turns and measure it from its commits."""
    run = new_run_id()
    spec = AgentSpec(
        name="bench",
        model=ModelSpec(provider="scripted", name="bench", script=script(turns)),
        tools=ToolsSpec(python=("bench.noop_tool:noop",)),
        limits=RunLimits(turns_max=turns + 10),
        priming=PrimingSpec(tokens=0),
    )
    start = StartRun(identity=RunIdentity(run=run), agent=spec, task="Call the tool until it is enough.")
    await bus.publish(subjects.inbox(run, "command"), encode(start), message_id=run)
    at: list[float] = []
    provider: list[float] = []
    content = len(encode(start))
    async with bus.follow(RUNS, subjects.commit(run)) as commits:
        async for stored in commits:
            for fact in decode(stored.payload, Commit).facts:
                match fact:
                    case ModelReplied(calls=calls, content=text, duration_ms=duration_ms):
                        at.append(time.perf_counter())
                        provider.append(duration_ms / 1000)
                        content += len(text) + sum(len(call.arguments) + len(call.name) for call in calls)
                    case ToolReplied(outcome=outcome):
                        content += len(content_of(outcome))
                    case RunFailed():
                        raise RuntimeError(f"the run failed: {fact}")
                    case RunFinished():
                        seconds = [after - before for before, after in pairwise(at)]
                        return Measured(run=run, turns_s=seconds, provider_s=provider[1:], content=content)
    raise RuntimeError("the run did not end")


def stored_bytes(folder: Path) -> int:
    """Return the bytes that runs leave in a deployment's folder: streams and databases.

    Leases and the skeleton's streams are left out: they are written whether runs go on or not.
    """
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix != ".log"
        and not any(part.startswith(("KV_", "SKEL_")) for part in path.parts)
    )


async def measure_mode(sync: str, turns: int, rounds: int) -> dict[str, float]:
    """Measure product and skeleton in turns on one server; then a long run, and the bytes it leaves."""
    with tempfile.TemporaryDirectory() as folder:
        nats = NatsSettings(embedded=EmbeddedNats(sync=sync))  # type: ignore[arg-type]
        config = Config(data_dir=folder, nats=nats)
        variables = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        async with (
            deployment(config, Environment(variables)) as running,
            open_bus(running.url, name="bench") as bus,
        ):
            await measure_run(bus, 20)
            ours: list[float] = []
            bare: list[float] = []
            for _ in range(rounds):
                ours.extend((await measure_run(bus, turns)).turns_s)
                bare.extend(await to_thread.run_sync(skeleton.measure, running.url, turns))
            before = stored_bytes(Path(folder))
            long = await measure_run(bus, LONG_RUN_TURNS)
            await _facts_published(bus, long.run)
            stored = stored_bytes(Path(folder)) - before
    net = [turn - provider for turn, provider in zip(long.turns_s, long.provider_s, strict=True)]
    early = statistics.median(net[10 - WINDOW // 2 : 10 + WINDOW // 2])
    late = statistics.median(net[1_000 - WINDOW // 2 : 1_000 + WINDOW // 2])
    return {
        "turn_p50_ms": round(statistics.median(ours) * 1000, 2),
        "turn_p95_ms": round(statistics.quantiles(ours, n=20)[-1] * 1000, 2),
        "skeleton_p50_ms": round(statistics.median(bare) * 1000, 2),
        "ratio": round(statistics.median(ours) / statistics.median(bare), 2),
        "turn_1000_to_turn_10": round(late / early, 2),
        "stored_to_content": round(stored / long.content, 2),
    }


async def _facts_published(bus: Bus, run: str) -> None:
    """Wait until telemetry, which follows behind the run, has published its end and folded it."""
    async with bus.follow(FACTS, subjects.facts(run)) as facts:
        async for stored in facts:
            if decode(stored.payload, PublicFact).kind == "run.finished":
                break
    await anyio.sleep(FOLD_WAIT_S)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both sync modes, print them and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sync", choices=("always", "default"), action="append")
    options = parser.parse_args(arguments)
    results: dict[str, dict[str, float]] = {}
    for sync in options.sync or ("always", "default"):
        results[sync] = anyio.run(measure_mode, sync, options.turns, options.rounds)
        print(f"sync {sync}: " + ", ".join(f"{name} {value}" for name, value in results[sync].items()))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
