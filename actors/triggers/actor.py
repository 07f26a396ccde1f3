"""Runs the built-in triggers, all in one process: they take some microseconds each."""

import anyio
from anyio.abc import TaskStatus

from temporality.actors.host import Host
from temporality.actors.triggers.serving import run_trigger
from temporality.actors.triggers.trigger import built_in

__all__ = ["TriggersActor", "run_trigger"]


class TriggersActor:
    """Answer settled turns for every built-in kind."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; started once every kind can be found and asked."""
        await run_trigger(self._host, built_in(), inline=True, task_status=task_status)
