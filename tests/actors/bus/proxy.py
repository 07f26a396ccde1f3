"""A TCP proxy between a client and a server that loses what it is told to lose."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import SocketAttribute, SocketStream

CHUNK_BYTES = 65_536


class LossyProxy:
    """Forwards bytes both ways; can swallow the server's answers and cut its connections."""

    def __init__(self, port_of_server: int) -> None:
        self._port_of_server = port_of_server
        self._scopes: set[anyio.CancelScope] = set()
        self._swallowing = False
        self._swallowed = bytearray()
        self._seen = anyio.Event()
        self.port = 0

    def swallow_answers(self) -> None:
        """Lose everything the server sends from now on, until the connections are cut."""
        self._swallowing = True
        self._swallowed.clear()

    async def swallowed(self, part: bytes) -> None:
        """Wait until an answer with `part` in it has been lost."""
        while part not in self._swallowed:
            self._seen = anyio.Event()
            await self._seen.wait()

    def cut(self) -> None:
        """Cut every connection; new ones are served, and nothing is swallowed any more."""
        self._swallowing = False
        for scope in tuple(self._scopes):
            scope.cancel()

    async def serve(self, client: SocketStream) -> None:
        """Forward one client's connection until either side ends it."""
        async with client, await anyio.connect_tcp("127.0.0.1", self._port_of_server) as server:
            async with anyio.create_task_group() as tasks:
                self._scopes.add(tasks.cancel_scope)
                tasks.start_soon(self._forward, client, server, False)
                tasks.start_soon(self._forward, server, client, True)
            self._scopes.discard(tasks.cancel_scope)

    async def _forward(self, source: SocketStream, sink: SocketStream, from_server: bool) -> None:
        try:
            while True:
                data = await source.receive(CHUNK_BYTES)
                if from_server and self._swallowing:
                    self._swallowed += data
                    self._seen.set()
                else:
                    await sink.send(data)
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            for scope in tuple(self._scopes):
                scope.cancel()


@asynccontextmanager
async def lossy_proxy(port_of_server: int) -> AsyncIterator[LossyProxy]:
    """Run a proxy to a server on loopback while the context is open; clients connect to its `port`."""
    proxy = LossyProxy(port_of_server)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        proxy.port = listener.extra(SocketAttribute.local_port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, proxy.serve)
            yield proxy
            tasks.cancel_scope.cancel()
