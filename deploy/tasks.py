"""An actor as a task of one process, which lives on as a process of its own would.

With `--one-process` a fault of one actor must not take the others along: it is started again with growing
delay, and told. What it held comes again, as after a kill.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio
from anyio.abc import TaskStatus

from temporality.deploy.exit_status import first_of_ours
from temporality.deploy.processes import RESTART_DELAY_MAX_S, RESTART_DELAY_MIN_S

Sleep = Callable[[float], Awaitable[None]]


class Run(Protocol):
    """Runs an actor until cancelled or failed; told `task_status` once it can serve."""

    async def __call__(self, *, task_status: TaskStatus[None]) -> None: ...


async def keep_running(
    kind: str,
    run: Run,
    *,
    on_change: Callable[[str], None],
    sleep: Sleep = anyio.sleep,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Run an actor for ever; started once it can serve. Raises what it raised if it never could.

    `on_change` is told in words when the actor can serve, and when it has failed.
    """
    serving = _Serving(kind, task_status, on_change)
    delay_s = RESTART_DELAY_MIN_S
    while True:
        serving.now = False
        try:
            await run(task_status=serving)
            reason = "ended"
        except Exception as error:
            if not serving.ever:
                raise
            reason = f"failed ({type(first_of_ours(error)).__name__})"
        if serving.now:
            delay_s = RESTART_DELAY_MIN_S
        on_change(f"{kind} {reason} and is started again")
        await sleep(delay_s)
        delay_s = min(delay_s * 2, RESTART_DELAY_MAX_S)


class _Serving:
    """Passes on that an actor can serve: to whoever started it the first time only."""

    def __init__(self, kind: str, task_status: TaskStatus[None], on_change: Callable[[str], None]) -> None:
        self.ever = False
        self.now = False
        self._kind = kind
        self._task_status = task_status
        self._on_change = on_change

    def started(self, value: None = None) -> None:
        """Note that the actor can serve."""
        if not self.ever:
            self._task_status.started(value)
        self.ever = self.now = True
        self._on_change(f"{self._kind} is ready")
