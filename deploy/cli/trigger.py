"""`temporality trigger run package.module:Class`: serve a trigger of your own."""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from temporality.deploy.cli.settings import Settings, progress_console

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from temporality.actors.triggers.trigger import Trigger

app = typer.Typer(help="Serve triggers of your own.", no_args_is_help=True)


@app.command("run")
def run(
    context: typer.Context,
    references: Annotated[list[str], typer.Argument(help="Triggers, as package.module:Class.")],
) -> None:
    """Serve triggers until Ctrl-C; they take part at the next barriers of all runs."""
    from temporality.actors.tracing_export import configure_tracing
    from temporality.actors.triggers.trigger import load_trigger
    from temporality.deploy.event_loop import run_async

    # A trigger usually lies in the folder that the command is given in, which a script's path leaves out.
    sys.path.insert(0, str(Path.cwd()))
    settings = Settings.of(context)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    triggers = [load_trigger(reference) for reference in references]
    flush_spans = configure_tracing(settings.config.otel.endpoint, "temporality-trigger")
    try:
        run_async(_run, settings, triggers)
    finally:
        flush_spans()


async def _run(settings: Settings, triggers: "list[Trigger]") -> None:
    import anyio

    from temporality.actors.triggers.actor import run_trigger
    from temporality.deploy.assembly import host_of
    from temporality.deploy.event_loop import stop_on_signal

    async with settings.bus("trigger") as bus, anyio.create_task_group() as tasks:
        tasks.start_soon(stop_on_signal, tasks.cancel_scope)
        host = host_of("trigger", bus, settings.config, settings.environment)

        async def serve(*, task_status: "TaskStatus[None]") -> None:
            await run_trigger(host, triggers, task_status=task_status)

        await tasks.start(serve)
        kinds = ", ".join(trigger.kind for trigger in triggers)
        progress_console().print(f"serving {kinds} (Ctrl-C stops it)")
