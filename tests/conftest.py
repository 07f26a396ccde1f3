"""What tests of several packages share: a real nats-server, and buses on it."""

import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import nats
import pytest
from hypothesis import settings

from temporality.actors.bus.nats import NatsBus, connect
from temporality.deploy.embedded import EmbeddedServer
from temporality.deploy.server_config import ClusterRoute, ServerUser

settings.register_profile("everyday", deadline=None, max_examples=50)
"""A busy machine is no failure, and each run draws other examples."""
settings.register_profile("thorough", deadline=None, max_examples=2_000)
"""For `pytest --hypothesis-profile thorough`, where a property is in doubt."""
settings.load_profile("everyday")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """nats-py is written for asyncio."""
    return "asyncio"


@pytest.fixture(scope="session")
async def nats_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServer]:
    """A real server of this test process: `kill()`, `start()` and `restart()` are there to be used."""
    server = EmbeddedServer(tmp_path_factory.mktemp("nats"), sync="default", port=0, users=())
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def nats_bus(nats_server: EmbeddedServer) -> AsyncIterator[NatsBus]:
    """A connection to the real server; what other tests have stored there is cleared away first."""
    client = await nats.connect(nats_server.url)
    for info in await client.jsm().streams_info():
        await client.jsm().delete_stream(info.config.name or "")
    await client.close()
    async with connect(nats_server.url, name="test") as bus:
        yield bus


@pytest.fixture(scope="session")
async def nats_cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[EmbeddedServer]]:
    """Three real servers that form one JetStream cluster."""
    user = ServerUser("temporality", secrets.token_urlsafe(24))
    ports = list(_free_ports(3))
    routes = tuple(f"nats-route://127.0.0.1:{port}" for port in ports)
    folder = tmp_path_factory.mktemp("cluster")
    servers = [
        EmbeddedServer(
            Path(folder / f"n{index}"),
            sync="default",
            port=0,
            users=(),
            cluster=ClusterRoute("temporality", port, routes),
            name=f"n{index}",
            user=user,
        )
        for index, port in enumerate(ports)
    ]
    try:
        async with anyio.create_task_group() as tasks:
            for server in servers:
                tasks.start_soon(server.start)
        yield servers
    finally:
        for server in servers:
            await server.stop()


def _free_ports(count: int) -> Iterator[int]:
    with ExitStack() as stack:
        for _ in range(count):
            taken = stack.enter_context(socket.socket())
            taken.bind(("127.0.0.1", 0))
            yield taken.getsockname()[1]
