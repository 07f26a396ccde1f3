"""What every command is given: the configuration, the environment, and a way to the bus and the screen.

The command line imports what it needs when it needs it: its help and its probes must not wait for a message
bus, and the file of a configuration is read by the commands that obey it only.
"""

import os
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from temporality.protocol.errors import InvalidSubject, UserError

if TYPE_CHECKING:
    from rich.console import Console

    from temporality.actors.bus.port import Bus
    from temporality.deploy.config import Config, Environment
    from temporality.storage.timeline import Timeline

CONNECT_TIMEOUT_S = 3.0
"""A person waits, so a server that does not answer is told sooner than to an actor."""

PIPED_COLUMNS = 10_000
"""Width of what is not read by a person: a row of a table or a line of a tree is one line to `grep`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration and the environment of one command."""

    config: "Config"
    environment: "Environment"

    @classmethod
    def of(cls, context: typer.Context) -> "Settings":
        """Return what the file named on the command line and the environment say; raises `UserError`."""
        from temporality.deploy.config import Environment, load_config

        path: Path | None = context.find_root().obj
        environment = Environment(dict(os.environ))
        return cls(load_config(environment, path), environment)

    def bus(self, name: str) -> "AbstractAsyncContextManager[Bus]":
        """Connect to the deployment; raises `UserError` if none is running."""
        from temporality.deploy.assembly import open_bus
        from temporality.deploy.local import server_url

        url = server_url(self.config)
        return open_bus(url, name=f"temporality-{name}", timeout_s=CONNECT_TIMEOUT_S)

    def timeline(self) -> "AbstractAsyncContextManager[Timeline]":
        """Open the timeline that telemetry keeps here; raises `UserError` if it never ran here."""
        from temporality.storage.timeline import open_timeline

        path = self.config.data_path / "timeline.db"
        if not path.exists():
            raise UserError(
                self.config.data_dir, "no deployment has run on this data folder", "start one: temporality up"
            )
        return open_timeline(path)


def identifier(text: str, where: str) -> str:
    """Return an id that a person typed; raise `UserError` at `where` if no subject can hold it."""
    from temporality.protocol.subjects import subject_token

    try:
        return subject_token(text)
    except InvalidSubject as error:
        what = f"{text[:80]!r} can't be an id"
        raise UserError(where, what, "use 1 to 128 characters of A-Z a-z 0-9 _ = -") from error


def progress_console() -> "Console":
    """Return the console for progress: standard error, so that results can be piped; a line stays a line."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def result_console() -> "Console":
    """Return the console for results: standard output, laid out for a terminal only if it is one."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPED_COLUMNS
    return console
