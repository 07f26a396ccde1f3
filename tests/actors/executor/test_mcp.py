"""MCP servers as they are: real processes over stdio, many misbehaving, and what becomes of a call."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from temporality.actors.executor.content import Raised, Result, Returned
from temporality.actors.executor.mcp import McpSessions
from temporality.actors.executor.settings import ExecutorSettings
from temporality.protocol.agent import Effect, McpServerSpec
from temporality.protocol.errors import UserError

SERVERS = Path(__file__).with_name("servers")
Ask = Callable[..., Awaitable[Result]]


def spec_of(server: str, *arguments: str, **changes: Any) -> McpServerSpec:
    return McpServerSpec(command=sys.executable, args=(str(SERVERS / server), *arguments), **changes)


TOOLS = spec_of("tools.py", "stdio")
PLAIN = spec_of("plain.py")


@asynccontextmanager
async def sessions(**changes: Any) -> AsyncIterator[McpSessions]:
    settings = ExecutorSettings(**{"environment": os.environ, **changes})
    mcp = McpSessions(settings)
    async with anyio.create_task_group() as tasks:
        await tasks.start(mcp.run)
        yield mcp
        tasks.cancel_scope.cancel()


@pytest.fixture(scope="module")
async def official() -> AsyncIterator[Ask]:
    """Call tools of the SDK's own server, which takes long to start and so does it once."""
    async with sessions() as mcp:
        yield partial(call, mcp, spec=TOOLS)


async def call(
    mcp: McpSessions,
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    spec: McpServerSpec = PLAIN,
    run: str = "run-1",
    effect: Effect = "once",
    meta: Mapping[str, str] | None = None,
) -> Result:
    return await mcp.call("srv", spec, run, tool, arguments or {}, meta=meta or {}, effect=effect)


