"""What a status and its headers mean, and what a body that is no reply is read as."""

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporality.actors.model.failures import RETRY_AFTER_MAX_S, retry_after_s, status_failure
from temporality.actors.model.openai_reply import read_error, read_reply
from temporality.actors.model.provider import FAILURE_CHARACTERS_MAX, CallFailed
from temporality.actors.model.references import VariableMissing, resolve
from temporality.actors.redaction import redact
from temporality.actors.redaction.samples.secrets import TOKENS

from .servers import NOON


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Fri, 20 Nov 2026 12:01:30 GMT"}, 90.0),
        ({"retry-after": "Fri, 20 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "20 Nov 2026 12:00:10 -0000"}, 10.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "1e12"}, RETRY_AFTER_MAX_S),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOON) == seconds


@given(st.integers(min_value=100, max_value=999))
def test_every_status_has_a_class_and_a_failure_that_is_final_or_retried(status: int) -> None:
    failure = status_failure(status, message="x" * 2_000, code=None, headers={}, now=NOON)
    assert failure.retry in {"never", "backoff"}
    assert (failure.retry == "backoff") or failure.do
    assert len(failure.message) <= FAILURE_CHARACTERS_MAX


def completion(**message: Any) -> bytes:
    return msgspec.json.encode({"choices": [{"message": message, "finish_reason": "stop"}]})


def call(identifier: str | None, arguments: Any) -> dict[str, Any]:
    return {"id": identifier, "type": "function", "function": {"name": "look", "arguments": arguments}}


@pytest.mark.parametrize("ids", [("", ""), ("same", "same"), (None, "x")])
def test_calls_without_distinct_ids_get_ids_of_our_own(ids: tuple[str | None, ...]) -> None:
    reply = read_reply(completion(tool_calls=[call(given, "{}") for given in ids]))
    assert [made.id for made in reply.tool_calls] == ["call_0", "call_1"]


def test_arguments_stay_as_the_model_wrote_them() -> None:
    calls = [call("a", '{"x": 1,'), call("b", None), call("c", {"x": 1})]
    reply = read_reply(completion(content=None, tool_calls=calls))
    assert [made.arguments for made in reply.tool_calls] == ['{"x": 1,', "", '{"x":1}']


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"content": None, "refusal": "I can't"}, "I can't"),
        ({"content": None}, ""),
        ({}, ""),
    ],
)
def test_content_in_any_shape(message: dict[str, Any], content: str) -> None:
    assert read_reply(completion(**message)).content == content


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(), st.lists).map(msgspec.json.encode))
def test_any_other_body_is_a_malformed_reply_and_never_a_traceback(body: bytes) -> None:
    with pytest.raises(CallFailed) as raised:
        read_reply(body)
    assert raised.value.error_class == "malformed_reply"


def test_error_with_status_200_is_seen() -> None:
    error = read_error(b'{"error":{"message":"overloaded","code":503}}')
    assert error is not None
    assert (error.message, error.code) == ("overloaded", 503)
    assert read_error(completion(content="fine")) is None


def test_reference_in_a_longer_text_is_resolved_and_an_empty_variable_is_a_missing_one() -> None:
    assert resolve("f", "a ${X}-${Y_1} $Z", {"X": "1", "Y_1": "2"}) == "a 1-2 $Z"
    with pytest.raises(VariableMissing, match=r"`f` refers to \$\{X\}"):
        resolve("f", "${X}", {"X": ""})


@pytest.mark.parametrize("inside", range(8, 30))
def test_message_is_cut_without_leaving_a_piece_of_a_secret(inside: int) -> None:
    """A17: a provider quotes the key that it refuses."""
    secret = TOKENS["openai"](Random("a refused key"))
    for edge in (FAILURE_CHARACTERS_MAX, FAILURE_CHARACTERS_MAX * 2 // 3):
        message = (
            f"{'no ' * edge}"[: edge - inside - 1] + f" {secret} " + "is right " * FAILURE_CHARACTERS_MAX
        )
        failure = CallFailed("unauthorized", message)
        shown = redact(failure.message).text
        assert len(shown) <= FAILURE_CHARACTERS_MAX
        assert not any(secret[at : at + 8] in shown for at in range(len(secret) - 8))
