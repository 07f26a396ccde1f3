"""`temporality run` and `temporality runs`: start a run, watch it, list the past ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from temporality.deploy.cli.settings import Settings, identifier, progress_console, result_console
from temporality.deploy.exit_status import tell
from temporality.protocol.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from temporality.deploy.watching import RunResult
    from temporality.protocol.run import StartRun

TRACEPARENT_VARIABLE = "TRACEPARENT"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("run")(run)
    app.command("runs")(runs)


def run(
    context: typer.Context,
    agent: Annotated[Path, typer.Argument(help="The agent's YAML file.")],
    task: Annotated[str, typer.Argument(help="What the agent is to do.")],
    project: Annotated[str, typer.Option(help="Project that the run belongs to.")] = "",
    user: Annotated[str | None, typer.Option(help="User that the run belongs to.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
) -> None:
    """Run an agent on one task; prints the answer, and shows what happens meanwhile.

    Fails if no supervisor takes the run within 60 s; once begun, it is followed for as long as it takes.
    """
    import msgspec

    from temporality.actors.tracing_export import configure_tracing
    from temporality.deploy.agent_file import load_agent
    from temporality.deploy.event_loop import run_async
    from temporality.protocol.identity import DEFAULT_PROJECT, RunIdentity, new_run_id
    from temporality.protocol.run import StartRun

    settings = Settings.of(context)
    spec = load_agent(agent)
    if not task.strip():
        raise UserError("task", "it is empty", "say what the agent is to do")
    if project:
        identifier(project, "--project")
    identity = RunIdentity(
        run=new_run_id(), project=project or spec.knowledge.project or DEFAULT_PROJECT, user_id=user
    )
    start = StartRun(identity=identity, agent=spec, task=task)
    flush_spans = configure_tracing(settings.config.otel.endpoint, "temporality-run")
    try:
        result = run_async(_run, settings, start, None if json else progress_console())
    finally:
        flush_spans()
    if json:
        print(msgspec.json.encode(result).decode())
    elif result.answer is not None:
        print(result.answer)
    else:
        tell(f"{result.run}: {result.error}")
    raise typer.Exit(0 if result.status == "finished" else 1)


async def _run(settings: Settings, start: "StartRun", console: "Console | None") -> "RunResult":
    from temporality.deploy.watching import run_to_end

    async with settings.bus("run") as bus:
        return await run_to_end(
            bus, start, parent=settings.environment.variables.get(TRACEPARENT_VARIABLE), console=console
        )


def runs(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many to list, newest first.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON a run.")] = False,
) -> None:
    """List the runs of this deployment, newest first."""
    from temporality.deploy.event_loop import run_async

    run_async(_runs, Settings.of(context), limit, json)


async def _runs(settings: Settings, limit: int, json: bool) -> None:
    import msgspec
    from rich.markup import escape
    from rich.table import Table

    async with settings.timeline() as timeline:
        found = await timeline.runs(limit)
    if json:
        for row in found:
            print(msgspec.json.encode(row).decode())
        return
    table = Table("run", "agent", "project", "status", "turns", "activations", "injected", "task")
    for row in found:
        table.add_row(
            row.run,
            escape(row.agent),
            row.project,
            row.status,
            str(row.turns),
            str(row.activations),
            str(row.injected),
            escape(row.task),
        )
    result_console().print(table)
