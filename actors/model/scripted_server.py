"""The scripted model as an HTTP server that speaks OpenAI's chat completions.

It stands where a real provider stands, so what a test finds in its record is what a provider would have
received, byte for byte, after every layer of client code. Like a provider it refuses a history that breaks
the rules (`render/checks.py`), with status 400. One record line is on disk before its request is answered.
"""

import hmac
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import anyio
import msgspec
from anyio.abc import TaskStatus

from temporality.actors.model.conversation import Conversation, text_of, tool_names
from temporality.actors.model.failed_requests import FailedRequests, request_key
from temporality.actors.model.player import CHARACTERS_A_TOKEN, NoRule, play
from temporality.actors.model.provider import ModelReply
from temporality.actors.model.render.checks import RuleBroken, require_valid_openai
from temporality.actors.model.script import Failure, Script
from temporality.protocol.errors import UserError
from temporality.protocol.identity import derived_id, digest

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

BODY_BYTES_MAX: Final = 33_554_432
"""Largest request: several times the longest history of any model."""

CLOSE_TIMEOUT_S: Final = 2.0
"""How long a stopping server waits for answers under way; a hanging script must not hold it longer."""

RECORDED_HEADERS: Final = ("content-type", "idempotency-key", "traceparent", "user-agent")
"""Headers that a record may hold: named ones only, so that no credential ever gets into it (A47)."""


async def serve_scripted(
    script: Script,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    record: Path | None = None,
    api_key: str | None = None,
    task_status: TaskStatus[int] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve a script until cancelled; announces the bound port (0 picks a free one) when it can answer.

    `record` is a file to append each request to, one JSON object a line; with `api_key`, requests without it
    get 401. Raises `UserError` if the address or the file can't be used.
    """
    with _recorder(record) as write, _listening(host, port) as listener:
        server = _server(ScriptedModel(script, write, api_key).app())
        stopped = anyio.Event()

        async def serve() -> None:
            try:
                with anyio.CancelScope(shield=True):
                    await server.serve(sockets=[listener])
            finally:
                stopped.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            task_status.started(listener.getsockname()[1])
            try:
                await anyio.sleep_forever()
            finally:
                server.should_exit = True
                with anyio.CancelScope(shield=True):
                    await stopped.wait()


class ScriptedModel:
    """Answer requests by a script; knows HTTP, but no socket."""

    def __init__(self, script: Script, record: Callable[[bytes], None], api_key: str | None = None) -> None:
        self._script = script
        self._record = record
        self._api_key = api_key
        self._failed = FailedRequests()

    def app(self) -> "Starlette":
        """Return the application."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        return Starlette(
            routes=[
                Route("/v1/chat/completions", self.complete, methods=["POST"]),
                Route("/v1/models", self.models, methods=["GET"]),
            ]
        )

    async def models(self, request: "Request") -> "Response":
        """List the one model."""
        if not self._authorized(request):
            return _error(401, "the key is missing or wrong")
        model = {"id": self._script.model, "object": "model", "created": 0, "owned_by": "temporality"}
        return _json(200, {"object": "list", "data": [model]})

    async def complete(self, request: "Request") -> "Response":
        """Answer one chat completion."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_BYTES_MAX:
                return _error(413, f"a request has at most {BODY_BYTES_MAX} bytes")
        received = _Received(bytes(body))
        self._record(record_line(datetime.now(UTC), request.headers, received))
        if not self._authorized(request):
            return _error(401, "the key is missing or wrong")
        try:
            asked = received.asked()
        except ValueError as error:
            return _error(400, str(error))
        return await self._play(asked, received.body)

    async def _play(self, asked: dict[str, Any], body: bytes) -> "Response":
        messages = asked["messages"]
        conversation = Conversation(
            messages,
            model=str(asked.get("model", "")),
            tools=lambda: tool_names(asked.get("tools") or ()),
        )
        key = request_key(self._script, (msgspec.json.encode(message) for message in messages))
        try:
            played = play(self._script, conversation, self._failed.of(key))
        except ValueError as error:
            return _error(500, f"the script failed: {error}", headers=_FINAL)
        if isinstance(played, NoRule):
            return _error(500, played.message, headers=_FINAL)
        self._failed.record(key, played)
        await anyio.sleep(played.delay_s)
        if isinstance(played.answer, Failure):
            return await _failure(played.answer)
        return _json(200, _completion(asked, played.answer, played.rule, body))

    def _authorized(self, request: "Request") -> bool:
        if self._api_key is None:
            return True
        given = request.headers.get("authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {self._api_key}".encode())


_FINAL: Final = {"x-should-retry": "false"}
"""Says that the same request would get the same answer; OpenAI's servers use this header too."""


