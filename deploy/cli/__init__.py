"""The command line: one file a command, and this one for what they share.

A person's mistake is one line on standard error (where, what, what to do) and the exit status of its kind;
results go to standard output, progress to standard error, so that both can be piped.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

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
from temporality.deploy.exit_status import status_of, tell

PROGRAM = "temporality"

app = typer.Typer(
    name=PROGRAM,
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
    """Note the configuration's file for whichever command follows."""
    context.obj = config


for command in (up, actor, run, timeline, facts, scripted_model, doctor, demo):
    command.register(app)
for name, group in (("knowledge", knowledge), ("trigger", trigger), ("probe", probe)):
    app.add_typer(group.app, name=name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (default: this process's); exit with the status that the outcome calls for."""
    try:
        sys.exit(app(arguments, prog_name=PROGRAM, standalone_mode=False))
    except typer.TyperException as error:
        words = error.format_message()
        if words:  # else a group was named alone, and its help has been shown
            asked = getattr(getattr(error, "ctx", None), "command_path", PROGRAM)
            where = asked.removeprefix(PROGRAM).strip() or "command"
            tell(f"{where}: {words.rstrip('.')} — see: {asked} --help")
        sys.exit(error.exit_code)
    except BaseException as error:
        status = status_of(error)
        if status is None:
            raise
        sys.exit(status)
