"""The command line: one file a command, and this one for what they share.

A person's mistake is one line on standard error (where, what, what to do) and the exit status of its kind;
results go to standard output, progress to standard error, so that both can be piped.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from temporality.deploy.child import exit_code, first_of_ours
from temporality.deploy.cli import (
    actor,
    demo,
    doctor,
    facts,
    knowledge,
    probe,
    run,
    scripted_model,
    timeline,
    trigger,
    up,
)
from temporality.deploy.cli.settings import Settings
from temporality.deploy.config import Environment, load_config
from temporality.protocol.errors import TemporalityError

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells give it."""

app = typer.Typer(
    name="temporality",
    help="Run tool-using LLM agents, and offer them what earlier work taught.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def root(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option(help="Configuration file; default: temporality.yaml of the current folder.")
    ] = None,
) -> None:
    """Read the configuration once, for whichever command follows."""
    environment = Environment(dict(os.environ))
    context.obj = Settings(load_config(environment, config), environment)


for command in (up, actor, run, timeline, facts, scripted_model, doctor, demo):
    command.register(app)
for name, group in (("knowledge", knowledge), ("trigger", trigger), ("probe", probe)):
    app.add_typer(group.app, name=name)


def main() -> None:
    """Run the command line; exit with the status that the outcome calls for."""
    try:
        app()
    except BaseException as error:
        cause = first_of_ours(error)
        if isinstance(cause, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        if not isinstance(cause, TemporalityError):
            raise
        print(f"temporality: {cause}", file=sys.stderr)
        sys.exit(exit_code(cause))
