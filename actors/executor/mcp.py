"""MCP servers: one session for all who use the same server, or one for each run.

A session is found by what the server *is* (command, arguments, environment, or url and headers), not by what
an agent calls it; with `session: run` the run is part of the key. It is opened by the first call, closed when
idle, and opened again by the next call after its server died. A server that dies at every start costs one
attempt each `backoff`, growing from one second to thirty; calls in between fail at once, with its reason.

Limits of per-run sessions: they live in the executor that took the run's call, are closed when idle, and
another executor that takes the run's next call opens its own. With one executor that is a session per run;
with many it needs slots, which give each run's calls to one of them.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from temporality.actors.executor.content import Raised, Result
from temporality.actors.executor.failures import NotConnected
from temporality.actors.executor.settings import ExecutorSettings
from temporality.protocol.agent import Effect, McpServerSpec
from temporality.protocol.codec import encode_canonical
from temporality.protocol.errors import UserError
from temporality.protocol.identity import digest

if TYPE_CHECKING:
    import mcp_types as types

    from temporality.actors.executor.connection import Connection

BACKOFF_FIRST_S = 1.0
BACKOFF_MAX_S = 30.0
"""How long a server that could not be started is left alone, at first and at most."""
IDLE_CHECKS = 4
"""Idle sessions are looked for so often within the idle time."""


@dataclass
class _Session:
    """What is known of one server: its connection, who is using it, and how its last starts went."""

    opening: anyio.Lock = field(default_factory=anyio.Lock)
    connection: "Connection | None" = None
    users: int = 0
    used_at: float = 0.0
    failures: int = 0
    failed_at: float = 0.0
    failure: NotConnected | None = None

    def backoff_left_s(self, now: float) -> float:
        if not self.failures:
            return 0.0
        wait = min(BACKOFF_FIRST_S * 2.0 ** (self.failures - 1), BACKOFF_MAX_S)
        return max(0.0, self.failed_at + wait - now)


class McpSessions:
    """The sessions of one executor; usable while `run` runs."""

    def __init__(self, settings: ExecutorSettings) -> None:
        self._settings = settings
        self._tasks: TaskGroup | None = None
        self._sessions: dict[str, _Session] = {}

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the connections until cancelled, closing idle ones; then close all."""
        async with anyio.create_task_group() as self._tasks:
            task_status.started()
            await self._close_idle()

    async def call(
        self,
        key: str,
        spec: McpServerSpec,
        run: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, str],
        effect: Effect,
    ) -> Result:
        """Call `tool` of the server `key`; whatever happens, there is a result, within `read_timeout_s`
        after the server is up.

        A request that was never sent is tried once more on a new connection; nothing else is repeated.
        """
        failure = NotConnected("")
        for _ in range(2):
            try:
                async with self._connected(key, spec, run) as connection:
                    return await connection.call(
                        tool, arguments, meta=meta, effect=effect, timeout_s=spec.read_timeout_s
                    )
            except UserError as error:
                return Raised("connection_lost", str(error))
            except _Unreachable as error:
                return Raised("connection_lost", f"MCP server {key}: {error.why}")
            except NotConnected as error:
                failure = error
        return Raised("connection_lost", f"MCP server {key}: {failure.why}")

    async def tools(self, key: str, spec: McpServerSpec) -> "list[types.Tool]":
        """Return the tools of the server `key`; raise `UserError` saying why it can't be asked."""
        try:
            async with self._connected(key, spec, run="") as connection:
                return await connection.tools(timeout_s=spec.read_timeout_s)
        except NotConnected as error:
            raise UserError(f"tools.mcp.{key}", error.why, error.do or _advice(spec)) from error

    @asynccontextmanager
    async def _connected(self, key: str, spec: McpServerSpec, run: str) -> "AsyncIterator[Connection]":
        session = self._session(session_key(spec, run))
        session.users += 1
        try:
            async with session.opening:
                if session.connection is None or not session.connection.usable:
                    await self._open(session, key, spec)
            assert session.connection is not None
            yield session.connection
        finally:
            session.users -= 1
            session.used_at = anyio.current_time()

    def _session(self, session_key: str) -> _Session:
        if session_key not in self._sessions and len(self._sessions) >= self._settings.sessions_max:
            self._close_least_recently_used()
        return self._sessions.setdefault(session_key, _Session())

    async def _open(self, session: _Session, key: str, spec: McpServerSpec) -> None:
        """Open a connection, unless the server failed to start a moment ago."""
        now = anyio.current_time()
        if session.failure is not None and (left := session.backoff_left_s(now)) > 0:
            again = f"{session.failure.why} (next attempt in {left:.0f} s)"
            raise _Unreachable(again, session.failure.do)
        dial = await anyio.to_thread.run_sync(_client)
        connection = dial(key, spec, self._settings)
        assert self._tasks is not None, "sessions are usable while `run` runs"
        self._tasks.start_soon(connection.run)
        try:
            await connection.ready()
        except anyio.get_cancelled_exc_class():
            connection.close()
            raise
        except NotConnected as error:
            session.failures += 1
            session.failed_at = anyio.current_time()
            session.failure = error
            raise _Unreachable(error.why, error.do) from error
        session.connection, session.failures, session.failure = connection, 0, None

    def _close_least_recently_used(self) -> None:
        idle = [(session.used_at, name) for name, session in self._sessions.items() if not session.users]
        if not idle:
            limit = self._settings.sessions_max
            raise _Unreachable(
                f"all {limit} sessions of this executor are busy", "raise executor.sessions_max"
            )
        self._close(min(idle)[1])

    def _close(self, session_key: str) -> None:
        session = self._sessions.pop(session_key)
        if session.connection is not None:
            session.connection.close()

    async def _close_idle(self) -> None:
        while True:
            await anyio.sleep(self._settings.session_idle_s / IDLE_CHECKS)
            limit = anyio.current_time() - self._settings.session_idle_s
            for name, session in list(self._sessions.items()):
                if not session.users and session.used_at <= limit:
                    self._close(name)


class _Unreachable(NotConnected):
    """The server can't be had now; another attempt at once would not help."""


def _client() -> "Callable[[str, McpServerSpec, ExecutorSettings], Connection]":
    """Import the MCP client when it is first needed, in a thread: it takes a second, and many need none."""
    from temporality.actors.executor.dial import dial

    return dial


def session_key(spec: McpServerSpec, run: str) -> str:
    """Return what identifies a session: the server itself, and the run if it has one for each."""
    server = (spec.command, spec.args, spec.env, spec.url, spec.headers)
    return f"{digest(encode_canonical(server))}/{run if spec.session == 'run' else '*'}"


def _advice(spec: McpServerSpec) -> str:
    if spec.command is None:
        return f"check the server at {spec.url}"
    return (
        f"run `{' '.join([spec.command, *spec.args])[:200]}` by hand: it must speak MCP on stdin and stdout"
    )
