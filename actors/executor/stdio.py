"""The SDK client's transport over a child process: lines in, lines out, and what became of the child.

The connection is told what an error of the SDK doesn't say: how the child ended, what it printed before, and
that it printed something on stdout that is no message.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from temporality.actors.executor.content import encodable, shorten
from temporality.actors.executor.process import LINE_BYTES_MAX, ChildProcess
from temporality.actors.redaction import redact

JUNK_CHARACTERS_MAX = 200
"""How much of the first line that is no message is shown: enough to recognise a banner or an error."""
JUNK_BYTES_READ_MAX = 8_192
"""How much of it is searched for secrets before it is shortened."""
JUNK_LINES_MAX = 200
"""A program that prints so many of them before its first message is no MCP server."""
STDERR_SHOWN_CHARACTERS_MAX = 600
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
        return types.jsonrpc_message_adapter.validate_json(encodable(repaired), by_name=False)
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
