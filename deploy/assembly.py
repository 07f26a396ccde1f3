"""Which actors there are, and how each is put together from the configuration; the only place that knows all.

The parts are imported at use: a process pays for its own actor only.
"""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

import anyio
from anyio.abc import TaskStatus

from temporality.actors.bus.nats import CONNECT_TIMEOUT_S, connect
from temporality.actors.bus.port import Bus, BusError
from temporality.actors.clock import SystemClock
from temporality.actors.crash import CrashPoints
from temporality.actors.host import Host
from temporality.actors.tracing import Tracing
from temporality.deploy.config import Config, Environment
from temporality.protocol.errors import WorldError
from temporality.protocol.streams import stream_specs


class Actor(Protocol):
    """What every actor is to whoever runs it."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; started once it can serve."""
        ...


@asynccontextmanager
async def _supervisor(host: Host, config: Config, _: Environment) -> AsyncIterator[Actor]:
    from temporality.actors.supervisor.actor import SupervisorActor, SupervisorSettings
    from temporality.storage.snapshots import open_snapshots

    settings = SupervisorSettings(
        partitions=config.partitions, lease_ttl_s=config.lease_ttl_s, replicas=config.nats.replicas
    )
    async with open_snapshots(config.data_path / "snapshots.db") as snapshots:
        yield SupervisorActor(host, settings, snapshots)


@asynccontextmanager
async def _executor(host: Host, config: Config, environment: Environment) -> AsyncIterator[Actor]:
    from temporality.actors.executor.actor import ExecutorActor
    from temporality.actors.executor.settings import ExecutorSettings

    settings = ExecutorSettings(
        environment=environment.variables,
        allow_commands=config.executor.allow_commands,
        allow_python=config.executor.allow_python,
        start_timeout_s=config.executor.start_timeout_s,
    )
    yield ExecutorActor(host, settings)


@asynccontextmanager
async def _triggers(host: Host, _config: Config, _: Environment) -> AsyncIterator[Actor]:
    from temporality.actors.triggers.actor import TriggersActor

    yield TriggersActor(host)


@asynccontextmanager
async def _retriever(host: Host, config: Config, _: Environment) -> AsyncIterator[Actor]:
    from temporality.actors.retriever.actor import RetrieverActor
    from temporality.actors.retriever.query import ItemAnalyser
    from temporality.storage.knowledge import open_knowledge

    async with open_knowledge(config.data_path / "knowledge.db", ItemAnalyser()) as index:
        yield RetrieverActor(host, index)


@asynccontextmanager
async def _model(host: Host, _: Config, environment: Environment) -> AsyncIterator[Actor]:
    from temporality.actors.model.actor import ModelActor, ModelSettings

    yield ModelActor(host, ModelSettings(environment=environment.variables))


@asynccontextmanager
async def _telemetry(host: Host, config: Config, _: Environment) -> AsyncIterator[Actor]:
    from temporality.actors.telemetry.actor import TelemetryActor
    from temporality.storage.timeline import open_timeline

    async with open_timeline(config.data_path / "timeline.db") as timeline:
        yield TelemetryActor(host, timeline)


ACTORS = {
    "supervisor": _supervisor,
    "executor": _executor,
    "triggers": _triggers,
    "retriever": _retriever,
    "model": _model,
    "telemetry": _telemetry,
}
"""Every kind of actor, in the order in which `temporality up` starts them."""


async def run_actor(
    kind: str,
    *,
    url: str,
    config: Config,
    environment: Environment,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Connect to NATS and run one actor until cancelled.

    Raises `UserError` for a server that is too old or a data folder that can't be written, `BusError` when
    the connection is over for good.
    """
    async with open_bus(url, name=f"temporality-{kind}") as bus:
        await bus.declare(stream_specs(config.partitions), replicas=config.nats.replicas)
        host = host_of(kind, bus, config, environment)
        async with ACTORS[kind](host, config, environment) as actor:
            await actor.run(task_status=task_status)


@asynccontextmanager
async def open_bus(url: str, *, name: str, timeout_s: float = CONNECT_TIMEOUT_S) -> AsyncIterator[Bus]:
    """Connect to NATS as `name`; `url` may hold several servers, separated by commas.

    Raises `WorldError`, saying what to do, if none of them lets us in within `timeout_s`.
    """
    async with AsyncExitStack() as stack:
        try:
            bus = await stack.enter_async_context(connect(url.split(","), name=name, timeout_s=timeout_s))
        except BusError as error:
            raise WorldError(f"nats.url: {error} — start the server there, or correct the address") from error
        yield bus


def host_of(kind: str, bus: Bus, config: Config, environment: Environment) -> Host:
    """Return the shell of one actor of this process."""
    return Host(
        bus,
        actor=kind,
        name=f"{kind}-{os.getpid()}-{secrets.token_hex(3)}",
        clock=SystemClock(),
        tracing=Tracing(),
        crash=CrashPoints(environment.crash_at),
        ack_wait_s=config.lease_ttl_s,
    )
