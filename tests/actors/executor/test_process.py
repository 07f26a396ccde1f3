"""A child process as lines, on both event loops that the executor may run on."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from temporality.actors.executor.process import LINES_WAITING_MAX, STDERR_BYTES_MAX, ChildProcess

LINE_BYTES = 1_000
CHUNK_BYTES_MAX = 262_144
"""The most that an event loop reads from a pipe at once."""


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


@asynccontextmanager
async def running(*command: str) -> AsyncIterator[ChildProcess]:
    """Run a child until the context is left."""
    child = await ChildProcess.start(command, os.environ)
    try:
        yield child
    finally:
        await child.end()


async def test_lines_come_whole_and_end_with_the_child() -> None:
    async with running(sys.executable, "-c", "print('one'); print('two', end='')") as child:
        assert [line async for line in child.lines] == [b"one"]  # a line without its end is no line
    assert child.returncode == 0


async def test_what_is_written_reaches_the_child() -> None:
    async with running("cat") as child:
        await child.write(b"x" * 1_000_000 + b"\n")
        assert await anext(child.lines) == b"x" * 1_000_000
    with pytest.raises(BrokenPipeError):
        await child.write(b"too late\n")


async def test_child_that_nobody_reads_has_to_wait() -> None:
    script = f"while True: print('x' * {LINE_BYTES - 1}, flush=True)"
    async with running(sys.executable, "-c", script) as child:
        with anyio.fail_after(30):
            while len(child.lines) <= LINES_WAITING_MAX:
                await anyio.lowlevel.checkpoint()
            for _ in range(2_000):
                await anyio.lowlevel.checkpoint()
        assert len(child.lines) <= LINES_WAITING_MAX + CHUNK_BYTES_MAX // LINE_BYTES
        with anyio.fail_after(30):
            for _ in range(5 * LINES_WAITING_MAX):
                await anext(child.lines)
                child.taken()


async def test_end_of_stderr_is_kept_and_no_more() -> None:
    script = "import sys; sys.stderr.write('a' * 1_000_000 + 'the reason')"
    async with running(sys.executable, "-c", script) as child:
        assert [line async for line in child.lines] == []
    assert len(child.stderr_tail()) == STDERR_BYTES_MAX
    assert child.stderr_tail().endswith("the reason")
