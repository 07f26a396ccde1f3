"""What every command is given: the configuration, the environment, and a way to the bus and the screen."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import typer
from rich.console import Console

from temporality.actors.bus.port import Bus
from temporality.deploy.assembly import open_bus
from temporality.deploy.config import Config, Environment
from temporality.deploy.local import server_url


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration and the environment of one command."""

    config: Config
    environment: Environment

    @classmethod
    def of(cls, context: typer.Context) -> "Settings":
        """Return what the root command has read."""
        settings = context.find_object(cls)
        assert settings is not None
        return settings

    def bus(self, name: str) -> AbstractAsyncContextManager[Bus]:
        """Connect to the deployment; raises `UserError` if none is running."""
        return open_bus(server_url(self.config), name=f"temporality-{name}")


def progress_console() -> Console:
    """Return the console for progress: standard error, so that results can be piped."""
    return Console(stderr=True, highlight=False)


def result_console() -> Console:
    """Return the console for results: standard output."""
    return Console(highlight=False)
