"""Which offered hints get into the one block, and why the others don't (A29, A33, A40, A41)."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporality.actors.supervisor.budget import Budget, Selection, select
from temporality.protocol.hint import Hint, hint_id
from temporality.protocol.tokens import estimate_tokens

from .scenes import item

PLENTY = Budget(
    activation_tokens=4_000, barrier_tokens=16_000, whole_tokens=16_000, hint_tokens=1_200, hints_max=8
)


def offered(activation: str, *hints: Hint) -> tuple[str, tuple[Hint, ...]]:
    """Hints as one activation's answer holds them."""
    return activation, tuple(
        msgspec.structs.replace(hint, hint_id=hint_id(activation, hint.knowledge_id, hint.revision))
        for hint in hints
    )


def choose(*offers: tuple[str, tuple[Hint, ...]], budget: Budget = PLENTY, **known: object) -> Selection:
    """Select with nothing known, unless told else."""
    settled: dict[str, object] = {"issued": (), "suppressed": {}, "effect_uncertain": False, **known}
    return select(offers, budget, **settled)  # type: ignore[arg-type]


def reasons(selection: Selection, activation: str) -> list[str | None]:
    """Why each offer is not in the block; None for one that is."""
    return [delivery.reason for delivery in selection.shares[activation].deliveries]


def changed(**budget: int) -> Budget:
    """A budget that is short of something."""
    return Budget(**{**{name: getattr(PLENTY, name) for name in PLENTY.__slots__}, **budget})


def test_all_that_fits_is_in_the_block_in_the_order_offered():
    chosen = choose(offered("a", item("k2"), item("k1")))
    assert [hint.knowledge_id for hint in chosen.block.included] == ["k2", "k1"]
    assert reasons(chosen, "a") == [None, None]


def test_nothing_offered_is_no_block():
    """A3."""
    chosen = choose(offered("a"))
    assert (chosen.block.text, chosen.block.tokens) == ("", 0)


@pytest.mark.parametrize("failing", [ValueError, KeyError, RuntimeError])
def test_if_counting_fails_nothing_is_injected(failing: type[Exception]):
    """A40: an unknown size is too large."""

    def count(_: str) -> int:
        raise failing

    chosen = choose(offered("a", item("k1")), count=count)
    assert chosen.block.text == ""
    assert [delivery.injected for delivery in chosen.shares["a"].deliveries] == [False]


def test_tokens_are_counted_on_the_block_as_rendered():
    chosen = choose(offered("a", item("k1")), offered("b", item("k2")))
    assert chosen.block.tokens == estimate_tokens(chosen.block.text)
    assert sum(share.tokens for share in chosen.shares.values()) == chosen.block.tokens


def test_long_hint_is_left_out_and_a_shorter_one_after_it_still_fits():
    chosen = choose(offered("a", item("long", "word " * 100), item("short")), budget=changed(hint_tokens=40))
    assert reasons(chosen, "a") == ["budget", None]


def test_activation_that_offers_too_many_gets_its_limit():
    chosen = choose(offered("a", *(item(f"k{n}") for n in range(4))), budget=changed(hints_max=2))
    assert reasons(chosen, "a") == [None, None, "limit", "limit"]


def test_one_activations_tokens_are_not_anothers():
    each = choose(offered("a", item("k1"))).block.tokens
    chosen = choose(
        offered("a", item("k1"), item("k2", "word " * 60)),
        offered("b", item("k3")),
        budget=changed(activation_tokens=each + 5),
    )
    assert (reasons(chosen, "a")[0], reasons(chosen, "b")) == (None, [None])
    assert not chosen.shares["a"].deliveries[1].injected


def test_what_is_left_of_the_run_bounds_all_activations_together():
    each = choose(offered("a", item("k1"))).block.tokens
    chosen = choose(
        offered("a", item("k1")), offered("b", item("k2")), budget=changed(barrier_tokens=each + 5)
    )
    assert [hint.knowledge_id for hint in chosen.block.included] == ["k1"]
    assert not chosen.shares["b"].deliveries[0].injected
    assert chosen.block.tokens <= each + 5


def test_issued_and_already_chosen_items_are_duplicates():
    """A29."""
    chosen = choose(
        offered("a", item("old"), item("new")), offered("b", item("new"), item("other")), issued=("old",)
    )
    assert reasons(chosen, "a") == ["duplicate", None]
    assert reasons(chosen, "b") == ["duplicate", None]


def test_suppressed_item_is_not_offered_again_until_its_revision_changes():
    """A33."""
    known = {"k1": 2}
    assert reasons(choose(offered("a", item("k1", revision=2)), suppressed=known), "a") == ["suppressed"]
    assert reasons(choose(offered("a", item("k1", revision=3)), suppressed=known), "a") == [None]


hints = st.lists(
    st.builds(
        lambda n, words: item(f"k{n}", "word " * words),
        st.integers(0, 6),
        st.integers(1, 60),
    ),
    max_size=6,
    unique_by=lambda hint: hint.knowledge_id,
)


@given(
    st.lists(hints, min_size=1, max_size=3),
    st.integers(0, 400),
    st.integers(0, 800),
    st.integers(10, 120),
    st.integers(0, 4),
)
@settings(max_examples=100)
def test_no_budget_is_ever_exceeded_and_every_offer_has_one_delivery(
    offers: list[list[Hint]], activation: int, barrier: int, hint: int, most: int
):
    budget = Budget(
        activation_tokens=activation,
        barrier_tokens=barrier,
        whole_tokens=barrier,
        hint_tokens=hint,
        hints_max=most,
    )
    chosen = choose(*(offered(f"a{n}", *found) for n, found in enumerate(offers)), budget=budget)
    assert chosen.block.tokens <= barrier
    ids = [included.knowledge_id for included in chosen.block.included]
    assert len(set(ids)) == len(ids)
    for n, found in enumerate(offers):
        share = chosen.shares[f"a{n}"]
        assert len(share.deliveries) == len(found)
        assert share.tokens <= activation
        assert share.injected <= most
    injected = [d.knowledge_id for s in chosen.shares.values() for d in s.deliveries if d.injected]
    assert injected == ids
