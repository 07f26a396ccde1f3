"""The OpenAI provider against a real HTTP server on loopback."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import anyio
import msgspec
import pytest

from temporality.actors.model.openai import OpenAIProvider
from temporality.actors.model.provider import CallFailed, ModelReply
from temporality.actors.model.retry import ATTEMPTS_MAX, RETRY_LATER_S, attempt_until_done, retry_later_s
from temporality.protocol.agent import ModelSpec

from .servers import openai_provider, request, scripted_model, user

SAYS_HELLO = 'replies: [{reply: {content: "hello"}}]'


@pytest.fixture(scope="module")
async def hanging() -> AsyncIterator[str]:
    """Serve a model that never answers; a server that stops waits for what it has not answered, so once."""
    async with scripted_model("replies: [{fail: {hang_s: 600}}]") as url:
        yield url


def spec(base_url: str | None, **fields: Any) -> ModelSpec:
    return ModelSpec(name="demo", base_url=base_url, **fields)


async def ask_patiently(provider: OpenAIProvider, model: ModelSpec) -> tuple[ModelReply, list[float]]:
    """Ask with retries whose pauses are noted instead of spent."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    asked = request([user("hi")], model)
    reply = await attempt_until_done(lambda: provider.attempt(asked), random=Random(7), pause=pause)
    return reply, pauses


async def failure_of(provider: OpenAIProvider, model: ModelSpec) -> CallFailed:
    with pytest.raises(CallFailed) as raised:
        await ask_patiently(provider, model)
    return raised.value


async def test_reply_with_calls_and_usage_is_read() -> None:
    script = """
    replies:
      - reply:
          content: "I look"
          tool_calls: [{name: git__git_diff, arguments: {target: HEAD}}, {name: look, raw_arguments: "{oops"}]
    """
    async with scripted_model(script) as url, openai_provider() as provider:
        reply = await provider.attempt(request([user("hi")], spec(url)))
    assert reply.content == "I look"
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [
        ("call_1_rule-1_0", "git__git_diff", '{"target":"HEAD"}'),
        ("call_1_rule-1_1", "look", "{oops"),
    ]
    assert reply.finish_reason == "tool_calls"
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0


