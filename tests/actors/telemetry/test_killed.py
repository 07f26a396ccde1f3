"""Telemetry killed with -9 between any two of its steps: every fact is in the timeline, and once."""

import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import Process

from temporality.actors.bus.nats import NatsBus
from temporality.actors.telemetry.decider import project
from temporality.deploy.embedded import EmbeddedServer
from temporality.protocol import subjects
from temporality.protocol.codec import encode
from temporality.protocol.fact import PublicFact
from temporality.protocol.streams import FACTS, stream_specs
from temporality.storage.timeline import open_timeline

from .runs import PROJECT, commits

WAIT_S = 30.0
RUNS_COUNT = 5
SCRIPT = Path(__file__).with_name("telemetry_process.py")


@asynccontextmanager
async def process(*arguments: str) -> AsyncIterator[Process]:
    async with await anyio.open_process(
        [sys.executable, str(SCRIPT), *arguments], stdout=None, stderr=None
    ) as started:
        try:
            yield started
        finally:
            if started.returncode is None:
                started.kill()


async def commit_run(bus: NatsBus, run: str) -> None:
    for one in commits(run):
        await bus.publish(subjects.commit(run), encode(one), message_id=one.id)


async def test_process_killed_between_any_two_steps_loses_and_repeats_no_fact(
    nats_server: EmbeddedServer, nats_bus: NatsBus, tmp_path: Path
) -> None:
    """A43"""
    await nats_bus.declare(stream_specs(4))
    path = tmp_path / "timeline.db"
    runs = [f"r{number}" for number in range(RUNS_COUNT)]
    points = ["telemetry.published:2", "telemetry.acked:3", "telemetry.projected:1"]
    for run, point in zip(runs, points, strict=False):
        await commit_run(nats_bus, run)
        async with process(nats_server.url, str(path), point) as killed:
            with anyio.fail_after(WAIT_S):
                assert await killed.wait() == -signal.SIGKILL
    for run in runs[len(points) :]:
        await commit_run(nats_bus, run)
    expected = {
        run: tuple(fact for one in commits(run) for fact in project(one, project=PROJECT)) for run in runs
    }
    async with process(nats_server.url, str(path)), open_timeline(path) as timeline:
        kept: dict[str, tuple[PublicFact, ...]] = {}
        with anyio.fail_after(WAIT_S):
            while any(len(kept.get(run, ())) < len(expected[run]) for run in runs):
                kept = {run: await timeline.facts(run) for run in runs}
    assert kept == expected
    last = await nats_bus.last(FACTS, subjects.facts())
    assert last is not None
    assert last.sequence == sum(map(len, expected.values()))
