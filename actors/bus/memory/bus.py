"""The port over a server in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from temporality.actors.bus import blobs
from temporality.actors.bus.bucket import StreamBucket
from temporality.actors.bus.mailbox import Mailbox
from temporality.actors.bus.memory.connection import MemoryConnection
from temporality.actors.bus.memory.consumer import MemoryShare
from temporality.actors.bus.memory.core import Listener
from temporality.actors.bus.memory.follower import MemoryFollower
from temporality.actors.bus.memory.server import VERSION, Lost, MemoryServer
from temporality.actors.bus.memory.stream import Schedule
from temporality.actors.bus.port import (
    NO_HEADERS,
    PUBLISH_TIMEOUT_S,
    AnswerTimeout,
    Bucket,
    Delivery,
    Message,
    NoResponders,
    Published,
    PublishUnconfirmed,
    Stored,
    Subscription,
)
from temporality.actors.bus.settings import (
    SUBSCRIPTION_MESSAGES_MAX,
    StreamSettings,
    blob_settings,
    bucket_settings,
)
from temporality.protocol.streams import StreamSpec


class MemoryBus:
    """A `Bus` on a `MemoryServer`; `connection.cut()` and `.restore()` are the network's doing."""

    def __init__(self, server: MemoryServer, name: str) -> None:
        self.name = name
        self.connection = MemoryConnection(server.clock)
        self._server = server
        self._clock = server.clock

    # --- stored ---------------------------------------------------------------------------------------
    async def declare(self, specs: Sequence[StreamSpec], *, replicas: int = 1) -> None:
        """Create or update streams, and the one that keeps blobs."""
        await self.connection.reach()
        for spec in specs:
            self._server.declare(StreamSettings(spec=spec, replicas=replicas))
        self._server.declare(blob_settings(replicas))

    async def publish(
        self,
        subject: str,
        payload: bytes,
        *,
        message_id: str | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        expected_last: int | None = None,
        expected_subject: str | None = None,
        timeout_s: float = PUBLISH_TIMEOUT_S,
    ) -> Published:
        """Store a message and wait for the server's acknowledgement."""
        if message_id is None and expected_last is None:
            raise ValueError(
                "a publish without an id could not be repeated: give message_id or expected_last"
            )

        def accept() -> Published:
            return self._server.accept(
                subject,
                payload,
                headers,
                message_id=message_id,
                expected_last=expected_last,
                expected_subject=expected_subject,
            )

        return await self._until_known(subject, accept, timeout_s)

    async def schedule(
        self,
        subject: str,
        target: str,
        payload: bytes,
        *,
        at: datetime,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """Store a message that the server publishes to `target` at `at`."""
        schedule = Schedule(at, target)
        await self._until_known(
            subject,
            lambda: self._server.accept_schedule(subject, payload, headers, schedule),
            PUBLISH_TIMEOUT_S,
        )

    async def purge(self, stream: str, subject: str, *, below: int | None = None, keep: int = 0) -> None:
        """Remove messages of `subject`."""
        await self.connection.reach()
        self._server.stream(stream).purge(subject, below, keep)

    async def last(self, stream: str, subject: str) -> Stored | None:
        """Return the last message of `subject`."""
        await self.connection.reach()
        entry = self._server.stream(stream).last(subject)
        return None if entry is None else entry.stored(0)

    async def read(self, stream: str, subject: str, *, after: int = 0, count_max: int = 256) -> list[Stored]:
        """Return messages of `subject` above `after`, in order."""
        await self.connection.reach()
        found = list(self._server.stream(stream).after(subject, after))
        return [entry.stored(len(found) - index) for index, entry in enumerate(found[:count_max], start=1)]

    @asynccontextmanager
    async def follow(self, stream: str, subject: str, *, after: int = 0) -> AsyncIterator[Mailbox[Stored]]:
        """Iterate for ever over messages of `subject` above `after`."""
        await self.connection.reach()
        follower = MemoryFollower(self._server.stream(stream), subject, after)
        with self.connection.part(follower.join, follower.leave, follower.mailbox.close):
            try:
                yield follower.mailbox
            finally:
                follower.mailbox.close()

    @asynccontextmanager
    async def consume(
        self,
        stream: str,
        *,
        durable: str,
        subject: str,
        ack_wait_s: float,
        in_flight_max: int = 128,
    ) -> AsyncIterator[Mailbox[Delivery]]:
        """Take messages of a queue, shared with every connection that uses the same `durable` name."""
        await self.connection.reach()
        consumer = self._server.ensure_consumer(stream, durable, subject, ack_wait_s)
        share = MemoryShare(consumer, in_flight_max, self.connection.post)
        try:
            with self.connection.part(share.join, share.vanish, share.mailbox.close):
                yield share.mailbox
        finally:
            share.mailbox.close()
            if self.connection.is_usable:
                share.give_back()

    async def pending(self, stream: str, durable: str) -> tuple[int, int]:
        """Return how many messages wait for a consumer, and how many are delivered but not settled."""
        await self.connection.reach()
        return self._server.consumer(stream, durable).counts()

    # --- core -----------------------------------------------------------------------------------------
    async def send(
        self,
        subject: str,
        payload: bytes,
        *,
        reply: str | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """Send a core message, at most once."""
        message = Message(subject, bytes(payload), dict(headers), reply)
        self.connection.check()

        def post() -> None:
            if not self._server.send(message) and reply is not None:
                self._server.router.route(Message(reply, b"", {"Status": "503"}))

        self.connection.post(post)
        await asyncio.sleep(0)

    async def request(
        self, subject: str, payload: bytes, *, timeout_s: float, headers: Mapping[str, str] = NO_HEADERS
    ) -> Message:
        """Ask and return the first answer."""
        self.connection.check()
        deadline = self._clock.monotonic() + timeout_s
        reply = self._server.new_inbox()
        answer: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()

        def take(message: Message | None) -> None:
            if not answer.done():
                answer.set_result(message)

        def ask() -> None:
            if not self._server.send(Message(subject, bytes(payload), dict(headers), reply)):
                take(None)

        listener = Listener(reply, None, take)
        self._server.router.add(listener)
        try:
            self.connection.post(ask)
            if not await self.connection.wait(answer, deadline):
                raise AnswerTimeout(f"{subject}: no answer in {timeout_s:g} s")
        finally:
            self._server.router.remove(listener)
        found = answer.result()
        if found is None:
            raise NoResponders(f"nobody answers {subject}")
        return found

    @asynccontextmanager
    async def subscribe(self, subject: str, *, queue: str | None = None) -> AsyncIterator[Subscription]:
        """Receive core messages."""
        await self.connection.reach()
        mailbox: Mailbox[Message] = Mailbox(SUBSCRIPTION_MESSAGES_MAX)
        listener = Listener(subject, queue, mailbox.put)
        router = self._server.router
        with self.connection.part(
            lambda: router.add(listener), lambda: router.remove(listener), mailbox.close
        ):
            try:
                yield mailbox
            finally:
                mailbox.close()

    def inbox(self) -> str:
        """Return a fresh subject prefix for answers."""
        return self._server.new_inbox()

    # --- kept beside the streams ----------------------------------------------------------------------
    async def bucket(self, name: str, *, ttl_s: float, replicas: int = 1) -> Bucket:
        """Open a key-value bucket, creating it if need be."""
        await self.connection.reach()
        self._server.declare(bucket_settings(name, ttl_s, replicas))
        return StreamBucket(self, name)

    async def put_blob(self, digest: str, data: bytes) -> None:
        """Keep `data` under its SHA-256."""
        await blobs.put_blob(self, digest, data)

    async def get_blob(self, digest: str) -> bytes | None:
        """Return the bytes kept under `digest`, or None."""
        return await blobs.get_blob(self, digest)

    # --- life -----------------------------------------------------------------------------------------
    def on_reconnect(self, callback: Callable[[], None]) -> None:
        """Call `callback` each time the connection is back after a loss."""
        self.connection.on_reconnect.append(callback)

    async def server_version(self) -> str:
        """Return the version of the server that this is a model of."""
        self.connection.check()
        return VERSION

    async def aclose(self) -> None:
        """Close the bus; pending calls raise `BusClosed`, what it holds comes again after `ack_wait`."""
        self.connection.close()

    async def _until_known(
        self, subject: str, accept: Callable[[], Published], timeout_s: float
    ) -> Published:
        deadline = self._clock.monotonic() + timeout_s
        unknown = f"{subject}: no acknowledgement in {timeout_s:g} s"
        delay_s = self._server.faults.takes_delay(subject)
        if delay_s and not await self.connection.pause(delay_s, deadline):
            raise PublishUnconfirmed(unknown)
        while True:
            if not await self.connection.reach(deadline):
                raise PublishUnconfirmed(unknown)
            try:
                return accept()
            except Lost:
                if not await self.connection.until_restored(deadline):
                    raise PublishUnconfirmed(unknown) from None
