"""`temporality actor NAME`: run one actor of a deployment, for as long as it is wanted."""

from typing import TYPE_CHECKING, Annotated

import typer

from temporality.deploy.cli.settings import Settings
from temporality.protocol.errors import UserError

if TYPE_CHECKING:
    from temporality.deploy.config import Config


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
    serve_actor(
        name,
        server_url(settings.config),
        in_cluster(settings.config),
        settings.environment,
        child=False,
    )


def in_cluster(config: "Config") -> "Config":
    """Return the configuration of an actor by itself: at a NATS of others, tools must be allowed by name.

    Whoever may start a run there names the commands that an executor starts and the functions that it calls;
    under `temporality up` that is the person who started it, in a cluster it may be anybody.
    """
    import msgspec

    if config.nats.url is None:
        return config
    executor = config.executor
    named = msgspec.structs.replace(
        executor, allow_commands=executor.allow_commands or (), allow_python=executor.allow_python or ()
    )
    return msgspec.structs.replace(config, executor=named)
