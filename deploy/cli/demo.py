"""`temporality demo`: see it work, in one command."""

import enum
import time
from pathlib import Path
from typing import Annotated

import typer

from temporality.deploy.cli.settings import Settings, progress_console, result_console


class Scenario(enum.StrEnum):
    """What the demo shows: knowledge after a failed call, or before the first request."""

    FAILURE = "failure"
    PRIMING = "priming"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    context: typer.Context,
    scenario: Annotated[
        Scenario, typer.Option(help="A tool fails and is explained, or the task is primed.")
    ] = Scenario.FAILURE,
    model: Annotated[
        str | None, typer.Option(help="A real model's name, with OPENAI_BASE_URL and OPENAI_API_KEY.")
    ] = None,
) -> None:
    """Run an agent that fails on a git tool, is told what earlier work taught, and goes on better."""
    from temporality.deploy.demo import run_demo
    from temporality.deploy.event_loop import run_async

    settings = Settings.of(context)
    console = progress_console()
    folder = Path(settings.config.data_dir) / "demo"
    started = time.monotonic()
    shown = run_async(
        lambda: run_demo(folder, settings.environment, console, scenario=scenario.value, model=model)
    )
    out = result_console()
    out.print((folder / "timeline.txt").read_text(encoding="utf-8"), markup=False, soft_wrap=True)
    result = shown.result
    status = "ok" if result.status == "finished" and result.knowledge_ids else "failed"
    out.print(
        f"demo: {status} — {result.turns} turns, injected {', '.join(result.knowledge_ids) or 'nothing'},"
        f" in {time.monotonic() - started:.1f} s; see {folder}",
        markup=False,
        soft_wrap=True,
    )
    if status != "ok":
        raise typer.Exit(1)
