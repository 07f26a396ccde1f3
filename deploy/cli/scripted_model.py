"""`temporality scripted-model SCRIPT`: a model that answers by script, as a real HTTP server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from temporality.deploy.cli.settings import progress_console

if TYPE_CHECKING:
    from anyio.abc import TaskStatus


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("scripted-model")(scripted_model)


def scripted_model(
    script: Annotated[Path, typer.Argument(help="The script's YAML file.")],
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port on loopback; 0 takes a free one.")] = 0,
    record: Annotated[
        Path | None, typer.Option(help="Append each request, as received, to this file of JSON lines.")
    ] = None,
) -> None:
    """Serve an OpenAI-compatible model that answers by script, until Ctrl-C."""
    from temporality.deploy.event_loop import run_async

    run_async(_serve, script, port, record)


async def _serve(path: Path, port: int, record: Path | None) -> None:
    import anyio

    from temporality.actors.model.script_file import load_script
    from temporality.actors.model.scripted_server import serve_scripted
    from temporality.deploy.event_loop import stop_on_signal

    script = load_script(path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_on_signal, tasks.cancel_scope)

        async def serve(*, task_status: "TaskStatus[int]") -> None:
            await serve_scripted(script, port=port, record=record, task_status=task_status)

        bound = await tasks.start(serve)
        progress_console().print(f"scripted model on http://127.0.0.1:{bound}/v1 (Ctrl-C stops it)")
