"""The SDK client's transport over HTTP, with a memory of what went wrong below it.

Two things are mended here. The SDK turns every HTTP refusal into one error ("Server returned an error
response"); the status is noted for the caller whose request it answered. And a request that fails on the
network ends the SDK's whole transport, with every other call in flight on it; here it gets an answer instead
(503, made up on the spot), so that it fails alone, and a note says whether it was ever sent.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from temporality.actors.executor.process import LINE_BYTES_MAX

CONNECT_TIMEOUT_S = 10.0
"""A server that doesn't take a connection by then is down."""

_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


@dataclass
class HttpNote:
    """What the HTTP layer saw of one request: a refusal's status, or a failure of the network."""

    status: int | None = None
    failure: httpx2.TransportError | None = None

    @property
    def never_sent(self) -> bool:
        """Say whether the request surely did not reach the server."""
        return isinstance(self.failure, _NEVER_SENT)


HTTP_NOTE: ContextVar[HttpNote | None] = ContextVar("http_note", default=None)
"""The SDK's transport sends each message in its sender's context; so a response finds its caller's note."""


class _Client(httpx2.AsyncClient):
    """An HTTP client whose requests always get a response; what it stands for is in the caller's note."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        note = HTTP_NOTE.get() or HttpNote()
        try:
            response = await super().send(request, **options)
            if response.status_code >= 400:
                note.status = response.status_code
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                await response.aread()
        except httpx2.TransportError as error:
            note.failure = error
            return httpx2.Response(503, request=request)
        return response


@dataclass
class HttpTransport:
    """Speaks streamable HTTP with a server."""

    url: str
    headers: Mapping[str, str]
    loss_is_seen: ClassVar[bool] = False
    gone: anyio.Event = field(default_factory=anyio.Event)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[Any, Any]]:
        """Keep an HTTP client while the context lasts."""
        timeout = httpx2.Timeout(CONNECT_TIMEOUT_S, read=None)  # every request has a deadline of its own
        async with (
            _Client(
                headers=dict(self.headers), timeout=timeout, trust_env=not _is_loopback(self.url)
            ) as client,
            streamable_http_client(
                self.url, http_client=client, max_sse_event_size=LINE_BYTES_MAX
            ) as streams,
        ):
            yield streams

    async def last_words(self) -> str:
        """Say nothing: what HTTP knows is in the note."""
        return ""


def _is_loopback(url: str) -> bool:
    """Say whether a URL is on this machine, where no proxy of the environment must come between."""
    return httpx2.URL(url).host in {"127.0.0.1", "::1", "localhost"}
