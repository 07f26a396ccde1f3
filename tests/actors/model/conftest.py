"""The bus of these tests, on the real server."""

import pytest

from temporality.actors.bus.nats import NatsBus
from temporality.protocol.streams import stream_specs


@pytest.fixture
async def bus(nats_bus: NatsBus) -> NatsBus:
    """Give an empty bus all its streams."""
    await nats_bus.declare(stream_specs(4))
    return nats_bus
