"""`temporality actor NAME`: run one actor of a deployment, for as long as it is wanted."""

from typing import Annotated

import typer

from temporality.deploy.cli.settings import Settings
from temporality.protocol.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("actor")(actor)


def actor(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Which one, such as supervisor; a wrong name lists them all.")],
) -> None:
    """Run one actor until it is told to stop (SIGTERM or Ctrl-C): it gives back what it holds."""
    from temporality.deploy.assembly import ACTORS
    from temporality.deploy.child import serve_actor
    from temporality.deploy.local import server_url

    if name not in ACTORS:
        raise UserError(f"actor {name}", "there is no such actor", f"choose one of {', '.join(ACTORS)}")
    settings = Settings.of(context)
    serve_actor(name, server_url(settings.config), settings.config, settings.environment, child=False)
