"""One connection to one MCP server: opened, kept and closed by one task, used by many.

The SDK's client lives inside cancel scopes that must be left by the task that entered them. So each
connection is a task of its own, which opens the client, says that it is ready, and waits to be told to close,
or for the server to be gone. Callers only exchange messages with it.

How a call can end without the server's answer, and what is then known of the world:
- no answer within the deadline -> `timeout`; the server was told to stop, but may have acted: uncertain
- the connection was lost in flight -> `connection_lost`, uncertain
- the request was refused before the tool ran (HTTP 401, 403, …) -> `connection_lost`, none
- nothing was sent (the connection had ended, the server forgot our session) -> `NotConnected`: try a new one
A tool without an effect leaves nothing uncertain.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, cast

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.session import ClientSession
from pydantic import TypeAdapter, ValidationError

from temporality.actors.executor.content import Raised, Result, shorten
from temporality.actors.executor.explanation import first_error, not_connected
from temporality.actors.executor.failures import NotConnected
from temporality.actors.executor.results import result_of
from temporality.actors.executor.streamable_http import HTTP_NOTE, HttpNote
from temporality.protocol.agent import Effect
from temporality.protocol.tool import EffectKnown

TOOL_PAGES_MAX = 100
"""A server whose list of tools never ends can't hang the one who asks."""
ERROR_CHARACTERS_MAX = 2_000
"""A server's error message is shown to a model; it may quote anything."""
WRITE_GRACE_S = 5.0
"""The SDK's clock starts when a request is written; a server that doesn't read its input is given so long."""
LAST_WORDS_S = 1.0
"""How long a caller whose connection was lost waits for the reason."""
REFUSED_STATUSES = frozenset({401, 403, 404, 405, 406, 415, 429})
"""HTTP refusals that come before any tool runs."""

_HTTP_STAND_INS = frozenset({types.INTERNAL_ERROR, types.METHOD_NOT_FOUND, types.INVALID_REQUEST})
"""What the SDK says in place of an HTTP status without a JSON-RPC error in the body."""
_CLIENT = types.Implementation(name="temporality", version="1")
_REPLY: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


class Transport(Protocol):
    """The way to a server: `gone` is set when it can't answer any more (always, if `loss_is_seen`)."""

    loss_is_seen: ClassVar[bool]

    @property
    def gone(self) -> anyio.Event: ...
    def connect(self) -> Any: ...
    async def last_words(self) -> str: ...


