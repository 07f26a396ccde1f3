"""A server's child process as two streams of lines, bounded whatever the child does.

The MCP SDK has a stdio transport, but it trusts the child: a line without end is collected for ever, a byte
that is no UTF-8 ends the connection, and stderr goes to ours. Here every buffer has a limit, stderr is kept
for the one moment when somebody needs it (the child died), and the end of the child is an event.
"""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import cast

import anyio

from temporality.actors.bus.mailbox import Mailbox

LINE_BYTES_MAX = 64 * 1024 * 1024
"""A longer line is no message of a sane server; it is where memory would go."""
LINES_WAITING_MAX = 256
"""When so many lines wait for their reader, the child's pipe is left to fill, so that the child waits too."""
STDERR_BYTES_MAX = 8_192
"""The end of stderr that is kept, for the report of a death."""
EXIT_GRACE_S = 2.0
"""Time for a child to end by itself after its stdin was closed, then after SIGTERM."""
LAST_WORDS_S = 0.2
"""After a child's end its pipe may stay open in a grandchild; what was written arrives within this time."""


class ChildProcess(asyncio.SubprocessProtocol):
    """One running child; `start` makes it, `lines` is what it prints, `end` ends it and its descendants."""

    def __init__(self) -> None:
        self.lines: Mailbox[bytes] = Mailbox()
        self.exited = anyio.Event()
        self.overlong = False
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._paused = False
        self._stderr: deque[bytes] = deque()
        self._stderr_bytes = 0
        self._writable = asyncio.Event()
        self._writable.set()

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str]) -> "ChildProcess":
        """Start `command` in a process group of its own; raise `OSError` if that is impossible."""
        loop = asyncio.get_running_loop()
        _, child = await loop.subprocess_exec(cls, *command, env=dict(environment), start_new_session=True)
        return child

    # --- what the event loop calls -----------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the running child's pipes."""
        # By contract, not by class: uvloop's transports derive from none of asyncio's.
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._stdin = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Split stdout into lines, keep the end of stderr."""
        if fd == 2:
            self._keep_stderr(data)
            return
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._deliver(b"".join([*self._parts, piece]))
            self._parts, self._parts_bytes = [], 0
        if rest:
            self._parts.append(rest)
            self._parts_bytes += len(rest)
        if self._parts_bytes > LINE_BYTES_MAX:
            self.overlong = True
            self._parts, self._parts_bytes = [], 0
            self._signal_group(signal.SIGKILL)  # or it would print on until it is ended
            self.lines.close()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """End the lines when stdout ends, however it ended."""
        del exc
        if fd == 1:
            self.lines.close()
        elif fd == 0:
            self._writable.set()

    def process_exited(self) -> None:
        """Tell that the child ended, and end its lines soon even if a descendant holds the pipe."""
        self.exited.set()
        self._writable.set()
        asyncio.get_running_loop().call_later(LAST_WORDS_S, self.lines.close)

    def pause_writing(self) -> None:
        """Make writers wait: the child doesn't read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let writers go on."""
        self._writable.set()

    def _deliver(self, line: bytes) -> None:
        self.lines.put(line)
        if len(self.lines) > LINES_WAITING_MAX and not self._paused:
            self._paused = self._on_stdout(lambda pipe: pipe.pause_reading())

    def _keep_stderr(self, data: bytes) -> None:
        self._stderr.append(data)
        self._stderr_bytes += len(data)
        while self._stderr_bytes - len(self._stderr[0]) >= STDERR_BYTES_MAX:
            self._stderr_bytes -= len(self._stderr.popleft())

    def _on_stdout(self, act: Callable[[asyncio.ReadTransport], None]) -> bool:
        pipe = self._transport and self._transport.get_pipe_transport(1)
        if pipe is None or pipe.is_closing():
            return False
        act(cast(asyncio.ReadTransport, pipe))
        return True

    # --- what its owner calls ----------------------------------------------------------------------------
    def taken(self) -> None:
        """Say that a line was taken from `lines`, so that more may be read when few are left."""
        if self._paused and not len(self.lines):
            self._paused = False
            self._on_stdout(lambda pipe: pipe.resume_reading())

    async def write(self, data: bytes) -> None:
        """Write to stdin, waiting while the child doesn't read; raise `BrokenPipeError` if it is gone."""
        await self._writable.wait()
        if self._stdin is None or self._stdin.is_closing() or self.exited.is_set():
            raise BrokenPipeError
        self._stdin.write(data)

    def stderr_tail(self) -> str:
        """Return the end of what the child printed on stderr."""
        return b"".join(self._stderr)[-STDERR_BYTES_MAX:].decode(errors="replace").strip()

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while the child runs."""
        return self._transport.get_returncode() if self._transport else None

    async def end(self) -> None:
        """Close stdin, then ask, then kill the child's whole group; shielded, at most about six seconds."""
        with anyio.CancelScope(shield=True):
            if self._stdin is not None:
                self._stdin.close()
            for signal_number in (None, signal.SIGTERM, signal.SIGKILL):
                if signal_number is not None:
                    self._signal_group(signal_number)
                with anyio.move_on_after(EXIT_GRACE_S):
                    await self.exited.wait()
                    break
            self._signal_group(signal.SIGKILL)
            if self._transport is not None:
                self._transport.close()
            self.lines.close()
            await asyncio.sleep(0)  # the pipes' last callbacks

    def _signal_group(self, number: signal.Signals) -> None:
        if self._transport is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), number)
