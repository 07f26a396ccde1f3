"""The bus in memory by the virtual clock, and a real server; each test says which it needs."""

from collections.abc import AsyncIterator

import pytest

from temporality.actors.bus.memory import MemoryServer
from temporality.actors.bus.port import Bus
from temporality.actors.clock import SystemClock, VirtualClock
from temporality.protocol.streams import stream_specs

from .world import World


@pytest.fixture
async def model() -> AsyncIterator[World]:
    """The bus in memory, by the virtual clock."""
    clock = VirtualClock()
    server = MemoryServer(clock)
    async with server.connect() as bus:
        await bus.declare(stream_specs(1))
        yield World(bus, clock, server)


@pytest.fixture
async def real(nats_bus: Bus) -> World:
    """A real server, where time passes by itself."""
    await nats_bus.declare(stream_specs(1))
    return World(nats_bus, SystemClock())


@pytest.fixture(params=["model", "real"])
def world(request: pytest.FixtureRequest) -> World:
    """The bus in memory, then a real server."""
    chosen: World = request.getfixturevalue(request.param)
    return chosen
