"""`temporality probe …`: the pure parts, testable from outside; JSON lines in, JSON lines out, in order.

A bad line gives `{"error": {"path", "message"}}` in its place and exit status 1 at the end; the lines after
it are served all the same.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from temporality.actors import redaction
from temporality.actors.redaction import probe as redact_probe
from temporality.protocol import fingerprint
from temporality.protocol.block import render_hint_block
from temporality.protocol.editorial import KnowledgeState, Scope
from temporality.protocol.errors import UserError
from temporality.protocol.hint import Hint, HintRequest, Tier
from temporality.protocol.message import Record
from temporality.protocol.strict import convert_strict

app = typer.Typer(
    help="Test the pure parts from outside: JSON lines in, JSON lines out.", no_args_is_help=True
)

_WHERE = "line"
_PATH = re.compile(r"\$[^\s:]*")


class BlockHint(Record, frozen=True, kw_only=True):
    """A hint as `probe hints` prints it; all but the proposition and the id may be left out."""

    knowledge_id: str
    proposition: str
    hint_id: str = ""
    revision: int = 0
    tier: Tier = Tier.TERMS
    matched: tuple[str, ...] = ()
    score: float = 0.0
    state: KnowledgeState = KnowledgeState.REVIEWED
    scope: Scope = msgspec.field(default_factory=Scope)
    cautions: tuple[str, ...] = ()
    successor_of: str | None = None

    def hint(self) -> Hint:
        """Return the hint that the block renders."""
        return Hint(**{name: getattr(self, name) for name in self.__struct_fields__})


class BlockRequest(Record, frozen=True, kw_only=True):
    """Ask how hints look as a block, within `tokens_max` if that is given."""

    hints: tuple[BlockHint, ...]
    effect: str | None = None
    tokens_max: int | None = None

    def __post_init__(self) -> None:
        if self.effect not in (None, "uncertain"):
            raise ValueError("`effect` is `uncertain` or absent")


class DroppedHint(msgspec.Struct, frozen=True, kw_only=True):
    """A hint that is not in the block, and why."""

    knowledge_id: str
    reason: str


class BlockAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The rendered block, its tokens, and what was dropped."""

    text: str
    tokens: int
    dropped: tuple[DroppedHint, ...] = ()


@app.command("fingerprint")
def probe_fingerprint() -> None:
    """Normalise a diagnostic and give its situation key."""
    _serve(fingerprint.FingerprintRequest, fingerprint.probe)


@app.command("redact")
def probe_redact() -> None:
    """Redact secrets, and say what was found where."""
    _serve(redact_probe.RedactRequest, redact_probe.probe)


@app.command("block")
def probe_block() -> None:
    """Render hints as the block that a model sees."""
    _serve(BlockRequest, _block)


@app.command("hints")
def probe_hints(
    knowledge: Annotated[Path, typer.Option(help="Knowledge items: JSON lines or Markdown.")],
    threshold: Annotated[
        str, typer.Option(help="`off` shows the ranking without the honest-zero cut.")
    ] = "on",
) -> None:
    """Look knowledge up, best first."""
    from temporality.actors.retriever.probe import HintProbe
    from temporality.storage.knowledge_files import read_items

    if threshold not in ("on", "off"):
        raise UserError("--threshold", f"{threshold!r} is neither on nor off", "leave it out, or say off")
    looker = HintProbe(read_items(knowledge), threshold=threshold == "on")
    _serve(HintRequest, looker.answer)


def _block(request: BlockRequest) -> BlockAnswer:
    block = render_hint_block(
        (hint.hint() for hint in request.hints),
        effect_uncertain=request.effect == "uncertain",
        tokens_max=request.tokens_max,
    )
    dropped = tuple(DroppedHint(knowledge_id=d.knowledge_id, reason=d.reason) for d in block.dropped)
    return BlockAnswer(text=block.text, tokens=block.tokens, dropped=dropped)


def _serve(kind: Any, answer: Callable[[Any], Any]) -> None:
    failed = False
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        try:
            request = convert_strict(msgspec.json.decode(line), kind, where=_WHERE)
            sys.stdout.buffer.write(msgspec.json.encode(answer(request)) + b"\n")
        except (UserError, msgspec.DecodeError, UnicodeDecodeError) as error:
            failed = True
            fault = {"error": {"path": _path(error), "message": _message(error)}}
            sys.stdout.buffer.write(msgspec.json.encode(fault) + b"\n")
        sys.stdout.buffer.flush()
    if failed:
        raise typer.Exit(1)


def _path(error: Exception) -> str:
    found = _PATH.search(error.where) if isinstance(error, UserError) else None
    return found.group() if found else "$"


def _message(error: Exception) -> str:
    text = (
        f"{error.what}" + (f"; {error.do}" if error.do else "")
        if isinstance(error, UserError)
        else str(error)
    )
    # What was sent may hold a secret, and an error about it may quote it.
    return redaction.clean(text, characters_max=500).text
