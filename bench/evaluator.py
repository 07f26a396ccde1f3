"""One trigger as a process of the barrier bench: `python -m bench.evaluator module:Class`."""

import os
import sys

import anyio

from temporality.actors.triggers.actor import run_trigger
from temporality.actors.triggers.trigger import load_trigger
from temporality.deploy.assembly import host_of, open_bus
from temporality.deploy.config import Environment, load_config
from temporality.deploy.event_loop import run_async
from temporality.deploy.processes import READY_LINE


async def serve(reference: str) -> None:
    """Serve the trigger until standard input ends."""
    environment = Environment(dict(os.environ))
    config = load_config(environment)
    assert config.nats.url
    async with open_bus(config.nats.url, name="bench") as bus, anyio.create_task_group() as tasks:
        host = host_of("trigger", bus, config, environment)

        async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            await run_trigger(host, [load_trigger(reference)], task_status=task_status)

        await tasks.start(run)
        print(READY_LINE, flush=True)
        await anyio.wait_readable(sys.stdin)
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    run_async(serve, sys.argv[1])
