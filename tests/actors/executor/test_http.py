"""MCP servers over streamable HTTP: the same calls, and the ways in which HTTP says no."""

import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio.abc import Process, SocketAttribute, SocketStream
from anyio.streams.memory import MemoryObjectReceiveStream

from temporality.actors.executor.content import Raised, Result, Returned
from temporality.actors.executor.mcp import McpSessions
from temporality.actors.executor.settings import ExecutorSettings
from temporality.protocol.agent import Effect, McpServerSpec
from temporality.protocol.errors import UserError

SERVERS = Path(__file__).with_name("servers")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def server_on(port: int, *command: str, ledger: Path) -> AsyncIterator[Process]:
    """Run a server until the context is left; connections wait in its socket until it takes them."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        descriptor = listening.fileno()
        process = await anyio.open_process(
            [sys.executable, *command, str(descriptor)],
            env={**os.environ, "LEDGER": str(ledger)},
            pass_fds=[descriptor],
            stdout=None,
            stderr=None,
        )
    async with process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()


@pytest.fixture(scope="module")
async def official(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[int]:
    """Run the SDK's own server, which takes long to start and so does it once; gives its port."""
    port, ledger = free_port(), tmp_path_factory.mktemp("official") / "ledger"
    async with server_on(port, str(SERVERS / "tools.py"), "http", ledger=ledger):
        yield port


@asynccontextmanager
async def plain(port: int, ledger: Path) -> AsyncIterator[None]:
    """Run a server that starts at once, to be killed."""
    async with server_on(port, str(SERVERS / "plain_http.py"), ledger=ledger):
        yield


@asynccontextmanager
async def answering(response: bytes) -> AsyncIterator[str]:
    """Answer every HTTP request on a port of its own with the same bytes."""

    async def serve(client: SocketStream) -> None:
        async with client:
            request = b""
            while b"\r\n\r\n" not in request:
                request += await client.receive()
            await client.send(response)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield f"http://127.0.0.1:{port}/mcp"
        tasks.cancel_scope.cancel()


@dataclass
class Wire:
    """One TCP connection to a server, which a test may cut; counts the requests that went through."""

    client: SocketStream
    requests: int = 0
    news: anyio.Event = field(default_factory=anyio.Event)

    async def carry(self, port: int) -> None:
        async with (
            self.client,
            await anyio.connect_tcp("127.0.0.1", port) as server,
            anyio.create_task_group() as both,
        ):

            async def forward(source: SocketStream, target: SocketStream, *, asks: bool) -> None:
                try:
                    async for data in source:
                        await target.send(data)
                        if asks and b"tools/call" in data:
                            self.requests += 1
                            self.news.set()
                            self.news = anyio.Event()
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    pass
                both.cancel_scope.cancel()

            both.start_soon(lambda: forward(self.client, server, asks=True))
            both.start_soon(lambda: forward(server, self.client, asks=False))

    async def carried(self, requests: int) -> None:
        """Wait until that many calls have been sent through this connection."""
        with anyio.fail_after(20):
            while self.requests < requests:
                await self.news.wait()


@asynccontextmanager
async def wire_to(port: int) -> AsyncIterator[tuple[str, MemoryObjectReceiveStream[Wire]]]:
    """Stand between clients and the server on `port`; gives the url, and each connection as it is made."""
    made, wires = anyio.create_memory_object_stream[Wire](100)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")

    async def serve(client: SocketStream) -> None:
        wire = Wire(client)
        made.send_nowait(wire)
        await wire.carry(port)

    async with listener, made, wires, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/mcp", wires
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def sessions() -> AsyncIterator[McpSessions]:
    mcp = McpSessions(ExecutorSettings(environment={"KEY": "k3y"}))
    async with anyio.create_task_group() as tasks:
        await tasks.start(mcp.run)
        yield mcp
        tasks.cancel_scope.cancel()


async def call(
    mcp: McpSessions, spec: McpServerSpec, tool: str, *, effect: Effect = "once", **arguments: object
) -> Result:
    return await mcp.call("web", spec, "run-1", tool, arguments, meta={}, effect=effect)


async def test_calls_over_http_are_like_calls_over_stdio(official: int) -> None:
    spec = McpServerSpec(url=f"http://127.0.0.1:{official}/mcp")
    async with sessions() as mcp:
        assert await call(mcp, spec, "echo", text="hi") == Returned("hi", data={"result": "hi"})
        failed = await call(mcp, spec, "fail", text="no such row")
        assert isinstance(failed, Raised)
        assert (failed.error_class, failed.effect) == ("tool_error", "none")
        hung = await call(mcp, msgspec.structs.replace(spec, read_timeout_s=0.3), "hang")
        assert isinstance(hung, Raised)
        assert (hung.error_class, hung.effect) == ("timeout", "uncertain")
        assert (await call(mcp, spec, "big", size=2_000_000)).text == "x" * 2_000_000
        assert {tool.name for tool in await mcp.tools("web", spec)} >= {"echo", "pay"}


