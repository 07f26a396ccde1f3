"""The scripted server: what it records, what it refuses, and that the in-process provider is its twin."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import msgspec
import pytest

from temporality.actors.model.provider import CallFailed, ModelReply, Provider
from temporality.actors.model.retry import attempt_until_done
from temporality.actors.model.script_file import parse_script
from temporality.actors.model.scripted import ScriptedProvider
from temporality.actors.model.scripted_server import serve_scripted
from temporality.protocol.agent import ModelSpec
from temporality.protocol.errors import UserError

from .servers import NOON, assistant, openai_provider, request, scripted_model, tool, user

HELLO = "replies:\n- reply: {content: hello}\n"


@pytest.fixture(scope="module")
async def hello() -> AsyncIterator[str]:
    """Serve a script that answers everything."""
    async with scripted_model(HELLO) as url:
        yield url


async def post(url: str, content: bytes, headers: dict[str, str] | None = None) -> httpx2.Response:
    async with httpx2.AsyncClient(verify=False) as client:  # no certificates to read for a port of ours
        return await client.post(f"{url}/chat/completions", content=content, headers=headers)


async def test_record_holds_the_body_byte_for_byte_and_no_credential(tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    body = '{"messages" :[{"role":"user","content":"h\\u00efé"}],  "model":"m"}'.encode()
    async with scripted_model(HELLO, record=record) as url:
        await post(url, body, {"authorization": "Bearer sk-secret", "cookie": "c=secret", "user-agent": "t"})
        await post(url, body.replace(b",  ", b",\n"))
        await post(url, b"not json")
    lines = record.read_bytes().splitlines()
    assert b'"body":' + body in lines[0]
    assert b"secret" not in record.read_bytes()
    entries = [msgspec.json.decode(line) for line in lines]
    assert entries[0]["headers"] == {"user-agent": "t"}
    assert entries[1]["text"] == body.replace(b",  ", b",\n").decode()
    assert entries[2]["text"] == "not json"


async def test_request_is_on_record_even_if_its_answer_never_comes(tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    async with scripted_model("replies: [{fail: {hang_s: 600}}]", record=record) as url:
        body = b'{"messages":[{"role":"user","content":"hi"}]}'
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(post, url, body)
            with anyio.fail_after(10):
                while body not in record.read_bytes():
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not JSON"),
        (b"[]", "`messages` must be a list"),
        (b'{"messages":[1]}', "`messages` must be a list"),
        (b'{"messages":[{"role":"user","content":"x"}],"stream":true}', "`stream` is not supported"),
        (b'{"messages":[{"role":"assistant","content":"x"}]}', "nobody has said anything"),
        (b'{"messages":[{"role":"assistant","tool_calls":[1]}]}', "malformed"),
        (
            msgspec.json.encode(
                {"messages": [user("x"), assistant(("c", "t")), user("hint"), tool("c", "r")]}
            ),
            "messages[2]: user message before the reply to call 'c'",
        ),
    ],
)
async def test_request_that_a_provider_would_refuse_gets_400(hello: str, body: bytes, message: str) -> None:
    """A2."""
    response = await post(hello, body)
    assert response.status_code == 400
    assert message in response.json()["error"]["message"]


async def test_content_in_parts_is_understood() -> None:
    script = "replies: [{when: {user: ab}, reply: {content: both}}]"
    body = msgspec.json.encode({"messages": [{"role": "user", "content": [{"text": "a"}, {"text": "b"}]}]})
    async with scripted_model(script) as url:
        response = await post(url, body)
    assert response.json()["choices"][0]["message"]["content"] == "both"


async def test_same_request_gets_the_same_answer() -> None:
    body = msgspec.json.encode({"messages": [user("hi")]})
    async with scripted_model("replies: [{reply: {tool_calls: [{name: look}]}}]") as url:
        first, second = [(await post(url, body)).content for _ in range(2)]
    assert first == second


async def test_failures_are_counted_for_each_request_apart() -> None:
    script = "replies: [{fail: {status: 503, times: 1}}, {reply: {content: hello}}]"
    bodies = [msgspec.json.encode({"messages": [user(text)]}) for text in ("ab", "cd")]
    async with scripted_model(script) as url:
        statuses = [(await post(url, bodies[index])).status_code for index in (0, 1, 0, 1)]
    assert statuses == [503, 503, 200, 200]


async def test_request_without_a_rule_gets_500_and_says_so() -> None:
    async with scripted_model("replies: [{when: {turn: 2}, reply: {}}]") as url:
        response = await post(url, msgspec.json.encode({"messages": [user("hi")]}))
    assert response.status_code == 500
    assert "no rule of the script applies" in response.json()["error"]["message"]


async def test_models_are_listed() -> None:
    async with scripted_model("model: demo\n" + HELLO) as url, httpx2.AsyncClient(verify=False) as client:
        models = (await client.get(f"{url}/models")).json()
    assert [model["id"] for model in models["data"]] == ["demo"]


async def test_port_in_use_is_a_mistake_of_the_user() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UserError, match="can't be listened"):
        await serve_scripted(parse_script(HELLO), port=taken.getsockname()[1])


async def test_stopped_server_frees_its_port() -> None:
    async with scripted_model(HELLO) as url:
        port = int(url.rsplit(":", 1)[1].split("/")[0])
    with socket.create_server(("127.0.0.1", port)):
        pass


TWINS = """
replies:
- {name: busy, when: {user: busy}, fail: {status: 429, retry_after_s: 2, times: 1}}
- {when: {user: credit}, fail: {status: 429, code: insufficient_quota, message: no credit}}
- {when: {user: key}, fail: {status: 401, message: wrong key}}
- {when: {user: down}, fail: {status: 500}}
- {when: {user: broken}, fail: {malformed: json}}
- {when: {user: cut}, fail: {malformed: truncated}}
- {when: {user: slow}, fail: {hang_s: 600}}
- {when: {user: nothing}, capture: {x: {matches: never}}, reply: {}}
- {when: {user: {matches: 'call|busy'}}, reply: {content: ok, tool_calls: [{name: look, repeat: 2}]}}
"""


@pytest.fixture(scope="module")
async def over_http() -> AsyncIterator[tuple[Provider, ModelSpec]]:
    """Serve the twins' script; give a provider that asks the server, and the model to ask it for."""
    async with scripted_model(TWINS) as url, openai_provider() as provider:
        yield provider, ModelSpec(name="demo", base_url=url, request_timeout_s=0.3)


