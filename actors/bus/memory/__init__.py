"""The bus in memory: a small exact model of JetStream, for simulations and tests.

`MemoryServer(clock)` is the server, `async with server.connect() as bus` a connection to it, `server.faults`
what can go wrong. It passes the same conformance suite as NATS.
"""

from temporality.actors.bus.memory.bus import MemoryBus
from temporality.actors.bus.memory.faults import Faults
from temporality.actors.bus.memory.server import MemoryServer

__all__ = ["Faults", "MemoryBus", "MemoryServer"]
