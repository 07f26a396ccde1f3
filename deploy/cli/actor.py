"""`temporality actor NAME`: run one actor of a deployment, for as long as it is wanted."""

import logging
import signal
import sys
from typing import Annotated

import anyio
import typer

from temporality.actors.tracing_export import configure_tracing
from temporality.deploy.assembly import ACTORS, run_actor
from temporality.deploy.cli.settings import Settings, run_async
from temporality.deploy.local import server_url
from temporality.deploy.processes import READY_LINE
from temporality.protocol.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("actor")(actor)


def actor(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(help=f"One of {', '.join(ACTORS)}.")],
    child: Annotated[bool, typer.Option(hidden=True, help="End when standard input ends.")] = False,
) -> None:
    """Run one actor until it is told to stop (SIGTERM or Ctrl-C): it gives back what it holds."""
    if kind not in ACTORS:
        raise UserError(f"actor {kind}", "there is no such actor", f"choose one of {', '.join(ACTORS)}")
    settings = Settings.of(context)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    flush_spans = configure_tracing(settings.config.otel.endpoint, f"temporality-{kind}")
    try:
        run_async(_run, settings, kind, child)
    finally:
        flush_spans()


async def _run(settings: Settings, kind: str, child: bool) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_on_signal, tasks.cancel_scope)
        if child:
            tasks.start_soon(_stop_with_parent, tasks.cancel_scope)

        async def serve(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            await run_actor(
                kind,
                url=server_url(settings.config),
                config=settings.config,
                environment=settings.environment,
                task_status=task_status,
            )

        await tasks.start(serve)
        print(READY_LINE, flush=True)


async def stop_on_signal(scope: anyio.CancelScope) -> None:
    """Cancel `scope` on SIGTERM or Ctrl-C."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


async def _stop_with_parent(scope: anyio.CancelScope) -> None:
    """Cancel `scope` when the other end of standard input is closed: the parent is gone."""
    await anyio.wait_readable(sys.stdin)
    scope.cancel()
