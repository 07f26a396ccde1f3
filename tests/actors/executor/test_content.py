"""What a model is shown of a reply, whatever the reply was."""

from hypothesis import given
from hypothesis import strategies as st

from temporality.actors.executor import content
from temporality.actors.executor.content import cap, clean, shorten
from temporality.protocol.identity import digest

any_text = st.text(st.characters(exclude_categories=[]), max_size=4_000)


@given(any_text)
def test_clean_text_can_always_be_encoded(text: str) -> None:
    assert clean(text).encode().decode() == clean(text)


@given(st.text())
def test_text_that_was_clean_is_left_alone(text: str) -> None:
    assert clean(text) == text


def test_surrogate_pair_becomes_its_character_and_a_lone_half_a_mark() -> None:
    assert clean("\ud83d\ude00 and \ud83d") == "\U0001f600 and \ufffd"


@given(any_text, st.integers(1_024, 4_096))
def test_capped_text_never_exceeds_the_cap(text: str, bytes_max: int) -> None:
    capped = cap(clean(text), bytes_max)
    assert len(capped.text.encode()) <= bytes_max
    assert (capped.overflow is None) == (len(clean(text).encode()) <= bytes_max)


def test_cut_keeps_two_thirds_of_the_head_one_third_of_the_tail_and_says_what_is_missing() -> None:
    text = "h" * 50_000 + "t" * 50_000
    capped = cap(text, 3_000)
    head, line, tail = capped.text.split("\n")
    assert set(head) == {"h"}
    assert set(tail) == {"t"}
    assert abs(len(head) - 2 * len(tail)) <= 2
    assert f"{100_000 - len(head) - len(tail)} bytes left out" in line
    assert digest(text.encode()) in line
    assert capped.overflow == text.encode()


def test_cut_falls_between_characters_not_inside_one() -> None:
    capped = cap("\U0001f600" * 1_000, 1_025)
    assert "\ufffd" not in capped.text
    assert len(capped.text.encode()) <= 1_025


def test_overflow_has_a_limit_which_the_line_tells() -> None:
    text = "x" * (content.OVERFLOW_BYTES_MAX + 10)
    capped = cap(text, 1_024)
    assert capped.overflow is not None
    assert len(capped.overflow) == content.OVERFLOW_BYTES_MAX
    assert f"the first {content.OVERFLOW_BYTES_MAX} bytes: blob" in capped.text


def test_shortened_text_keeps_both_ends() -> None:
    assert shorten("short", 100) == "short"
    assert shorten("a" * 90 + "z" * 90, 30) == "a" * 20 + " … " + "z" * 10
