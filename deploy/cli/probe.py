"""`temporality probe …`: the pure parts, testable from outside; JSON lines in, JSON lines out, in order.

A bad line gives `{"error": {"path", "message"}}` in its place and exit status 1 at the end; the lines after
it are served all the same. No probe reads a configuration or needs a deployment.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from temporality.protocol.errors import UserError

app = typer.Typer(
    help="Test the pure parts from outside: JSON lines in, JSON lines out.", no_args_is_help=True
)


@app.command("fingerprint")
def probe_fingerprint() -> None:
    """Normalise a diagnostic and give its situation key."""
    from temporality.protocol import fingerprint

    _serve(fingerprint.FingerprintRequest, fingerprint.probe)


@app.command("redact")
def probe_redact() -> None:
    """Redact secrets, and say what was found where."""
    from temporality.actors.redaction import probe

    _serve(probe.RedactRequest, probe.probe)


@app.command("block")
def probe_block() -> None:
    """Render hints as the block that a model sees."""
    from temporality.deploy import probing

    _serve(probing.BlockRequest, probing.block)


@app.command("hints")
def probe_hints(
    knowledge: Annotated[Path, typer.Option(help="Knowledge items: JSON lines or Markdown.")],
    threshold: Annotated[
        str, typer.Option(help="`off` shows the ranking without the honest-zero cut.")
    ] = "on",
) -> None:
    """Look knowledge up, best first."""
    from temporality.actors.retriever.probe import HintProbe
    from temporality.deploy.probing import named_skills, searchable
    from temporality.protocol.hint import HintRequest
    from temporality.storage.knowledge_files import read_items

    if threshold not in ("on", "off"):
        raise UserError("--threshold", f"{threshold!r} is neither on nor off", "leave it out, or say off")
    looker = HintProbe(read_items(knowledge), threshold=threshold == "on")
    _serve(HintRequest, lambda request: looker.answer(searchable(request)), written_out=named_skills)


def _serve(kind: Any, answer: Callable[[Any], Any], **options: Callable[[Any], Any]) -> None:
    from temporality.deploy.probing import serve_lines

    if not serve_lines(sys.stdin.buffer, sys.stdout.buffer, kind, answer, **options):
        raise typer.Exit(1)
