"""The processes of a local deployment: one an actor, started, watched, restarted and stopped together.

A child says that it can serve by writing a line to its standard output, and learns that its parent is gone by
the end of its standard input: both are pipes that the operating system closes for us, so a parent killed with
-9 leaves nothing running.
"""

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

import anyio
from anyio.abc import Process, TaskStatus

from temporality.protocol.errors import UserError

READY_LINE = "ready"
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0
"""Time to finish a commit and give back what is held; after it the process is killed, which loses nothing."""

RESTART_DELAY_MIN_S = 0.2
RESTART_DELAY_MAX_S = 10.0
LOG_SHOWN_LINES = 3
OUR_WORDS = "temporality: "
"""How a process of ours begins the one line in which it says why it can't go on."""


class ActorProcess:
    """One actor's process: restarted with growing delay when it ends by itself, stopped when cancelled.

    `first_env` is added to the environment of the first process only, not of those that replace it.
    """

    def __init__(
        self,
        kind: str,
        command: Sequence[str],
        env: Mapping[str, str],
        log: Path,
        *,
        first_env: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.log = log
        self.restarts = 0
        self._command = command
        self._env = env
        self._first_env = dict(first_env or {})
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        """Return the id of the process that runs now, or None between two."""
        return self._process.pid if self._process else None

    def kill(self) -> None:
        """Kill the process as `kill -9` does; it is started again."""
        if self._process is not None:
            self._process.kill()

    async def run(
        self,
        on_change: Callable[[str], None],
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run the process for ever; started once it can serve. Raises `UserError` if it never can.

        `on_change` is told in words when the process can serve, and when it has ended by itself.
        """
        delay_s = RESTART_DELAY_MIN_S
        first = True
        while True:
            process = await self._spawn()
            try:
                served = await self._wait_until_ready(process)
                if served and first:
                    first = False
                    task_status.started()
                if served:
                    on_change(f"{self.kind} is ready")
                    delay_s = RESTART_DELAY_MIN_S
                    await process.wait()
            finally:
                await self._stop(process)
            if first:
                raise UserError(f"actor {self.kind}", self._last_words(), f"read {self.log}")
            self.restarts += 1
            on_change(f"{self.kind} ended and is started again")
            await anyio.sleep(delay_s)
            delay_s = min(delay_s * 2, RESTART_DELAY_MAX_S)

    async def _spawn(self) -> Process:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = await anyio.open_process(
                [sys.executable, *self._command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**self._env, **self._first_env},
                start_new_session=True,  # Ctrl-C reaches the parent only, which stops its children in order
            )
        self._first_env = {}
        return self._process

    async def _wait_until_ready(self, process: Process) -> bool:
        """Return whether the process said that it can serve; it may end first, or take too long."""
        assert process.stdout is not None
        with anyio.move_on_after(START_TIMEOUT_S):
            async with aclosing(process.stdout) as lines:
                async for chunk in lines:
                    if READY_LINE.encode() in chunk:
                        return True
        return False

    async def _stop(self, process: Process) -> None:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.terminate()
                with anyio.move_on_after(STOP_TIMEOUT_S):
                    await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
            self._process = None
            if process.stdin is not None:
                await process.stdin.aclose()

    def _last_words(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        if lines and lines[-1].startswith(OUR_WORDS):
            return lines[-1].removeprefix(OUR_WORDS)
        return " | ".join(lines[-LOG_SHOWN_LINES:])[:500] or "it ended before it could serve"