async def ended(process: int) -> None:
    """Wait until a process is over."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        with anyio.fail_after(20):
            await anyio.wait_readable(handle)
    finally:
        os.close(handle)


async def test_text_of_a_reply_is_its_content_and_structure_its_data(official: Ask) -> None:
    assert await official("echo", {"text": "héllo"}) == Returned("héllo", data={"result": "héllo"})
    table = await official("table")
    assert isinstance(table, Returned)
    assert table.data == {"rows": 3}


async def test_what_is_not_text_is_told_beside_the_text(official: Ask) -> None:
    reply = await official("picture")
    assert isinstance(reply, Returned)
    assert reply.text == "first\nsecond"
    assert reply.visual == [
        {"type": "image", "mime_type": "image/png", "bytes": 3},
        {"type": "resource_link", "uri": "file:///log.txt", "name": "log"},
    ]


async def test_error_reported_by_the_tool_is_tool_error_without_doubt_about_the_effect(official: Ask) -> None:
    failed = await official("fail", {"text": "no such row"})
    assert isinstance(failed, Raised)
    assert (failed.error_class, failed.effect) == ("tool_error", "none")
    assert "no such row" in failed.text


async def test_tool_that_does_not_answer_times_out_and_the_session_goes_on(official: Ask) -> None:
    hasty = spec_of("tools.py", "stdio", read_timeout_s=0.2)
    before = await official("process")
    hung = await official("hang", spec=hasty, effect="once")
    assert isinstance(hung, Raised)
    assert (hung.error_class, hung.effect) == ("timeout", "uncertain")
    harmless = await official("hang", spec=hasty, effect="none")
    assert isinstance(harmless, Raised)
    assert (harmless.error_class, harmless.effect) == ("timeout", "none")
    assert await official("process") == before


async def test_megabytes_of_reply_arrive_whole(official: Ask) -> None:
    reply = await official("big", {"size": 3_000_000})
    assert reply.text == "x" * 3_000_000


async def test_trace_context_reaches_the_server(official: Ask) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert (await official("trace", meta={"traceparent": parent})).text == parent


async def test_server_that_dies_in_a_call_leaves_doubt_and_is_started_again_by_the_next(
    tmp_path: Path,
) -> None:
    spec = spec_of("plain.py", env={"LEDGER": str(tmp_path / "ledger")})
    async with sessions() as mcp:
        before = await call(mcp, "process", spec=spec)
        died = await call(mcp, "die", spec=spec, effect="once")
        assert isinstance(died, Raised)
        assert (died.error_class, died.effect) == ("connection_lost", "uncertain")
        assert "exited with status 3" in died.text
        assert "about to die" in died.text
        harmless = await call(mcp, "die", spec=spec, effect="none")
        assert isinstance(harmless, Raised)
        assert harmless.effect == "none"
        after = await call(mcp, "process", spec=spec)
        assert isinstance(after, Returned)
        assert after != before


async def test_server_that_died_between_calls_is_started_again() -> None:
    async with sessions() as mcp:
        before = await call(mcp, "process")
        assert isinstance(before, Returned)
        os.kill(int(before.text), signal.SIGKILL)
        await ended(int(before.text))
        after = await call(mcp, "process")
        while isinstance(after, Raised) and after.error_class == "connection_lost":
            after = await call(mcp, "process")  # the call may have been under way when the end was seen
        assert isinstance(after, Returned)
        assert after.text != before.text


async def test_same_server_is_shared_by_all_who_describe_it_alike() -> None:
    async with sessions() as mcp:
        one = await call(mcp, "process", run="run-1")
        other_timeout = spec_of("plain.py", read_timeout_s=5)
        assert await call(mcp, "process", run="run-2", spec=other_timeout) == one
        own_environment = spec_of("plain.py", env={"A": "b"})
        assert await call(mcp, "process", spec=own_environment) != one


async def test_session_of_a_run_is_its_own() -> None:
    spec = spec_of("plain.py", session="run")
    async with sessions() as mcp:
        one = await call(mcp, "process", run="run-1", spec=spec)
        assert await call(mcp, "process", run="run-1", spec=spec) == one
        assert await call(mcp, "process", run="run-2", spec=spec) != one


async def test_calls_of_one_session_run_at_the_same_time() -> None:
    spec = spec_of("plain.py", read_timeout_s=20)
    async with sessions() as mcp, anyio.create_task_group() as tasks:
        await call(mcp, "process", spec=spec)
        tasks.start_soon(lambda: call(mcp, "hang", spec=spec))
        assert await call(mcp, "echo", {"text": "past it"}, spec=spec) == Returned("past it")
        tasks.cancel_scope.cancel()


async def test_session_beyond_the_limit_replaces_the_one_that_was_idle_longest() -> None:
    spec = spec_of("plain.py", session="run")
    async with sessions(sessions_max=2) as mcp:
        first = await call(mcp, "process", run="a", spec=spec)
        second = await call(mcp, "process", run="b", spec=spec)
        await call(mcp, "process", run="c", spec=spec)
        assert await call(mcp, "process", run="b", spec=spec) == second
        assert await call(mcp, "process", run="a", spec=spec) != first


async def test_idle_session_is_closed() -> None:
    async with sessions(session_idle_s=0.2) as mcp:
        before = await call(mcp, "process")
        assert isinstance(before, Returned)
        await ended(int(before.text))


async def test_server_gets_its_own_environment_and_resolved_secrets_only() -> None:
    surroundings = {**os.environ, "OTHER_SECRET": "x", "MY_TOKEN": "s3cr3t-value"}
    spec = spec_of("plain.py", env={"TOKEN": "${MY_TOKEN}"})
    async with sessions(environment=surroundings) as mcp:
        assert isinstance(names := await call(mcp, "environment", spec=spec), Returned)
        assert "TOKEN" in names.text.split()
        assert not {"OTHER_SECRET", "MY_TOKEN"} & set(names.text.split())
        assert (await call(mcp, "secret", spec=spec)).text == "12 True"


async def test_missing_variable_is_named_and_nothing_is_started() -> None:
    spec = spec_of("plain.py", env={"TOKEN": "${GIT_TOKEN}"})
    async with sessions(environment={"PATH": "/usr/bin"}) as mcp:
        failed = await call(mcp, "secret", spec=spec)
        assert isinstance(failed, Raised)
        assert (failed.error_class, failed.effect) == ("connection_lost", "none")
        assert "GIT_TOKEN is not set" in failed.text
        with pytest.raises(UserError, match=r"tools\.mcp\.srv\.env\.TOKEN: the variable GIT_TOKEN"):
            await mcp.tools("srv", spec)


async def test_command_that_is_not_there_is_named_with_what_to_do() -> None:
    async with sessions() as mcp:
        with pytest.raises(
            UserError,
            match=r"command not found: mcp-server-nowhere — install it or fix tools\.mcp\.srv\.command",
        ):
            await mcp.tools("srv", McpServerSpec(command="mcp-server-nowhere"))


async def test_command_that_is_not_allowed_is_refused() -> None:
    async with sessions(allow_commands=("python",)) as mcp:
        with pytest.raises(UserError, match=r"may not start .*allow_commands"):
            await mcp.tools("srv", PLAIN)
    async with sessions(allow_commands=(sys.executable,)) as mcp:
        assert await mcp.tools("srv", PLAIN)


@pytest.mark.parametrize(
    ("mode", "timeout_s", "line"),
    [
        pytest.param("dies", 30, r"exited with status 7; .*cannot open the config file", id="dies at start"),
        pytest.param("hangs", 0.2, r"did not answer the handshake within 0\.2 s", id="hangs at start"),
        pytest.param("junk", 1, r"not JSON-RPC on stdout: 'Listening on port 80'", id="prints junk"),
    ],
)
async def test_server_that_does_not_start_is_explained_in_one_line(
    mode: str, timeout_s: float, line: str
) -> None:
    async with sessions(start_timeout_s=timeout_s) as mcp:
        with pytest.raises(UserError, match=line) as failure:
            await mcp.tools("srv", spec_of("misbehaving.py", mode))
        assert "\n" not in str(failure.value)
        assert failure.value.where == "tools.mcp.srv"


async def test_server_that_prints_junk_without_end_is_not_waited_for() -> None:
    async with sessions(start_timeout_s=50) as mcp:
        with pytest.raises(UserError, match=r"not JSON-RPC on stdout: 'no message'") as failure:
            await mcp.tools("srv", spec_of("misbehaving.py", "floods"))
        assert "handshake within" not in failure.value.what


async def test_server_that_dies_at_every_start_fails_the_next_call_at_once() -> None:
    spec = spec_of("misbehaving.py", "dies")
    async with sessions() as mcp:
        first = await call(mcp, "t", spec=spec)
        assert isinstance(first, Raised)
        assert (first.error_class, first.effect) == ("connection_lost", "none")
        second = await call(mcp, "t", spec=spec)
        assert "exited with status 7" in second.text
        assert "next attempt in" in second.text


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        pytest.param("banner", "fine", id="a banner before the handshake is passed over"),
        pytest.param("bytes", "a\ufffd\ufffdb", id="bytes that are no UTF-8 are replaced"),
        pytest.param("surrogates", "a\ufffdb \U0001f600", id="half a character is replaced"),
    ],
)
async def test_reply_survives(mode: str, text: str) -> None:
    async with sessions() as mcp:
        assert await call(mcp, "t", spec=spec_of("misbehaving.py", mode)) == Returned(text)


async def test_servers_own_error_is_not_taken_for_a_lost_connection() -> None:
    async with sessions() as mcp:
        failed = await call(mcp, "t", spec=spec_of("misbehaving.py", "code"))
        assert failed == Raised("tool_error", "quota exceeded", "none")


async def test_line_without_end_loses_the_connection_and_not_our_memory() -> None:
    async with sessions() as mcp:
        failed = await call(mcp, "t", spec=spec_of("misbehaving.py", "endless"))
        assert isinstance(failed, Raised)
        assert (failed.error_class, failed.effect) == ("connection_lost", "uncertain")
        assert "a line over" in failed.text


@pytest.mark.parametrize("mode", ["stubborn", "banner"])
async def test_whatever_a_server_started_ends_with_it_even_if_it_does_not_want_to(
    mode: str, tmp_path: Path
) -> None:
    server = f"{sys.executable} {SERVERS}/misbehaving.py {mode}"
    spec = McpServerSpec(
        command="sh", args=("-c", f"sleep 600 & echo $! > {tmp_path}/descendant; exec {server}")
    )
    async with sessions() as mcp:
        assert await call(mcp, "t", spec=spec) == Returned("fine")
    await ended(int(await anyio.Path(tmp_path / "descendant").read_text(encoding="utf-8")))


async def test_no_server_outlives_the_executor() -> None:
    async with sessions() as mcp:
        process = await call(mcp, "process")
        assert isinstance(process, Returned)
    with pytest.raises(ProcessLookupError):
        os.kill(int(process.text), 0)