async def test_encoded_messages_are_sent_byte_for_byte(tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    asked = request([user("grüße \u2028 \U0001f40d")], spec("", params={"temperature": 0.5}))
    async with scripted_model(SAYS_HELLO, record=record) as url, openai_provider() as provider:
        asked = request(asked.messages, msgspec.structs.replace(asked.spec, base_url=url))
        await provider.attempt(asked)
    assert asked.encoded[0] in record.read_bytes()
    body = msgspec.json.decode(record.read_bytes())["body"]
    assert body == {"model": "demo", "temperature": 0.5, "messages": [*asked.messages]}


async def test_key_comes_from_the_given_environment_and_never_reaches_the_record(tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    model = spec("${DEMO_URL}", api_key="${DEMO_KEY}")
    async with scripted_model(SAYS_HELLO, record=record, api_key="sk-very-secret") as url:
        async with openai_provider({"DEMO_KEY": "sk-very-secret", "DEMO_URL": url}) as provider:
            reply = await provider.attempt(request([user("hi")], model))
        async with openai_provider({"DEMO_KEY": "sk-other", "DEMO_URL": url}) as provider:
            failure = await failure_of(provider, model)
    assert reply.content == "hello"
    assert failure.error_class == "unauthorized"
    assert b"very-secret" not in record.read_bytes()


async def test_key_that_a_server_repeats_in_its_error_is_not_passed_on() -> None:
    """A47."""
    script = "replies: [{fail: {status: 401, message: 'wrong key sk-very-secret'}}]"
    async with scripted_model(script) as url, openai_provider({"K": "sk-very-secret"}) as provider:
        failure = await failure_of(provider, spec(url, api_key="${K}"))
    assert failure.message == "HTTP 401: wrong key ***"


async def test_missing_variable_is_unauthorized_and_named() -> None:
    async with openai_provider() as provider:
        failure = await failure_of(provider, spec("http://127.0.0.1:9/v1", api_key="Bearer ${DEMO_KEY}"))
        default = await failure_of(provider, spec(None))
    assert failure.error_class == "unauthorized"
    assert "${DEMO_KEY}" in failure.message
    assert "DEMO_KEY" in failure.do
    assert "${OPENAI_API_KEY}" in default.message
    assert retry_later_s(failure) is None


@pytest.mark.parametrize(
    ("status", "error_class"),
    [(400, "refused"), (401, "unauthorized"), (403, "unauthorized"), (404, "refused"), (422, "refused")],
)
async def test_refusal_is_reported_at_once_with_what_to_do(status: int, error_class: str) -> None:
    script = f"replies: [{{fail: {{status: {status}, message: no such luck, times: 1}}}}, {{reply: {{}}}}]"
    async with scripted_model(script) as url, openai_provider() as provider:
        failure = await failure_of(provider, spec(url))
    assert failure.error_class == error_class
    assert failure.message == f"HTTP {status}: no such luck"
    assert failure.do
    assert retry_later_s(failure) is None


async def test_retry_after_in_seconds_is_waited_for() -> None:
    script = f"replies: [{{fail: {{status: 429, retry_after_s: 3, times: 2}}}}, {SAYS_HELLO[10:-1]}]"
    async with scripted_model(script) as url, openai_provider() as provider:
        reply, pauses = await ask_patiently(provider, spec(url))
    assert reply.content == "hello"
    assert pauses == [3.0, 3.0]


async def test_long_retry_after_is_left_to_a_durable_timer() -> None:
    script = "replies: [{fail: {status: 429, retry_after_s: 90}}]"
    async with scripted_model(script) as url, openai_provider() as provider:
        failure = await failure_of(provider, spec(url))
    assert failure.error_class == "rate_limited"
    assert retry_later_s(failure) == 90.0


async def test_waits_that_sum_up_past_the_hold_limit_are_left_to_a_timer() -> None:
    script = "replies: [{fail: {status: 429, retry_after_s: 15}}]"
    async with scripted_model(script) as url, openai_provider() as provider:
        asked = request([user("hi")], spec(url))
        pauses: list[float] = []

        async def pause(seconds: float) -> None:
            pauses.append(seconds)

        with pytest.raises(CallFailed):
            await attempt_until_done(lambda: provider.attempt(asked), random=Random(1), pause=pause)
    assert pauses == [15.0]


async def test_exhausted_credit_is_not_retried_although_it_is_a_429() -> None:
    script = "replies: [{fail: {status: 429, code: insufficient_quota}}]"
    async with scripted_model(script) as url, openai_provider() as provider:
        failure = await failure_of(provider, spec(url))
    assert (failure.error_class, failure.retry) == ("refused", "never")


async def test_server_error_is_retried_with_growing_random_pauses() -> None:
    script = f"replies: [{{fail: {{status: 503, times: 3}}}}, {SAYS_HELLO[10:-1]}]"
    async with scripted_model(script) as url, openai_provider() as provider:
        reply, pauses = await ask_patiently(provider, spec(url))
    assert reply.content == "hello"
    bounds = [(0.25, 0.5), (0.5, 1.0), (1.0, 2.0)]
    assert all(low <= pause <= high for pause, (low, high) in zip(pauses, bounds, strict=True))


async def test_server_error_that_stays_is_left_to_a_timer_after_a_few_attempts(tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    async with (
        scripted_model("replies: [{fail: {status: 500}}]", record=record) as url,
        openai_provider() as provider,
    ):
        failure = await failure_of(provider, spec(url))
    assert len(record.read_bytes().splitlines()) == ATTEMPTS_MAX
    assert failure.error_class == "provider_error"
    assert retry_later_s(failure) == RETRY_LATER_S


@pytest.mark.parametrize("kind", ["json", "html", "no_choices"])
async def test_malformed_answer_is_asked_for_again_once(kind: str, tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    once = f"replies: [{{fail: {{malformed: {kind}, times: 1}}}}, {SAYS_HELLO[10:-1]}]"
    always = f"replies: [{{fail: {{malformed: {kind}}}}}]"
    async with openai_provider() as provider:
        async with scripted_model(once) as url:
            reply, _ = await ask_patiently(provider, spec(url))
        async with scripted_model(always, record=record) as url:
            failure = await failure_of(provider, spec(url))
    assert reply.content == "hello"
    assert len(record.read_bytes().splitlines()) == 2
    assert failure.error_class == "malformed_reply"


async def test_answer_that_breaks_off_is_a_connection_failure_and_retried() -> None:
    script = f"replies: [{{fail: {{malformed: truncated, times: 1}}}}, {SAYS_HELLO[10:-1]}]"
    async with scripted_model(script) as url, openai_provider() as provider:
        with pytest.raises(CallFailed) as raised:
            await provider.attempt(request([user("hi")], spec(url)))
        reply, _ = await ask_patiently(provider, spec(url))
    assert (raised.value.error_class, raised.value.retry) == ("connection", "backoff")
    assert reply.content == "hello"


async def test_server_that_hangs_ends_as_a_timeout_for_a_timer_to_repeat(hanging: str) -> None:
    async with openai_provider() as provider:
        failure = await failure_of(provider, spec(hanging, request_timeout_s=0.2))
    assert failure.error_class == "timeout"
    assert retry_later_s(failure) == RETRY_LATER_S


async def test_server_that_is_not_there_is_a_connection_failure() -> None:
    async with scripted_model(SAYS_HELLO) as url:
        pass
    async with openai_provider() as provider:
        failure = await failure_of(provider, spec(url))
    assert failure.error_class == "connection"
    assert url.removesuffix("/v1") in failure.message
    assert retry_later_s(failure) == RETRY_LATER_S


@pytest.mark.parametrize(
    "address", ["http://${WHO}@HOST/v1", "http://HOST/${WHERE}", "http://HOST/v1?${SIGNED}"]
)
async def test_address_made_of_secrets_is_told_by_scheme_host_and_port_only(address: str) -> None:
    """A47: a failure stands in a commit, where no `${NAME}` may have been resolved."""
    environment = {"WHO": "ann:hunter2", "WHERE": "tenant-77", "SIGNED": "sig-abc"}
    hidden = ("ann", "hunter2", "tenant-77", "sig-abc")
    async with scripted_model(SAYS_HELLO) as url:
        host = url.removeprefix("http://").removesuffix("/v1")
    async with openai_provider(environment) as provider:
        failure = await failure_of(provider, spec(address.replace("HOST", host)))
    assert failure.message.startswith(f"no connection to http://{host}: ")
    assert not [word for word in hidden if word in failure.message]


async def test_hanging_server_is_told_without_the_secrets_in_its_address(hanging: str) -> None:
    """A47."""
    async with openai_provider({"WHO": "ann:hunter2"}) as provider:
        host = hanging.removeprefix("http://").removesuffix("/v1")
        failure = await failure_of(provider, spec(f"http://${{WHO}}@{host}/v1", request_timeout_s=0.2))
    assert failure.message == f"no reply from http://{host} within 0.2 s"


async def test_params_can_not_replace_the_messages() -> None:
    async with openai_provider() as provider:
        failure = await failure_of(provider, spec("http://127.0.0.1:9/v1", params={"messages": "x"}))
    assert failure.error_class == "refused"
    assert "`messages`" in failure.message


async def test_cancelled_attempt_ends_at_once(hanging: str) -> None:
    async with openai_provider() as provider:
        with anyio.move_on_after(0.2) as scope:
            await provider.attempt(request([user("hi")], spec(hanging)))
    assert scope.cancelled_caught


FIRST_REQUEST = """
import sys, threading
from datetime import UTC, datetime
import anyio
from temporality.actors.model.openai import OpenAIProvider
from temporality.actors.model.provider import CallFailed, ModelRequest
from temporality.protocol.agent import ModelSpec

importers = []

class Watching:
    def find_spec(self, name, path=None, target=None):
        if name == "openai":
            importers.append(threading.current_thread())

async def main():
    model = ModelSpec(name="demo", base_url="http://127.0.0.1:9/v1")
    try:
        await OpenAIProvider({}, now=lambda: datetime.now(UTC)).attempt(
            ModelRequest(call="m", spec=model, messages=[], encoded=[])
        )
    except CallFailed:
        pass

sys.meta_path.insert(0, Watching())
anyio.run(main)
assert importers and threading.main_thread() not in importers, importers
"""


def test_sdk_is_imported_beside_the_loop_so_that_heartbeats_go_on() -> None:
    """A delivery without heartbeats is delivered again, and its request is made and paid twice."""
    subprocess.run([sys.executable, "-c", FIRST_REQUEST], timeout=60.0, check=True)
