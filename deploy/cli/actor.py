"""`temporality actor NAME`: run one actor of a deployment, for as long as it is wanted."""

from typing import Annotated

import typer

from temporality.deploy.assembly import ACTORS
from temporality.deploy.child import serve_actor
from temporality.deploy.cli.settings import Settings
from temporality.deploy.local import server_url
from temporality.protocol.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("actor")(actor)


def actor(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(help=f"One of {', '.join(ACTORS)}.")],
) -> None:
    """Run one actor until it is told to stop (SIGTERM or Ctrl-C): it gives back what it holds."""
    if kind not in ACTORS:
        raise UserError(f"actor {kind}", "there is no such actor", f"choose one of {', '.join(ACTORS)}")
    settings = Settings.of(context)
    serve_actor(kind, server_url(settings.config), settings.config, settings.environment, child=False)