class _Received:
    """A request's body, decoded once."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.is_json = True
        self._value: Any = None
        try:
            self._value = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            self.is_json = False

    def asked(self) -> dict[str, Any]:
        """Return a request that a provider would accept; raises `ValueError` with what is wrong."""
        if not self.is_json:
            raise ValueError("the body is not JSON")
        asked = self._value
        messages = asked.get("messages") if isinstance(asked, dict) else None
        if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
            raise ValueError("`messages` must be a list of messages")
        if asked.get("stream"):
            raise ValueError("`stream` is not supported by the scripted model")
        try:
            require_valid_openai(map(_plain, messages))
            tool_names(asked.get("tools") or ())
        except RuleBroken as error:
            raise ValueError(str(error)) from error
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a message or tool is malformed: {error!r}") from error
        return {**asked}


def record_line(at: datetime, headers: Mapping[str, str], received: _Received) -> bytes:
    """Return the record of a request: JSON bodies as their own bytes, anything else as text.

    A body with line breaks can't stand in a line as it is, and is kept as text too.
    """
    fields: dict[str, Any] = {
        "at": at.isoformat(),
        "headers": {name: headers[name] for name in RECORDED_HEADERS if name in headers},
    }
    body = received.body
    whole = received.is_json and b"\n" not in body and b"\r" not in body
    fields["body" if whole else "text"] = msgspec.Raw(body) if whole else body.decode("utf-8", "replace")
    return msgspec.json.encode(fields) + b"\n"


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "content": text_of(message)} if isinstance(message.get("content"), list) else message


def _completion(asked: Mapping[str, Any], reply: ModelReply, rule: str, body: bytes) -> dict[str, Any]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.tool_calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": reply.content or None}
    if calls:
        message["tool_calls"] = calls
    input_tokens = len(body) // CHARACTERS_A_TOKEN
    output_tokens = reply.usage.output_tokens
    return {
        "id": derived_id("chatcmpl", rule, digest(body)),
        "object": "chat.completion",
        "created": 0,
        "model": asked.get("model", ""),
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}],
        "usage": {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        },
    }


async def _failure(failure: Failure) -> "Response":
    from starlette.responses import Response

    match failure.malformed:
        case "json":
            return Response(b'{"choices": [{"mess', media_type="application/json")
        case "html":
            return Response(b"<!DOCTYPE html><title>Sign in</title>", media_type="text/html")
        case "no_choices":
            return _json(200, {"object": "chat.completion", "choices": []})
        case "truncated":
            return Response(b'{"choices"', media_type="application/json", headers={"content-length": "4096"})
    await anyio.sleep(failure.hang_s or 0.0)
    headers = {} if failure.retry_after_s is None else {"retry-after": f"{failure.retry_after_s:g}"}
    message = failure.message or "scripted failure"
    return _error(failure.status or 504, message, code=failure.code, headers=headers)


def _error(
    status: int, message: str, *, code: str | None = None, headers: Mapping[str, str] | None = None
) -> "Response":
    body = {"error": {"message": message, "type": "scripted_model", "param": None, "code": code}}
    return _json(status, body, headers)


def _json(status: int, body: object, headers: Mapping[str, str] | None = None) -> "Response":
    from starlette.responses import Response

    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")


@contextmanager
def _recorder(path: Path | None) -> Iterator[Callable[[bytes], None]]:
    if path is None:
        yield lambda _: None
        return
    try:
        file: IO[bytes] = path.open("ab", buffering=0)
    except OSError as error:
        raise UserError(str(path), f"can't be written: {error.strerror}", "check the path") from error
    with file:
        yield lambda line: _write(file, line)


def _write(file: IO[bytes], line: bytes) -> None:
    file.write(line)


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise UserError(
            f"{host}:{port}", f"can't be listened on: {error.strerror}", "choose another"
        ) from error
    with listener:
        listener.setblocking(False)
        yield listener


def _server(app: "Starlette") -> Any:
    import uvicorn

    class Server(uvicorn.Server):
        """A server that leaves the process's signals to the process."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=int(CLOSE_TIMEOUT_S),
    )
    return Server(config)
