"""`temporality facts [RUN] [--follow]`: the public facts as the stream has them, one JSON object a line."""

import sys
from typing import Annotated

import typer

from temporality.deploy.cli.settings import Settings, identifier


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("facts")(facts)


def facts(
    context: typer.Context,
    run: Annotated[str | None, typer.Argument(help="One run; default: all.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
) -> None:
    """Print public facts, oldest first."""
    from temporality.deploy.event_loop import run_async

    run_async(_facts, Settings.of(context), identifier(run, "facts") if run else None, follow)


async def _facts(settings: Settings, run: str | None, follow: bool) -> None:
    from temporality.protocol import subjects
    from temporality.protocol.streams import FACTS

    subject = subjects.facts(run)
    async with settings.bus("facts") as bus:
        if not follow:
            last = await bus.last(FACTS, subject)
            after = 0
            while last is not None and after < last.sequence:
                messages = await bus.read(FACTS, subject, after=after)
                for message in messages:
                    _write(message.payload)
                after = messages[-1].sequence if messages else last.sequence
            return
        async with bus.follow(FACTS, subject) as messages_from_now:
            async for message in messages_from_now:
                _write(message.payload)


def _write(payload: bytes) -> None:
    sys.stdout.buffer.write(payload + b"\n")
    sys.stdout.buffer.flush()
