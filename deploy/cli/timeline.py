"""`temporality timeline RUN`: what happened in a run, and why, as a tree."""

from typing import Annotated

import typer

from temporality.deploy.cli.settings import Settings, result_console
from temporality.protocol.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("timeline")(timeline)


def timeline(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="The run, as `temporality runs` lists it.")],
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show a run: its turns and calls; what started each look-up, what was found, injected, and why not."""
    from temporality.deploy.event_loop import run_async

    run_async(_timeline, Settings.of(context), run, json)


async def _timeline(settings: Settings, run: str, json: bool) -> None:
    import msgspec

    from temporality.deploy.timeline_tree import render_timeline
    from temporality.storage.timeline_view import timeline_of

    async with settings.timeline() as store:
        facts = await store.facts(run)
    if not facts:
        raise UserError(run, "no such run is known here", "list them: temporality runs")
    view = timeline_of(facts)
    if json:
        print(msgspec.json.encode(view).decode())
    else:
        result_console().print(render_timeline(view))