async def outcome(provider: Provider, spec: ModelSpec, text: str) -> tuple[Any, ...]:
    """Return what the caller of a provider sees: reply or failure, and the pauses before it."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    asked = request([user(text)], spec)
    try:
        reply: ModelReply = await attempt_until_done(
            lambda: provider.attempt(asked), random=Random(5), pause=pause
        )
    except CallFailed as failure:
        return failure.error_class, failure.retry, failure.retry_after_s, pauses
    return reply.content, reply.tool_calls, reply.finish_reason, reply.usage.output_tokens, pauses


@pytest.mark.parametrize(
    "text", ["call", "busy", "credit", "key", "down", "broken", "cut", "slow", "nothing"]
)
async def test_provider_in_process_answers_as_the_server_does(
    over_http: tuple[Provider, ModelSpec], text: str
) -> None:
    in_process = ModelSpec(provider="scripted", name="demo", script=TWINS, request_timeout_s=0.3)
    twin = ScriptedProvider(now=lambda: NOON)
    assert await outcome(twin, in_process, text) == await outcome(*over_http, text)


async def test_script_may_be_a_file_and_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    spec = ModelSpec(provider="scripted", name="demo", script=str(path))
    provider = ScriptedProvider(now=lambda: NOON)
    contents = []
    for word in ("one", "three"):
        path.write_text(f"replies:\n- reply: {{content: {word}}}\n")
        contents.append((await provider.attempt(request([user("hi")], spec))).content)
    assert contents == ["one", "three"]


async def test_script_that_is_missing_or_wrong_is_a_clear_failure(tmp_path: Path) -> None:
    provider = ScriptedProvider(now=lambda: NOON)
    failures = []
    for script in (None, str(tmp_path / "none.yaml"), "replies:\n- repply: {}\n"):
        spec = ModelSpec(provider="scripted", name="demo", script=script)
        with pytest.raises(CallFailed) as raised:
            await provider.attempt(request([user("hi")], spec))
        failures.append(raised.value)
    assert {failure.error_class for failure in failures} == {"refused"}
    assert "is missing" in failures[0].message
    assert "can't be read" in failures[1].message
    assert "model.script:2 (replies[0].repply)" in failures[2].message
