"""One executor as a process of its own: `executor_process.py URL NAME ACK_WAIT_S [CRASH_POINT]`.

Says `ready` on standard output when it serves; its tools may say more.
"""

import os
import sys

import anyio

from temporality.actors.bus.nats import connect
from temporality.actors.clock import SystemClock
from temporality.actors.crash import CrashPoints
from temporality.actors.executor.actor import ExecutorActor
from temporality.actors.executor.settings import ExecutorSettings
from temporality.actors.host import Host
from temporality.actors.tracing import Tracing


async def main(url: str, name: str, ack_wait_s: str, armed: str = "") -> None:
    async with connect(url, name=name) as bus, anyio.create_task_group() as tasks:
        host = Host(
            bus,
            actor="executor",
            name=name,
            clock=SystemClock(),
            tracing=Tracing(),
            crash=CrashPoints(armed),
            ack_wait_s=float(ack_wait_s),
        )
        await tasks.start(ExecutorActor(host, ExecutorSettings(environment=os.environ)).run)
        os.write(1, b"ready\n")


if __name__ == "__main__":
    anyio.run(lambda: main(*sys.argv[1:]))
