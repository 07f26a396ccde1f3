"""`temporality doctor [AGENT]`: is everything there that a run needs, and what to do if not."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from temporality.deploy.cli.settings import Settings, result_console

if TYPE_CHECKING:
    from temporality.protocol.agent import AgentSpec


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(
    context: typer.Context,
    agent: Annotated[Path | None, typer.Argument(help="Check its model and tools, too.")] = None,
) -> None:
    """Check NATS, streams, actors and, with an agent, its model and MCP servers."""
    from temporality.deploy.agent_file import load_agent
    from temporality.deploy.event_loop import run_async

    spec = load_agent(agent) if agent else None
    if not run_async(_doctor, Settings.of(context), spec):
        raise typer.Exit(1)


async def _doctor(settings: Settings, agent: "AgentSpec | None") -> bool:
    from rich.markup import escape

    from temporality.deploy.checks import checks

    console = result_console()
    healthy = True
    async for check in checks(settings.config, settings.environment, agent):
        mark = "[green]✓[/green]" if check.right else "[red]✗[/red]"
        console.print(f"{mark} {check.name}: {escape(check.found)}", soft_wrap=True)
        if not check.right:
            healthy = False
            console.print(f"    → {escape(check.do)}", soft_wrap=True)
    return healthy
