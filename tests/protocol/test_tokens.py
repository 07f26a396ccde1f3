"""The estimate is rarely too low, and never a surprise: what it grows with, and how (A40).

How it compares with real tokenizers is measured in `bench/tokens.py`.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporality.protocol.tokens import estimate_tokens

from .hostile_texts import hostile


def test_nothing_costs_nothing_and_anything_costs_at_least_one() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") >= 1


@given(hostile, hostile)
def test_longer_text_never_costs_less(text: str, more: str) -> None:
    assert estimate_tokens(f"{text}\n{more}") >= max(estimate_tokens(text), estimate_tokens(more))


@given(st.text(alphabet=st.characters(exclude_categories=["Zs", "Zl", "Zp", "Cc"]), min_size=1))
def test_estimate_lies_between_a_token_for_eight_characters_and_three_for_one(text: str) -> None:
    assert len(text) / 8 <= estimate_tokens(text) <= 3 * len(text) + 1


@pytest.mark.parametrize(
    ("text", "real"),
    [
        ("The default branch was renamed in March: it is now called main, and the old one is gone.", 21),
        ("Имя ветки по умолчанию изменили в марте: теперь она называется main, а старая удалена.", 39),
        ("默认分支在三月份改名为 main，旧分支已经删除。", 20),
        ("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", 64),
        ("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0", 42),
        ("1732970641118 2026-11-30T12:44:01.118Z", 38),
    ],
    ids=["english", "russian", "chinese", "hash", "base64", "numbers"],
)
def test_estimate_is_not_below_what_the_hungriest_measured_tokenizer_needs(text: str, real: int) -> None:
    """`real` is the largest count of cl100k_base, o200k_base and qwen3.5 for the text."""
    assert real <= estimate_tokens(text) <= 2 * real


def test_megabyte_is_estimated_in_linear_time() -> None:
    assert estimate_tokens("a1 ,\n\n" * 170_000) > 170_000
