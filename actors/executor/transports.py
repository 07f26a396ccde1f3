"""Transports of the MCP SDK's client: a child process's lines, and HTTP with a memory of refusals.

Both tell the connection what the SDK's error doesn't say: how the child ended and what it printed before, and
which HTTP status stands behind "Server returned an error response".
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar

import anyio
import httpx2
import mcp_types as types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from temporality.actors.executor.content import clean, shorten
from temporality.actors.executor.process import LINE_BYTES_MAX, ChildProcess
from temporality.actors.redaction import redact

JUNK_CHARACTERS_MAX = 200
"""How much of the first line that is no message is shown: enough to recognise a banner or an error."""
JUNK_BYTES_READ_MAX = 8_192
"""How much of it is searched for secrets before it is shortened."""
JUNK_LINES_MAX = 200
"""A program that prints so many of them before its first message is no MCP server."""
STDERR_SHOWN_CHARACTERS_MAX = 600
CONNECT_TIMEOUT_S = 10.0
"""A server that doesn't take a connection by then is down."""

Streams = tuple[Any, Any]


def parse_line(line: bytes) -> types.JSONRPCMessage | None:
    """Return the message on a line, None if there is none.

    A message whose text has bytes that are no UTF-8, or halves of surrogate pairs, is repaired: the SDK's
    parser would drop it, and the call that it answers would hang until its deadline.
    """
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        repaired = json.dumps(json.loads(line.decode(errors="replace")), ensure_ascii=False)
        return types.jsonrpc_message_adapter.validate_json(clean(repaired), by_name=False)
    except (ValueError, RecursionError):
        return None


@dataclass
class StdioTransport:
    """Starts a server and speaks JSON-RPC lines with it; `gone` is set when it can't answer any more."""

    command: Sequence[str]
    environment: Mapping[str, str]
    loss_is_seen: ClassVar[bool] = True
    gone: anyio.Event = field(default_factory=anyio.Event)
    junk: str | None = None
    _junk_lines: int = 0
    _child: ChildProcess | None = None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Streams]:
        """Run the server while the context lasts; raise `OSError` if it can't be started."""
        child = self._child = await ChildProcess.start(self.command, self.environment)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with anyio.create_task_group() as pumps, to_client, from_server, to_server, from_client:
                pumps.start_soon(self._read, child, to_client)
                pumps.start_soon(self._write, child, from_client)
                try:
                    yield from_server, to_server
                finally:
                    pumps.cancel_scope.cancel()
        finally:
            await child.end()

    async def _read(self, child: ChildProcess, to_client: Any) -> None:
        async with to_client:
            try:
                async for line in child.lines:
                    child.taken()
                    message = parse_line(line)
                    if message is not None:
                        self._junk_lines = 0
                        await to_client.send(SessionMessage(message))
                    elif line.strip() and self._is_junk(line):
                        return
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # the client is closing
            finally:
                self.gone.set()  # before the client learns it, so that callers can tell a loss from an error

    def _is_junk(self, line: bytes) -> bool:
        """Note a line that is no message; say whether it is one too many."""
        if self.junk is None:
            shown = redact(line[:JUNK_BYTES_READ_MAX].decode(errors="replace").strip()).text
            self.junk = shorten(shown, JUNK_CHARACTERS_MAX)
        self._junk_lines += 1
        return self._junk_lines >= JUNK_LINES_MAX

    async def _write(self, child: ChildProcess, from_client: Any) -> None:
        try:
            async for item in from_client:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await child.write(text.encode() + b"\n")
        except BrokenPipeError:
            self.gone.set()

    async def last_words(self) -> str:
        """Say what became of the server: how it ended, what it printed on stderr and, wrongly, on stdout."""
        said = []
        if self._child is not None:
            if self._child.overlong:
                said.append(f"it printed a line over {LINE_BYTES_MAX} bytes")
            elif self.gone.is_set():
                with anyio.move_on_after(1.0):
                    await self._child.exited.wait()
                said.append(_ending(self._child.returncode))
        if self.junk is not None:
            said.append(f"it printed something that is not JSON-RPC on stdout: {self.junk!r}")
        stderr = redact(self._child.stderr_tail()).text if self._child else ""
        if stderr:
            said.append(f"its stderr ends with: {_last_lines(stderr)!r}")
        return "; ".join(said)


def _ending(returncode: int | None) -> str:
    if returncode is None:
        return "it closed its output"
    return (
        f"it was ended by signal {-returncode}" if returncode < 0 else f"it exited with status {returncode}"
    )


def _last_lines(text: str) -> str:
    return text if len(text) <= STDERR_SHOWN_CHARACTERS_MAX else f"… {text[-STDERR_SHOWN_CHARACTERS_MAX:]}"


@dataclass
class HttpNote:
    """What the HTTP layer saw while one request was served."""

    status: int | None = None


HTTP_NOTE: ContextVar[HttpNote | None] = ContextVar("http_note", default=None)
"""The SDK's transport sends each message in its sender's context; so the response finds its caller's note."""


async def _note_refusal(response: httpx2.Response) -> None:
    note = HTTP_NOTE.get()
    if note is not None and response.status_code >= 400:
        note.status = response.status_code


def _is_loopback(url: str) -> bool:
    """Say whether a URL is on this machine, where no proxy of the environment must come between."""
    return httpx2.URL(url).host in {"127.0.0.1", "::1", "localhost"}


@dataclass
class HttpTransport:
    """Speaks streamable HTTP with a server; `gone` is set when its session is over."""

    url: str
    headers: Mapping[str, str]
    loss_is_seen: ClassVar[bool] = False
    gone: anyio.Event = field(default_factory=anyio.Event)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Streams]:
        """Keep an HTTP client while the context lasts; a server that can't be reached ends the context."""
        timeout = httpx2.Timeout(CONNECT_TIMEOUT_S, read=None)  # every request has a deadline of its own
        async with (
            httpx2.AsyncClient(
                headers=dict(self.headers),
                timeout=timeout,
                event_hooks={"response": [_note_refusal]},
                trust_env=not _is_loopback(self.url),
            ) as client,
            streamable_http_client(
                self.url, http_client=client, max_sse_event_size=LINE_BYTES_MAX
            ) as streams,
        ):
            yield streams

    async def last_words(self) -> str:
        """Say nothing: what HTTP knows is in the error."""
        return ""
