"""What `redact` and `probe redact` promise of any text."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporality.actors.redaction import redact
from temporality.actors.redaction.finding import MARK, mark
from temporality.actors.redaction.kinds import KINDS
from temporality.actors.redaction.probe import RedactAnswer, RedactRequest, probe
from temporality.actors.redaction.samples.ordinary import ORDINARY
from temporality.actors.redaction.samples.places import every_kind
from temporality.actors.redaction.samples.secrets import characters
from temporality.protocol.fingerprint import normalize

PIECES = (
    "password",
    "token",
    "api_key",
    "Authorization",
    "Cookie",
    "Bearer ",
    "=",
    ": ",
    " = ",
    '"',
    "'",
    "\\",
    "\\n",
    "\n",
    ",",
    ";",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "https://",
    "user:",
    "@host",
    "?",
    "&",
    "%3D",
    "--",
    " ",
    "hunter2x9",
    "-----BEGIN PRIVATE KEY-----",
    "sk-",
    "eyJ",
    ".",
    "is",
    "[redacted:token]",
    "[redacted:",
    "пароль",
    "ключ",
    "İ",
    "$2b$",
)
soup = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=24).map("".join)


@given(soup)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text).text
    assert redact(once).text == once


@given(soup)
def test_findings_are_ascending_ranges_of_the_input_and_all_else_is_kept(text: str) -> None:
    redacted = redact(text)
    position, parts = 0, []
    for finding in redacted.found:
        assert position <= finding.start < finding.end <= len(text)
        parts += [text[position : finding.start], mark(finding.kind)]
        position = finding.end
    assert "".join([*parts, text[position:]]) == redacted.text


@pytest.mark.parametrize("kind", every_kind())
def test_redacted_sample_is_stable(kind: str) -> None:
    rng = Random(f"stable {kind}")
    for _ in range(15):
        once = redact(every_kind()[kind](rng).text).text
        assert redact(once).text == once


@pytest.mark.parametrize("kind", KINDS)
def test_mark_has_nothing_that_normalisation_replaces(kind: str) -> None:
    assert MARK.fullmatch(mark(kind))
    assert not any(char.isdigit() or char in "/\\\"'" for char in mark(kind))
    assert mark(kind) in normalize(f"login with password={mark(kind)} failed 3 times")


def test_lower_case_twin_of_another_length_does_not_shift_findings() -> None:
    secret = characters(Random(1), "abcdefgh0123456789", 20)
    text = f"İİİ password={secret} rest"
    (finding,) = redact(text).found
    assert text[finding.start : finding.end] == secret


def test_probe_answers_with_text_and_offsets_into_the_input() -> None:
    secret = characters(Random(2), "abcdefgh0123456789", 20)
    request = msgspec.json.decode(msgspec.json.encode({"text": f"x password={secret}."}), type=RedactRequest)
    answer = msgspec.json.decode(msgspec.json.encode(probe(request)), type=RedactAnswer)
    assert answer.text == "x password=[redacted:password]."
    assert [(one.kind, one.start, one.end) for one in answer.found] == [("password", 11, 11 + len(secret))]


def test_probe_refuses_an_unknown_field() -> None:
    with pytest.raises(msgspec.ValidationError, match="txt"):
        msgspec.json.decode(b'{"text": "", "txt": ""}', type=RedactRequest)


def test_ordinary_text_has_no_findings_at_all() -> None:
    rng = Random(3)
    assert [text for make in ORDINARY.values() if redact(text := make(rng)).found] == []
