"""Adapter to OpenAI and every server that speaks its chat completions, by the official SDK.

The SDK is given the request as bytes: its own transform of messages costs 0.2 ms a message, every turn anew,
and would encode again what a run's earlier requests have encoded.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio
import msgspec

from temporality.actors.model.failures import status_failure
from temporality.actors.model.openai_reply import read_error, read_reply
from temporality.actors.model.provider import CallFailed, ModelReply, ModelRequest
from temporality.actors.model.references import VariableMissing, resolve
from temporality.protocol.agent import ModelSpec

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

BASE_URL: Final = "https://api.openai.com/v1"
KEY_VARIABLE: Final = "OPENAI_API_KEY"
NO_KEY: Final = "no-key"
"""Sent to a server of one's own for which no key is configured; such servers ignore it."""

CONNECT_TIMEOUT_S: Final = 10.0
CLIENTS_MAX: Final = 16
"""Connection pools kept open: one for each pair of server and key in use."""

RESERVED: Final = frozenset({"model", "messages", "tools", "stream", "stream_options", "n"})
"""Parameters of a request that an agent's `model.params` can't set: they are the model caller's own."""


class OpenAIProvider:
    """Ask OpenAI-compatible servers; one connection pool for each server and key."""

    def __init__(self, environment: Mapping[str, str], *, now: Callable[[], datetime]) -> None:
        self._environment = environment
        self._now = now
        self._clients: OrderedDict[tuple[str, str], AsyncOpenAI] = OrderedDict()
        self._sdk: ModuleType | None = None

    async def attempt(self, request: ModelRequest) -> ModelReply:
        """Send one request and read its reply; raises `CallFailed`. Ends within `request_timeout_s`."""
        await self._import_sdk()
        import openai

        spec = request.spec
        base_url, key = self._resolve(spec)
        body = request_body(request)
        client = await self._client(base_url, key)
        try:
            with anyio.fail_after(spec.request_timeout_s):
                answer: bytes = await client.post("/chat/completions", content=body, cast_to=bytes)
        except openai.APIStatusError as error:
            raise self._status_failure(error, key) from error
        except (openai.APITimeoutError, TimeoutError) as error:
            message = f"no reply from {place_of(base_url)} within {spec.request_timeout_s:g} s"
            raise CallFailed("timeout", message, retry="later") from error
        except openai.APIConnectionError as error:
            raise _connection_failure(base_url, error) from error
        except openai.OpenAIError as error:
            raise CallFailed("provider_error", f"{type(error).__name__}: {error}") from error
        failure = read_error(answer)
        if failure is not None:
            raise self._failure(_status_of(failure.code), failure.message, failure.code, {}, key)
        return read_reply(answer)

    async def reach(self, spec: ModelSpec) -> None:
        """Ask for the list of models; raises `CallFailed` unless the server answers and accepts the key."""
        await self._import_sdk()
        import openai

        base_url, key = self._resolve(spec)
        client = await self._client(base_url, key)
        try:
            await client.get("/models", cast_to=bytes)
        except openai.NotFoundError:
            return
        except openai.APIStatusError as error:
            raise self._status_failure(error, key) from error
        except openai.APIConnectionError as error:
            raise _connection_failure(base_url, error) from error

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        while self._clients:
            _, client = self._clients.popitem()
            await client.close()

    async def _import_sdk(self) -> None:
        """Import the SDK beside the loop: it takes seconds on a busy machine, and a delivery that sends no
        heartbeats meanwhile is delivered again, and the request is paid twice.
        """
        if self._sdk is None:
            self._sdk = await anyio.to_thread.run_sync(import_module, "openai")

    def _resolve(self, spec: ModelSpec) -> tuple[str, str]:
        """Return the server and the key; without one named, OpenAI's own key for OpenAI's own server."""
        try:
            base_url = resolve("model.base_url", spec.base_url or BASE_URL, self._environment)
            default = f"${{{KEY_VARIABLE}}}" if spec.base_url is None else NO_KEY
            return base_url, resolve("model.api_key", spec.api_key or default, self._environment)
        except VariableMissing as error:
            raise CallFailed(
                "unauthorized",
                str(error),
                do=f"set {error.name} in the environment of the model caller",
            ) from error

    async def _client(self, base_url: str, key: str) -> "AsyncOpenAI":
        from openai import AsyncOpenAI, Timeout

        client = self._clients.get((base_url, key))
        if client is None:
            client = AsyncOpenAI(
                api_key=key,
                base_url=base_url,
                max_retries=0,
                timeout=Timeout(None, connect=CONNECT_TIMEOUT_S),
            )
            self._clients[base_url, key] = client
        self._clients.move_to_end((base_url, key))
        while len(self._clients) > CLIENTS_MAX:
            _, oldest = self._clients.popitem(last=False)
            await oldest.close()
        return client

    def _status_failure(self, error: "APIStatusError", key: str) -> CallFailed:
        body = read_error(error.response.content)
        message = body.message if body and body.message else error.response.reason_phrase
        code = body.code if body else None
        return self._failure(error.status_code, message, code, error.response.headers, key)

    def _failure(
        self, status: int, message: str, code: str | int | None, headers: Mapping[str, str], key: str
    ) -> CallFailed:
        return status_failure(
            status,
            message=message.replace(key, "***"),
            code=str(code) if code is not None else None,
            headers=headers,
            now=self._now(),
        )


def request_body(request: ModelRequest) -> bytes:
    """Return the body of a request; the messages are joined, not encoded. Raises `CallFailed`."""
    reserved = sorted(RESERVED & request.spec.params.keys())
    if reserved:
        raise CallFailed(
            "refused", f"`model.params` can't set `{reserved[0]}`", do=f"remove `{reserved[0]}` from it"
        )
    fields = {"model": request.spec.name, **request.spec.params}
    head = msgspec.json.encode(fields)[:-1]
    tools = b',"tools":' + request.tools if request.tools else b""
    return b"".join((head, tools, b',"messages":[', b",".join(request.encoded), b"]}"))


def place_of(url: str) -> str:
    """Return scheme, host and port of a resolved address: its other parts may each hold a secret (A47)."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "`model.base_url`"
    if not host:
        return "`model.base_url`"
    named = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{named}" + (f":{port}" if port is not None else "")


def _connection_failure(base_url: str, error: Exception) -> CallFailed:
    cause = type(error.__cause__ or error).__name__
    return CallFailed(
        "connection",
        f"no connection to {place_of(base_url)}: {cause}",
        retry="backoff",
        do="check `model.base_url` and that the server runs",
    )


def _status_of(code: str | int | None) -> int:
    """Return the status that an error sent with status 200 names, else that of a bad gateway."""
    text = str(code)
    return int(text) if text.isdecimal() and 400 <= int(text) <= 599 else 502
