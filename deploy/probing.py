"""The probes' loop and the messages of `probe block`: one JSON line in, one JSON line out, in order.

A bad line gives `{"error": {"path", "message"}}` in its place, and the lines after it are served all the
same. A line of white space is no line, as in any file of JSON lines.
"""

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, BinaryIO, Literal

import msgspec

from temporality.actors import redaction
from temporality.protocol.block import render_hint_block
from temporality.protocol.editorial import KnowledgeState, Scope
from temporality.protocol.errors import UserError
from temporality.protocol.hint import Hint, HintRequest, Tier
from temporality.protocol.message import Record
from temporality.protocol.strict import convert_strict

MESSAGE_CHARACTERS_MAX = 500
"""An error about a line may quote it, and a line may be of any length."""

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
    effect: Literal["uncertain"] | None = None
    tokens_max: Annotated[int, msgspec.Meta(ge=0)] | None = None


class DroppedHint(msgspec.Struct, frozen=True, kw_only=True):
    """A hint that is not in the block, and why."""

    knowledge_id: str
    reason: str


class BlockAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The rendered block, its tokens, and what was dropped."""

    text: str
    tokens: int
    dropped: tuple[DroppedHint, ...] = ()


def block(request: BlockRequest) -> BlockAnswer:
    """Render the hints of `request` as the block that a model sees (A34)."""
    rendered = render_hint_block(
        (hint.hint() for hint in request.hints),
        effect_uncertain=request.effect == "uncertain",
        tokens_max=request.tokens_max,
    )
    dropped = tuple(DroppedHint(knowledge_id=d.knowledge_id, reason=d.reason) for d in rendered.dropped)
    return BlockAnswer(text=rendered.text, tokens=rendered.tokens, dropped=dropped)


def searchable(request: HintRequest) -> HintRequest:
    """Return `request` if it says what to search by; raise `UserError` otherwise.

    Narrower than the bus, where a first MCP call may be looked up by its server alone.
    """
    if not (request.query.strip() or request.tool_result.strip()):
        raise UserError(f"{_WHERE}: $", "nothing to search by", "give `query` or `tool_result`")
    return request


def named_skills(data: Any) -> Any:
    """Return a hint request in which a skill that is a bare name is written out: one without a text."""
    if not isinstance(data, dict) or not isinstance(data.get("active_skills"), list):
        return data
    skills = [{"name": skill} if isinstance(skill, str) else skill for skill in data["active_skills"]]
    return {**data, "active_skills": skills}


def serve_lines(
    lines: Iterable[bytes],
    out: BinaryIO,
    kind: Any,
    answer: Callable[[Any], Any],
    *,
    written_out: Callable[[Any], Any] = lambda data: data,
) -> bool:
    """Answer each line that holds a `kind`, writing as it goes; return whether all lines were good.

    `written_out` turns a shorter form that a line may have into the full one.
    """
    good = True
    for line in lines:
        if not line.strip():
            continue
        try:
            request = convert_strict(written_out(msgspec.json.decode(line)), kind, where=_WHERE)
            answered = msgspec.json.encode(answer(request))
        except (UserError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            good = False
            fault = {"error": {"path": _path(error), "message": _message(error)}}
            answered = msgspec.json.encode(fault)
        out.write(answered + b"\n")
        out.flush()
    return good


def _path(error: Exception) -> str:
    found = _PATH.search(error.where) if isinstance(error, UserError) else None
    return found.group() if found else "$"


def _message(error: Exception) -> str:
    if isinstance(error, UserError):
        text = f"{error.what}; {error.do}" if error.do else error.what
    elif isinstance(error, RecursionError):
        text = "it is nested too deeply"
    else:
        text = f"it is not JSON: {error}"
    # What was sent may hold a secret, and an error about it may quote it.
    return redaction.clean(text, characters_max=MESSAGE_CHARACTERS_MAX).text
