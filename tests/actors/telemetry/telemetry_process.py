"""The telemetry actor as a process of its own: `telemetry_process.py URL TIMELINE [CRASH_POINT]`."""

import sys
from pathlib import Path

import anyio

from temporality.actors.bus.nats import connect
from temporality.actors.clock import SystemClock
from temporality.actors.crash import CrashPoints
from temporality.actors.host import Host
from temporality.actors.telemetry.actor import TelemetryActor
from temporality.actors.tracing import Tracing
from temporality.storage.timeline import open_timeline


async def main(*arguments: str) -> None:
    """Serve until killed."""
    url, path, *points = arguments
    async with connect(url, name="telemetry") as bus, open_timeline(Path(path)) as timeline:
        host = Host(
            bus,
            actor="telemetry",
            name="telemetry-1",
            clock=SystemClock(),
            tracing=Tracing(),
            crash=CrashPoints(*points),
            ack_wait_s=1.0,
        )
        await TelemetryActor(host, timeline).run()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
