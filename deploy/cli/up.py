"""`temporality up`: a whole deployment on this machine, until Ctrl-C."""

from typing import TYPE_CHECKING, Annotated

import typer

from temporality.deploy.cli.settings import Settings, progress_console

if TYPE_CHECKING:
    from rich.console import Console

    from temporality.deploy.local import Progress


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("up")(up)


def up(
    context: typer.Context,
    one_process: Annotated[
        bool, typer.Option("--one-process", help="Run the actors as tasks of one process.")
    ] = False,
) -> None:
    """Start nats-server and one of each actor on loopback; Ctrl-C stops all of it."""
    from temporality.deploy.event_loop import run_async

    run_async(_up, Settings.of(context), one_process)


async def _up(settings: Settings, one_process: bool) -> None:
    import anyio

    from temporality.deploy.assembly import ACTORS
    from temporality.deploy.event_loop import stop_on_signal
    from temporality.deploy.local import deployment

    console = progress_console()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_on_signal, tasks.cancel_scope)
        async with deployment(
            settings.config,
            settings.environment,
            in_process=tuple(ACTORS) if one_process else (),
            restart_tasks=True,
            progress=printer(console),
        ) as running:
            where = running.url.rpartition("@")[2]
            console.print(f"[green]ready[/green] — nats://{where}, data in {settings.config.data_dir}")
            console.print('run an agent: temporality run AGENT.yaml "task"   (Ctrl-C stops everything)')
            await anyio.sleep_forever()
    console.print("stopped")


def printer(console: "Console") -> "Progress":
    """Return what prints each step of a deployment as a line."""
    return lambda words: console.print(f"[dim]{words}[/dim]")
