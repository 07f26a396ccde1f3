"""The port over one NATS connection."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

import msgspec
from nats.aio.msg import Msg

from temporality.actors.bus import blobs
from temporality.actors.bus.bucket import StreamBucket
from temporality.actors.bus.nats.api import NO_RESPONDERS, JetStreamApi, status_of
from temporality.actors.bus.nats.connection import Connection
from temporality.actors.bus.nats.consumer import consuming
from temporality.actors.bus.nats.follower import following
from temporality.actors.bus.nats.publisher import Publisher
from temporality.actors.bus.nats.reader import Reader
from temporality.actors.bus.nats.replies import DeadlinePassed, Replies
from temporality.actors.bus.nats.streams import declare
from temporality.actors.bus.nats.subscription import subscribed
from temporality.actors.bus.port import (
    NO_HEADERS,
    PUBLISH_TIMEOUT_S,
    AnswerTimeout,
    Bucket,
    Delivery,
    Message,
    NoResponders,
    Published,
    Stored,
    Subscription,
)
from temporality.actors.bus.settings import StreamSettings, blob_settings, bucket_settings
from temporality.protocol.streams import StreamSpec


class _ConsumerInfo(msgspec.Struct, frozen=True):
    num_pending: int = 0
    num_ack_pending: int = 0


_decode_consumer = msgspec.json.Decoder(_ConsumerInfo).decode


class NatsBus:
    """A `Bus` on a NATS server or cluster; made by `connect`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._replies = Replies(connection)
        self._api = JetStreamApi(self._replies)
        self._publisher = Publisher(self._replies)
        self._reader = Reader(self._replies, self._api)
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        """Subscribe for answers; to be called once, by `connect`."""
        await self._replies.open()
        await self._connection.settle()

    # --- stored ---------------------------------------------------------------------------------------
    async def declare(self, specs: Sequence[StreamSpec], *, replicas: int = 1) -> None:
        """Create or update streams, and the one that keeps blobs."""
        for spec in specs:
            await declare(self._api, StreamSettings(spec=spec, replicas=replicas))
        await declare(self._api, blob_settings(replicas))

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
        return await self._publisher.publish(
            subject,
            payload,
            message_id=message_id,
            headers=headers,
            expected_last=expected_last,
            expected_subject=expected_subject,
            timeout_s=timeout_s,
        )

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
        when = at.astimezone(UTC).isoformat().replace("+00:00", "Z")
        sent = {**headers, "Nats-Schedule": f"@at {when}", "Nats-Schedule-Target": target}
        await self._publisher.send(subject, payload, sent, timeout_s=PUBLISH_TIMEOUT_S)

    async def purge(self, stream: str, subject: str, *, below: int | None = None, keep: int = 0) -> None:
        """Remove messages of `subject`."""
        question: dict[str, object] = {"filter": subject}
        if below is not None:
            if below <= 1:
                return  # nothing lies below the first sequence; the server would take 0 for "all"
            question["seq"] = below
        elif keep:
            question["keep"] = keep
        await self._api.call(f"STREAM.PURGE.{stream}", question)

    async def last(self, stream: str, subject: str) -> Stored | None:
        """Return the last message of `subject` as the leader has it."""
        return await self._reader.last(stream, subject)

    async def read(self, stream: str, subject: str, *, after: int = 0, count_max: int = 256) -> list[Stored]:
        """Return messages of `subject` above `after`, in order."""
        return await self._reader.read(stream, subject, after, count_max)

    def follow(
        self, stream: str, subject: str, *, after: int = 0
    ) -> AbstractAsyncContextManager[AsyncIterator[Stored]]:
        """Iterate for ever over messages of `subject` above `after`."""
        return following(self._connection, self._api, stream, subject, after)

    def consume(
        self,
        stream: str,
        *,
        durable: str,
        subject: str,
        ack_wait_s: float,
        in_flight_max: int = 128,
    ) -> AbstractAsyncContextManager[AsyncIterator[Delivery]]:
        """Take messages of a queue, shared with every process that uses the same `durable` name."""
        return consuming(
            self._connection,
            self._api,
            stream=stream,
            durable=durable,
            subject=subject,
            ack_wait_s=ack_wait_s,
            in_flight_max=in_flight_max,
        )

    async def pending(self, stream: str, durable: str) -> tuple[int, int]:
        """Return how many messages wait for a consumer, and how many are delivered but not settled."""
        info = _decode_consumer(await self._api.call(f"CONSUMER.INFO.{stream}.{durable}"))
        return info.num_pending, info.num_ack_pending

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
        await self._connection.post(subject, payload, reply or "", headers)

    async def request(
        self, subject: str, payload: bytes, *, timeout_s: float, headers: Mapping[str, str] = NO_HEADERS
    ) -> Message:
        """Ask and return the first answer."""
        try:
            message: Msg = await self._replies.ask(
                subject, payload, headers, deadline=self._loop.time() + timeout_s, survives=False
            )
        except DeadlinePassed:
            raise AnswerTimeout(f"{subject}: no answer in {timeout_s:g} s") from None
        if status_of(message) == NO_RESPONDERS:
            raise NoResponders(f"nobody answers {subject}")
        return Message(message.subject, message.data, message.headers or {}, message.reply or None)

    def subscribe(
        self, subject: str, *, queue: str | None = None
    ) -> AbstractAsyncContextManager[Subscription]:
        """Receive core messages."""
        return subscribed(self._connection, subject, queue)

    def inbox(self) -> str:
        """Return a fresh subject prefix for answers."""
        return self._replies.inbox()

    # --- kept beside the streams ----------------------------------------------------------------------
    async def bucket(self, name: str, *, ttl_s: float, replicas: int = 1) -> Bucket:
        """Open a key-value bucket, creating it if need be."""
        await declare(self._api, bucket_settings(name, ttl_s, replicas))
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
        self._connection.on_reconnect.append(callback)

    async def server_version(self) -> str:
        """Return the version of the server that this bus is connected to."""
        self._connection.check()
        return self._connection.server_version

    async def aclose(self) -> None:
        """Close the bus; pending calls raise `BusClosed`."""
        await self._connection.close()
