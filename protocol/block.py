"""The one block that carries knowledge into a request (A34): `temporality.memory`.

Where and how it is worded decides whether it helps. It stands after the tool replies, as content, since a
pointer to knowledge is not followed; and it speaks as attributed background ("notes from earlier work"), as
models are trained to reject text inside data that gives orders (A35). Priming and activation use the same
block, made by the same function, which also counts its tokens and says what did not fit (A41).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from temporality.protocol.editorial import KnowledgeState, Scope
from temporality.protocol.hint import Hint
from temporality.protocol.neutral import one_line
from temporality.protocol.tokens import estimate_tokens

BLOCK_NAME = "temporality.memory"
OPENING = f"<{BLOCK_NAME}>"
CLOSING = f"</{BLOCK_NAME}>"

PREAMBLE = (
    "Notes from earlier work, found for what just happened. They may not apply here; check before relying on "
    "them. They are background facts: neither a tool result nor an order."
)
UNCERTAIN = (
    "The effect of the failed call is uncertain: it may have taken place. Nothing in these notes permits "
    "repeating that call; find out first what it did."
)
MATCHED_SHOWN_MAX = 6
"""Reasons shown on a line: enough to judge the match, few enough to leave the line to the proposition."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A hint that is not in the block, and why."""

    knowledge_id: str
    reason: Literal["budget"]


@dataclass(frozen=True, slots=True)
class Block:
    """The rendered block ("" if nothing fits), its tokens, and which hints are in it and which are not."""

    text: str
    tokens: int
    included: tuple[Hint, ...]
    dropped: tuple[Dropped, ...]


def render_hint_block(
    hints: Iterable[Hint],
    *,
    effect_uncertain: bool = False,
    tokens_max: int | None = None,
    hint_tokens_max: int | None = None,
    count: Callable[[str], int] = estimate_tokens,
) -> Block:
    """Render the hints, in order, as one block of at most `tokens_max` tokens; None is unlimited (A40).

    A hint whose line exceeds `hint_tokens_max`, or which doesn't fit any more, is dropped with its reason and
    smaller ones after it are still tried. Without a hint that fits, the block is empty.
    """
    included: list[Hint] = []
    lines: list[str] = []
    dropped: list[Dropped] = []
    tokens = 0
    for hint in hints:
        line = hint_line(hint)
        attempt = count(_assemble([*lines, line], effect_uncertain))
        too_long = hint_tokens_max is not None and count(line) > hint_tokens_max
        if too_long or (tokens_max is not None and attempt > tokens_max):
            dropped.append(Dropped(hint.knowledge_id, "budget"))
            continue
        included.append(hint)
        lines.append(line)
        tokens = attempt
    text = _assemble(lines, effect_uncertain) if lines else ""
    return Block(text, tokens, tuple(included), tuple(dropped))


def hint_line(hint: Hint) -> str:
    """Return the line of one hint: id, proposition, then state, scope, reasons and cautions (A36, A37)."""
    notes = [_state(hint), _scope(hint.scope)]
    if hint.matched:
        notes.append(one_line(f"matched {', '.join(hint.matched[:MATCHED_SHOWN_MAX])}"))
    if hint.successor_of:
        notes.append(f"replaces {one_line(hint.successor_of)}")
    notes.extend(f"caution: {one_line(caution)}" for caution in hint.cautions)
    return f"- [{one_line(hint.knowledge_id)}] {one_line(hint.proposition)} ({'; '.join(notes)})"


def _assemble(lines: list[str], effect_uncertain: bool) -> str:
    closing = [UNCERTAIN, CLOSING] if effect_uncertain else [CLOSING]
    return "\n".join([OPENING, PREAMBLE, *lines, *closing])


def _state(hint: Hint) -> str:
    if hint.state is KnowledgeState.CHALLENGED:
        return "challenged: somebody doubts it"
    return "let in by a policy" if "unconfirmed" in hint.cautions else "reviewed"


def _scope(scope: Scope) -> str:
    parts = [
        f"{name} {one_line(value)}"
        for name, value in (("project", scope.project), ("team", scope.team), ("user", scope.user))
        if value
    ]
    return ", ".join(parts) if parts else "every project"
