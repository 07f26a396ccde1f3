"""What a model is shown of a reply, whatever the reply was."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporality.actors.executor.content import cap, encodable, shorten
from temporality.actors.redaction import redact
from temporality.actors.redaction.samples.secrets import TOKENS

any_text = st.text(st.characters(exclude_categories=[]), max_size=4_000)


@given(any_text)
def test_encodable_text_can_always_be_encoded(text: str) -> None:
    assert encodable(text).encode().decode() == encodable(text)


@given(st.text())
def test_text_that_was_encodable_is_left_alone(text: str) -> None:
    assert encodable(text) == text


def test_surrogate_pair_becomes_its_character_and_a_lone_half_a_mark() -> None:
    assert encodable("\ud83d\ude00 and \ud83d") == "\U0001f600 and \ufffd"


@given(any_text, st.integers(1_024, 4_096))
def test_capped_text_never_exceeds_the_cap(text: str, bytes_max: int) -> None:
    capped = cap(encodable(text), bytes_max)
    assert len(capped.encode()) <= bytes_max
    assert (capped == encodable(text)) == (len(encodable(text).encode()) <= bytes_max)


def test_cut_keeps_two_thirds_of_the_head_one_third_of_the_tail_and_says_what_is_missing() -> None:
    text = "h" * 50_000 + "t" * 50_000
    capped = cap(text, 3_000)
    head, line, tail = capped.split("\n")
    assert set(head) == {"h"}
    assert set(tail) == {"t"}
    assert abs(len(head) - 2 * len(tail)) <= 2
    assert line == f"[… {100_000 - len(head) - len(tail)} bytes left out …]"


def test_cut_falls_between_characters_not_inside_one() -> None:
    capped = cap("\U0001f600" * 1_000, 1_025)
    assert "\ufffd" not in capped
    assert len(capped.encode()) <= 1_025


def test_shortened_text_keeps_both_ends() -> None:
    assert shorten("short", 100) == "short"
    assert shorten("a" * 90 + "z" * 90, 30) == "a" * 20 + " … " + "z" * 10


SECRET = TOKENS["openai"](Random("a secret at a cut"))


@pytest.mark.parametrize("cut", [lambda text: shorten(text, 1_200), lambda text: cap(text, 1_200)])
def test_cut_leaves_no_piece_of_a_secret_beside_it(cut: Callable[[str], str]) -> None:
    """A17: half of a secret can't be known as one by whoever redacts the text later."""
    for at in range(250, 1_000, 2):
        head = f"{'x ' * (at // 2)} {SECRET} {'y ' * 2_000}"
        for text in (head, head[::-1].replace(SECRET[::-1], SECRET)):
            shown = redact(cut(text)).text
            assert not any(SECRET[n : n + 8] in shown for n in range(len(SECRET) - 8)), (at, shown)
