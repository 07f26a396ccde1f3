"""A whole deployment on this machine: an embedded nats-server (or a given one) and one process an actor."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio

from temporality.deploy.assembly import ACTORS, open_bus, run_actor
from temporality.deploy.config import Config, Environment, handed_down
from temporality.deploy.embedded import EmbeddedServer, embedded_server, running_server_url
from temporality.deploy.processes import RESTART_DELAY_MIN_S, ActorProcess
from temporality.deploy.tasks import keep_running
from temporality.protocol.errors import UserError
from temporality.protocol.streams import stream_specs

Progress = Callable[[str], None]
"""Told in a few words what is being started or has happened."""


@dataclass(slots=True)
class Deployment:
    """A running deployment: where its NATS is, and its processes by kind (none with one process)."""

    url: str
    processes: dict[str, ActorProcess] = field(default_factory=dict)


def server_url(config: Config) -> str:
    """Return where NATS is: the configured URL, or the server that `temporality up` runs on the data folder.

    Raises `UserError` if there is neither.
    """
    if config.nats.url:
        return config.nats.url
    url = running_server_url(config.data_path)
    if url is None:
        raise UserError(
            config.data_dir, "no deployment is running on this data folder", "start one: temporality up"
        )
    return url


def _silent(_: str) -> None:
    """Report progress to nobody."""


@asynccontextmanager
async def deployment(
    config: Config,
    environment: Environment,
    *,
    actors: Iterable[str] = tuple(ACTORS),
    in_process: Collection[str] = (),
    restart_tasks: bool = False,
    progress: Progress = _silent,
    first_environment: Mapping[str, Mapping[str, str]] | None = None,
) -> AsyncIterator[Deployment]:
    """Run a deployment while the context is open; leaving stops all of it.

    Actors named in `in_process` run as tasks of this process, the others each in one of its own. A process
    that ends is started again; a task that fails is with `restart_tasks`, else it fails the deployment.
    `first_environment` adds variables for the first process of a kind. Raises `UserError` when something
    can't start.
    """
    async with AsyncExitStack() as stack:
        url = config.nats.url
        server = None
        if url is None:
            progress("starting nats-server")
            embedded = config.nats.embedded
            server = await stack.enter_async_context(
                embedded_server(config.data_path, sync=embedded.sync, port=embedded.port)
            )
            url = server.url
        async with open_bus(url, name="temporality-up") as bus:
            await bus.declare(stream_specs(config.partitions), replicas=config.nats.replicas)
        running = Deployment(url)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        if server is not None:
            tasks.start_soon(_keep_running, server, progress)
        for kind in actors:
            progress(f"starting {kind}")
            if kind in in_process:
                run = partial(run_actor, kind, url=url, config=config, environment=environment)
                await tasks.start(
                    partial(keep_running, kind, run, on_change=progress) if restart_tasks else run
                )
                continue
            first = (first_environment or {}).get(kind, {})
            process = _process(kind, url, config, environment.variables, first)
            running.processes[kind] = process
        async with anyio.create_task_group() as starting:
            for process in running.processes.values():
                starting.start_soon(_start, tasks, process, progress)
        yield running


async def _keep_running(server: EmbeddedServer, progress: Progress) -> None:
    """Start the server again whenever it ends by itself: on its port and store, so that all go on."""
    while True:
        await server.wait_exit()
        progress("nats-server ended and is started again")
        await anyio.sleep(RESTART_DELAY_MIN_S)
        await server.start()


async def _start(tasks: anyio.abc.TaskGroup, process: ActorProcess, progress: Progress) -> None:
    async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        await process.run(on_change=progress, task_status=task_status)

    await tasks.start(run)


def _process(
    kind: str, url: str, config: Config, variables: Mapping[str, str], first_variables: Mapping[str, str]
) -> ActorProcess:
    command = ["-m", "temporality.deploy.child", kind]
    env = {**handed_down(config, variables, url), "PYTHONUNBUFFERED": "1"}
    log = config.data_path / "logs" / f"{kind}.log"
    return ActorProcess(kind, command, env, log, first_env=first_variables)