class Connection:
    """A client of one server; `run` is its task, `ended` is set when that task is over."""

    def __init__(self, transport: Transport, *, start_timeout_s: float) -> None:
        self.ended = anyio.Event()
        self._transport = transport
        self._start_timeout_s = start_timeout_s
        self._settled = anyio.Event()
        self._explained = anyio.Event()
        self._closing = anyio.Event()
        self._session: ClientSession | None = None
        self._failure = NotConnected("the connection was closed")

    async def run(self) -> None:
        """Open the client, keep it until `close` or until the server is gone, and close it."""
        scope = anyio.CancelScope(deadline=anyio.current_time() + self._start_timeout_s)
        note = HttpNote()
        HTTP_NOTE.set(note)
        failure: NotConnected | None = None
        try:
            with scope:
                async with Client(self._transport.connect(), cache=None, client_info=_CLIENT) as client:
                    scope.deadline = math.inf
                    self._session = client.session
                    self._settled.set()
                    await self._until_over()
                    self._session = None
                    if self._transport.gone.is_set():
                        await self._explain(NotConnected(""))
            if scope.cancelled_caught:
                failure = NotConnected(f"it did not answer the handshake within {self._start_timeout_s:g} s")
        except Exception as error:  # noqa: BLE001 - whatever ends a connection is told to its callers
            failure = not_connected(error, note)
        finally:
            self._session = None
            with anyio.CancelScope(shield=True):
                await self._explain(failure or NotConnected(""))
            self._settled.set()
            self.ended.set()

    async def _explain(self, failure: NotConnected) -> None:
        """Keep the first reason why the connection is over, for callers that wait for it."""
        if not self._explained.is_set():
            self._failure = failure.with_words(await self._transport.last_words())
            self._explained.set()

    async def _until_over(self) -> None:
        async with anyio.create_task_group() as waiting:

            async def wait(event: anyio.Event) -> None:
                await event.wait()
                waiting.cancel_scope.cancel()

            waiting.start_soon(wait, self._closing)
            waiting.start_soon(wait, self._transport.gone)

    def close(self) -> None:
        """Ask the connection's task to close it; returns at once."""
        self._closing.set()

    async def ready(self) -> None:
        """Wait until the server answered the handshake; raise `NotConnected` with the reason if it didn't."""
        await self._settled.wait()
        if self._session is None:
            raise self._failure

    @property
    def usable(self) -> bool:
        """Say whether calls can be made: opened, not closing, and the server is not known to be gone."""
        return self._session is not None and not self._closing.is_set() and not self._transport.gone.is_set()

    def _open_session(self) -> ClientSession:
        if self._session is None or not self.usable:
            raise self._failure
        return self._session

    async def tools(self, *, timeout_s: float) -> list[types.Tool]:
        """Ask for all tools of the server; raise `NotConnected` if it doesn't answer."""
        try:
            with anyio.fail_after(timeout_s):
                return await self._all_tools(self._open_session())
        except TimeoutError:
            raise NotConnected(f"it did not list its tools within {timeout_s:g} s") from None
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                return []  # a server without tools
            await self._reason_of_loss()
            if self._explained.is_set():
                raise self._failure from error
            raise NotConnected(f"it refused to list its tools: {_message(error)}") from error
        except ValidationError as error:
            raise NotConnected(f"its list of tools is malformed: {first_error(error)}") from error

    async def _all_tools(self, session: ClientSession) -> list[types.Tool]:
        found: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(TOOL_PAGES_MAX):
            page = await session.list_tools(
                params=types.PaginatedRequestParams(cursor=cursor) if cursor else None
            )
            found.extend(page.tools)
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, str],
        effect: Effect,
        timeout_s: float,
    ) -> Result:
        """Call a tool; whatever happens in flight becomes a result; `NotConnected`: nothing was sent.

        Cancelling tells the server to stop, and leaves it open whether it acted.
        """
        session = self._open_session()
        unsure: EffectKnown = "none" if effect == "none" else "uncertain"
        request = types.CallToolRequest(
            params=types.CallToolRequestParams(
                name=tool, arguments=dict(arguments), _meta=cast(types.RequestParamsMeta, dict(meta))
            )
        )
        note = HttpNote()
        token = HTTP_NOTE.set(note)
        try:
            with anyio.fail_after(timeout_s + WRITE_GRACE_S):
                return result_of(await self._sent(session, request, timeout_s))
        except TimeoutError:
            return _timed_out(timeout_s, unsure)
        except ValidationError as error:
            return Raised("tool_error", f"The server's reply is malformed: {first_error(error)}", unsure)
        except MCPError as error:
            return await self._failed(error, note, timeout_s, unsure)
        finally:
            HTTP_NOTE.reset(token)

    async def _sent(
        self, session: ClientSession, request: types.CallToolRequest, timeout_s: float
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Send a call; over HTTP a server may first want us to read again how a tool's headers are made."""
        try:
            return await session.send_request(request, _REPLY, request_read_timeout_seconds=timeout_s)
        except MCPError as error:
            if error.code != types.HEADER_MISMATCH:
                raise
            await self._all_tools(session)
            return await session.send_request(request, _REPLY, request_read_timeout_seconds=timeout_s)

    async def _failed(self, error: MCPError, note: HttpNote, timeout_s: float, unsure: EffectKnown) -> Result:
        if error.code == types.REQUEST_TIMEOUT:
            return _timed_out(timeout_s, unsure)
        if error.code in _HTTP_STAND_INS and (note.failure is not None or note.status is not None):
            return self._refused(error, note, unsure)
        if error.code == types.CONNECTION_CLOSED:
            return await self._lost(error, unsure)
        if error.code == types.METHOD_NOT_FOUND:
            return Raised("unknown_tool", _message(error))
        if error.code == types.INVALID_PARAMS:
            return Raised("invalid_arguments", _message(error))
        return Raised("tool_error", _message(error), unsure if error.code == types.PARSE_ERROR else "none")

    def _refused(self, error: MCPError, note: HttpNote, unsure: EffectKnown) -> Result:
        """Say what the network or the HTTP layer did to a request in place of an answer."""
        if note.status == 404 or note.never_sent:  # it was restarted, or is down
            self.close()
            raise not_connected(error, note)
        if note.failure is not None:
            what = f"The connection to the server was lost: {type(note.failure).__name__}"
            return Raised("connection_lost", what, unsure)
        text = f"The server answered HTTP {note.status}: {_message(error)}"
        return Raised("connection_lost", text, "none" if note.status in REFUSED_STATUSES else unsure)

    async def _lost(self, error: MCPError, unsure: EffectKnown) -> Result:
        if self._transport.loss_is_seen and not (self._transport.gone.is_set() or self.ended.is_set()):
            return Raised("tool_error", _message(error))  # the server's own error, with the same code
        await self._reason_of_loss()
        why = self._failure.why if self._explained.is_set() else _message(error)
        return Raised("connection_lost", f"The connection to the server was lost: {why}", unsure)

    async def _reason_of_loss(self) -> None:
        with anyio.move_on_after(LAST_WORDS_S):
            await self._explained.wait()


def _message(error: MCPError) -> str:
    return shorten(str(error), ERROR_CHARACTERS_MAX)


def _timed_out(timeout_s: float, unsure: EffectKnown) -> Result:
    return Raised("timeout", f"The tool did not answer within {timeout_s:g} s.", unsure)
