"""Which of the offered hints go into the one block, and why the others don't.

Activations are served in order; each may take its own share of tokens, all together what is left of the
run's. Tokens are counted on the block as rendered (A40), so the figure in the facts is the figure the model
pays. A hint that doesn't fit is neither injected nor issued (A41); one that could not fit even alone is
suppressed until its revision changes, so that the same misfit is not fetched again at every barrier (A33).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from temporality.protocol.activation import DeliveryReason, HintDelivered
from temporality.protocol.block import Block, render_hint_block
from temporality.protocol.hint import Hint
from temporality.protocol.tokens import estimate_tokens

EMPTY_BLOCK = Block("", 0, (), ())


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens of one activation, of what is left for this barrier, of the whole run and of one hint; hints an
    activation.
    """

    activation_tokens: int
    barrier_tokens: int
    whole_tokens: int
    hint_tokens: int
    hints_max: int


@dataclass(frozen=True, slots=True)
class Share:
    """What one activation got: a delivery an offer, in order; how many were chosen for the block, how many
    the budget let in, and their tokens.
    """

    deliveries: tuple[HintDelivered, ...]
    selected: int
    injected: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The block of a barrier ("" for none) and each activation's share of it."""

    block: Block
    shares: Mapping[str, Share]


def select(
    offers: Iterable[tuple[str, tuple[Hint, ...]]],
    budget: Budget,
    *,
    issued: Iterable[str],
    suppressed: Mapping[str, int],
    effect_uncertain: bool,
    count: Callable[[str], int] = estimate_tokens,
) -> Selection:
    """Choose hints for `offers` (activation id and hints, best first) within `budget`.

    If counting fails, nothing is injected (A40). An id that was issued, or chosen for an earlier activation
    of this barrier, is a duplicate (A29). `suppressed` maps ids to the revision that could not fit.
    """
    seen = set(issued)
    block = EMPTY_BLOCK
    shares: dict[str, Share] = {}
    for activation_id, hints in offers:
        refused: dict[str, DeliveryReason] = {}
        fresh: list[Hint] = []
        for hint in hints:
            if hint.knowledge_id in seen:
                refused[hint.hint_id] = "duplicate"
            elif suppressed.get(hint.knowledge_id, -1) >= hint.revision:
                refused[hint.hint_id] = "suppressed"
            elif len(fresh) == budget.hints_max:
                refused[hint.hint_id] = "limit"
            else:
                fresh.append(hint)
                seen.add(hint.knowledge_id)
        tokens_max = min(block.tokens + budget.activation_tokens, budget.barrier_tokens)
        grown = _render(block, fresh, tokens_max, budget.hint_tokens, effect_uncertain, count)
        included = {hint.hint_id for hint in grown.included}
        alone = min(budget.activation_tokens, budget.whole_tokens)
        too_large = {
            hint.hint_id
            for hint in fresh
            if hint.hint_id not in included
            and not _render(EMPTY_BLOCK, [hint], alone, budget.hint_tokens, effect_uncertain, count).text
        }
        deliveries = tuple(_delivery(activation_id, hint, included, refused, too_large) for hint in hints)
        injected = sum(delivery.injected for delivery in deliveries)
        shares[activation_id] = Share(deliveries, len(fresh), injected, grown.tokens - block.tokens)
        block = grown
    return Selection(block, shares)


def _render(
    block: Block,
    fresh: list[Hint],
    tokens_max: int,
    hint_tokens: int,
    effect_uncertain: bool,
    count: Callable[[str], int],
) -> Block:
    try:
        return render_hint_block(
            (*block.included, *fresh),
            effect_uncertain=effect_uncertain,
            tokens_max=tokens_max,
            hint_tokens_max=hint_tokens,
            count=count,
        )
    except Exception:  # noqa: BLE001
        # A counter is a foreign model's tokenizer: an unknown size is treated as too large (A40).
        return block


def _delivery(
    activation_id: str,
    hint: Hint,
    included: set[str],
    refused: Mapping[str, DeliveryReason],
    too_large: set[str],
) -> HintDelivered:
    injected = hint.hint_id in included
    return HintDelivered(
        hint_id=hint.hint_id,
        activation_id=activation_id,
        knowledge_id=hint.knowledge_id,
        revision=hint.revision,
        injected=injected,
        reason=None if injected else refused.get(hint.hint_id, "budget"),
        too_large=hint.hint_id in too_large,
    )
