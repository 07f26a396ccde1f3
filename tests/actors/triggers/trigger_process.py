"""Serves one trigger as a process of its own: `trigger_process.py URL package.module:Class`."""

import sys

import anyio
from anyio.abc import TaskStatus

from temporality.actors.bus.nats import connect
from temporality.actors.clock import SystemClock
from temporality.actors.host import Host
from temporality.actors.tracing import Tracing
from temporality.actors.tracing_export import configure_tracing
from temporality.actors.triggers.actor import run_trigger
from temporality.actors.triggers.trigger import load_trigger


async def main(url: str, reference: str) -> None:
    """Say "ready" once the trigger can be asked; end when standard input does."""
    trigger = load_trigger(reference)
    async with connect(url, name="trigger") as bus, anyio.create_task_group() as tasks:
        host = Host(bus, actor="triggers", name="trigger-1", clock=SystemClock(), tracing=Tracing())

        async def serve(*, task_status: TaskStatus[None]) -> None:
            await run_trigger(host, [trigger], task_status=task_status)

        await tasks.start(serve)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await anyio.wait_readable(sys.stdin)
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    url, reference, *endpoint = sys.argv[1:]
    flush = configure_tracing(endpoint[0] if endpoint else None, "trigger")
    anyio.run(main, url, reference)
    flush()