async def test_server_that_dies_in_a_call_leaves_doubt_and_its_successor_serves_the_next(
    tmp_path: Path,
) -> None:
    port = free_port()
    spec = McpServerSpec(url=f"http://127.0.0.1:{port}/mcp")
    async with sessions() as mcp:
        async with plain(port, tmp_path / "ledger"):
            await call(mcp, spec, "echo", text="hi")
            died = await call(mcp, spec, "die")
            assert isinstance(died, Raised)
            assert (died.error_class, died.effect) == ("connection_lost", "uncertain")
        async with plain(port, tmp_path / "ledger"):
            assert isinstance(await call(mcp, spec, "echo", text="again"), Returned)


async def test_call_that_was_never_sent_leaves_no_doubt(tmp_path: Path) -> None:
    port = free_port()
    spec = McpServerSpec(url=f"http://127.0.0.1:{port}/mcp")
    async with sessions() as mcp:
        async with plain(port, tmp_path / "ledger"):
            await call(mcp, spec, "echo", text="hi")
        refused = await call(mcp, spec, "pay")
        assert isinstance(refused, Raised)
        assert (refused.error_class, refused.effect) == ("connection_lost", "none")
        assert "nothing answers there" in refused.text


async def test_call_whose_connection_is_cut_fails_alone(official: int) -> None:
    async with (
        sessions() as mcp,
        wire_to(official) as (url, wires),
        anyio.create_task_group() as tasks,
    ):
        spec = McpServerSpec(url=url)
        results: list[Result] = []

        async def hang() -> None:
            results.append(await call(mcp, spec, "hang"))

        await call(mcp, spec, "echo", text="hi")
        first = await wires.receive()  # one connection serves all calls that come one after another
        tasks.start_soon(hang)
        await first.carried(2)
        tasks.start_soon(hang)
        second = await wires.receive()
        await second.carried(1)
        await second.client.aclose()
        with anyio.fail_after(20):
            while not results:
                await anyio.lowlevel.checkpoint()
        (cut,) = results
        assert isinstance(cut, Raised)
        assert (cut.error_class, cut.effect) == ("connection_lost", "uncertain")
        assert isinstance(await call(mcp, spec, "echo", text="again"), Returned)
        assert len(results) == 1
        tasks.cancel_scope.cancel()


async def test_server_that_is_not_there_is_told_in_one_line_without_doubt_about_the_effect() -> None:
    spec = McpServerSpec(url=f"http://127.0.0.1:{free_port()}/mcp")
    async with sessions() as mcp:
        with pytest.raises(UserError, match=r"tools\.mcp\.web: no connection: nothing answers there"):
            await mcp.tools("web", spec)
        failed = await call(mcp, spec, "pay")
        assert isinstance(failed, Raised)
        assert (failed.error_class, failed.effect) == ("connection_lost", "none")


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ("401 Unauthorized", r"HTTP 401 — check the server's headers"),
        ("403 Forbidden", r"HTTP 403 — check the server's headers"),
        ("404 Not Found", r"HTTP 404 — check the url"),
        ("500 Internal Server Error", r"HTTP 500 — check the server's log"),
    ],
)
async def test_refusal_at_the_start_names_the_status_and_what_to_check(status: str, line: str) -> None:
    response = f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()
    async with answering(response) as url, sessions() as mcp:
        with pytest.raises(UserError, match=line) as failure:
            await mcp.tools("web", McpServerSpec(url=url, headers={"Authorization": "Bearer ${KEY}"}))
        assert "k3y" not in str(failure.value)


async def test_something_that_is_no_http_server_is_told() -> None:
    async with answering(b"SSH-2.0-OpenSSH_9.6\r\n") as url, sessions() as mcp:
        with pytest.raises(UserError, match="does not speak HTTP as expected"):
            await mcp.tools("web", McpServerSpec(url=url))


async def test_missing_variable_of_a_header_is_named() -> None:
    spec = McpServerSpec(url="http://127.0.0.1:1/mcp", headers={"Authorization": "Bearer ${ABSENT}"})
    async with sessions() as mcp:
        with pytest.raises(UserError, match=r"headers\.Authorization: the variable ABSENT is not set"):
            await mcp.tools("web", spec)
