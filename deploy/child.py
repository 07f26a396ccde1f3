"""One actor as a process: `python -m temporality.deploy.child KIND`, started by `processes.py` or the CLI.

It imports no more than its actor needs: six of them start at once with every deployment.
"""

import logging
import os
import sys

import anyio
from anyio.abc import TaskStatus

from temporality.actors.tracing_export import configure_tracing
from temporality.deploy.assembly import run_actor
from temporality.deploy.config import CHILD_VARIABLE, Config, Environment, taken_over
from temporality.deploy.event_loop import run_async, stop_on_signal
from temporality.deploy.exit_status import status_of
from temporality.deploy.processes import READY_LINE

BACKGROUND = frozenset({"telemetry"})
BACKGROUND_NICENESS = 10
"""Nothing waits for telemetry (A43), so on a busy machine runs go first and facts come a little later."""

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def serve_actor(kind: str, url: str, config: Config, environment: Environment, *, child: bool) -> None:
    """Run one actor until SIGTERM or Ctrl-C, or, as a child, until standard input ends.

    Says on standard output when it can serve. Raises what `run_actor` raises.
    """
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format=LOG_FORMAT)
    flush_spans = configure_tracing(config.otel.endpoint, f"temporality-{kind}")
    try:
        run_async(_serve, kind, url, config, environment, child)
    finally:
        flush_spans()


async def _serve(kind: str, url: str, config: Config, environment: Environment, child: bool) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_on_signal, tasks.cancel_scope)
        if child:
            tasks.start_soon(_stop_with_parent, tasks.cancel_scope)

        async def serve(*, task_status: TaskStatus[None]) -> None:
            await run_actor(kind, url=url, config=config, environment=environment, task_status=task_status)

        await tasks.start(serve)
        print(READY_LINE, flush=True)


async def _stop_with_parent(scope: anyio.CancelScope) -> None:
    """Cancel `scope` when the other end of standard input is closed: the parent is gone."""
    await anyio.wait_readable(sys.stdin)
    scope.cancel()


def main() -> None:
    """Run the actor that the command line names, with the configuration that the parent handed down."""
    config, environment = taken_over(os.environ)
    del os.environ[CHILD_VARIABLE]  # a Python tool may look around
    if sys.argv[1] in BACKGROUND:
        os.nice(BACKGROUND_NICENESS)
    try:
        assert config.nats.url is not None
        serve_actor(sys.argv[1], config.nats.url, config, environment, child=True)
    except BaseException as error:
        status = status_of(error)
        if status is None:
            raise
        sys.exit(status)


if __name__ == "__main__":
    main()
