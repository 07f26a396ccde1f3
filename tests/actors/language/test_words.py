"""One analysis for Russian, English and code (A19)."""

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporality.actors.language import STOP_WORDS, stem, terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("connection refused", "connections refusing"),
        ("поставщику отправлены уведомления", "поставщикам отправлено уведомление"),
        ("учёт", "учета"),
        ("ＨＴＴＰ ﬁle", "http file"),
    ],
)
def test_word_forms_of_both_languages_give_one_term(one: str, other: str) -> None:
    assert terms(one) == terms(other)
    assert terms(one)


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("getUserById", "get user id"),
        ("db_path", "db path"),
        ("HTTP-запрос", "http запрос"),
        ("HTTPServerError", "http server error"),
        ("/var/lib/mlocate.db", "var lib mlocate db"),
        ("ModuleNotFoundError", "module found error"),
        ("запросКБазе", "запрос базе"),
    ],
)
def test_identifier_is_found_by_its_words(identifier: str, words: str) -> None:
    assert set(terms(words)) <= set(terms(identifier))


def test_identifier_written_as_one_word_is_also_a_term_of_its_own() -> None:
    assert "getuserbyid" in terms("getUserById()")


def test_flag_is_a_term_besides_its_words_and_short_flags_keep_their_case() -> None:
    assert terms("git commit --no-verify") == (*terms("git commit"), "--no-verify", *terms("verify"))
    assert terms("-D") != terms("-d")
    assert "--verify" not in terms("pre--verify")


def test_stop_words_and_placeholder_names_carry_no_weight() -> None:
    assert terms("the of and is not it") == ()
    assert terms("и в не на что чтобы её") == ()
    assert terms("foo bar/baz") == ()


def test_hashes_and_long_numbers_are_not_terms_but_ports_and_statuses_are() -> None:
    assert terms("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08") == ()
    assert terms("1712345678") == ()
    assert terms("port 8080 status 404") == ("port", "8080", "status", "404")


@given(st.text())
def test_any_text_gives_terms_without_white_space_or_stop_words(text: str) -> None:
    """The index splits at white space (A19), and nothing in a text is more than data (A18)."""
    for term in terms(text):
        assert term.split() == [term]
        assert term not in STOP_WORDS or term != stem(term)


def test_russian_and_english_stemmers_agree_with_the_pure_python_ones() -> None:
    """Without PyStemmer the index must hold the same terms."""
    in_python: Any = import_module("snowballstemmer")
    russian, english = in_python.stemmer("russian"), in_python.stemmer("english")
    for word in ("уведомления", "подключение", "ошибками", "сервера"):
        assert stem(word) == russian.stemWord(word)
    for word in ("connections", "generically", "running", "failed", "libraries"):
        assert stem(word) == english.stemWord(word)
