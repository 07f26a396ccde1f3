"""Runs both halves of the telemetry sink: commits become public facts, facts become the timeline."""

import anyio
from anyio.abc import TaskStatus

from temporality.actors.host import Host
from temporality.actors.telemetry.projection import TimelineProjection
from temporality.actors.telemetry.publish import FactPublisher
from temporality.storage.timeline import Timeline


class TelemetryActor:
    """Publish facts and keep the timeline of one file; any number may run, each with a file of its own."""

    def __init__(self, host: Host, timeline: Timeline) -> None:
        self._publisher = FactPublisher(host)
        self._projection = TimelineProjection(host, timeline)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; started once both halves are."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._run_publisher)
            await tasks.start(self._run_projection)
            task_status.started()

    async def _run_publisher(self, *, task_status: TaskStatus[None]) -> None:
        await self._publisher.run(task_status=task_status)

    async def _run_projection(self, *, task_status: TaskStatus[None]) -> None:
        await self._projection.run(task_status=task_status)
