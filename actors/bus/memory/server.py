"""The server in memory: streams, consumers and core messages, shared by any number of connections.

It is a model of one JetStream node, exact where the system relies on it: expected sequences, the dedupe
window, work queues with redelivery, schedules, transforms, buckets that expire. It runs on one event loop and
takes its time from a clock it is given, so that with a virtual clock every run of a test is the same run.
Nothing in it waits: a call changes the state, and what follows from time is a call of the clock.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from temporality.actors.bus.memory.consumer import MemoryConsumer
from temporality.actors.bus.memory.core import Router
from temporality.actors.bus.memory.faults import Faults
from temporality.actors.bus.memory.stream import MemoryStream, Schedule
from temporality.actors.bus.memory.subject import overlap
from temporality.actors.bus.port import BusError, Message, Published, PublishRefused
from temporality.actors.bus.settings import StreamSettings
from temporality.actors.clock import Clock, SystemClock
from temporality.protocol.streams import Retention

if TYPE_CHECKING:
    from temporality.actors.bus.memory.bus import MemoryBus

PAYLOAD_BYTES_MAX = 1024 * 1024
"""As on the embedded server, so that what fits here fits there."""
VERSION = "2.15.1"
"""The server this is a model of."""


class Lost(Exception):
    """The message, or the answer to it, never arrived."""


class MemoryServer:
    """A NATS server with JetStream, in memory; `faults` breaks it where a test wants it broken."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self.faults = Faults()
        self.router = Router()
        self._streams: dict[str, MemoryStream] = {}
        self._consumers: dict[tuple[str, str], MemoryConsumer] = {}
        self._inboxes = 0

    @asynccontextmanager
    async def connect(self, *, name: str = "") -> AsyncIterator["MemoryBus"]:
        """Open a connection for as long as the context is open."""
        from temporality.actors.bus.memory.bus import MemoryBus

        # Pyright sees this file twice, as itself and by its import name.
        bus = MemoryBus(self, name)  # pyright: ignore[reportArgumentType]
        try:
            yield bus
        finally:
            await bus.aclose()

    def new_inbox(self) -> str:
        """Return a subject that nobody has used."""
        self._inboxes += 1
        return f"_INBOX.{self._inboxes}"

    def declare(self, settings: StreamSettings) -> None:
        """Create or update a stream; raises `BusError` where the server would."""
        spec = settings.spec
        for other in self._streams.values():
            theirs = other.settings.spec
            if theirs.name != spec.name and any(
                overlap(a, b) for a in spec.subjects for b in theirs.subjects
            ):
                raise BusError(f"{spec.name}: subjects overlap with those of {theirs.name} (10065)")
        stream = self._streams.get(spec.name)
        if stream is None:
            self._streams[spec.name] = MemoryStream(settings, self.clock)
            return
        if stream.settings.spec.retention is not spec.retention:
            raise BusError(f"{spec.name}: the retention of a stream can't be changed (10052)")
        stream.configure(settings)

    def stream(self, name: str) -> MemoryStream:
        """Return a stream by name; raises `BusError` if there is none."""
        if name not in self._streams:
            raise BusError(f"{name}: stream not found (10059)")
        return self._streams[name]

    def accept(
        self,
        subject: str,
        payload: bytes,
        headers: Mapping[str, str],
        *,
        message_id: str | None,
        expected_last: int | None = None,
        expected_subject: str | None = None,
    ) -> Published:
        """Take a publish: store it, or raise what the server answers, or `Lost` if nobody will ever know."""
        stream = self._open_stream(subject, payload)
        self.router.route(Message(subject, payload, dict(headers)))
        published = stream.publish(
            subject,
            payload,
            headers,
            message_id=message_id,
            expected_last=expected_last,
            expected_subject=expected_subject,
        )
        if self.faults.takes_ack(subject):
            raise Lost
        return published

    def accept_schedule(
        self, subject: str, payload: bytes, headers: Mapping[str, str], schedule: Schedule
    ) -> Published:
        """Take a scheduled message; raises as `accept`."""
        stream = self._open_stream(subject, payload)
        if not stream.settings.spec.schedules:
            raise PublishRefused(f"{subject}: message schedules is disabled (10188)")
        if not stream.covers(schedule.target):
            raise PublishRefused(f"{subject}: message schedules target is invalid (10190)")
        published = stream.schedule(subject, payload, headers, schedule)
        if self.faults.takes_ack(subject):
            raise Lost
        return published

    def send(self, message: Message) -> bool:
        """Take a core message; say whether anybody, a stream included, listened to it."""
        if self.faults.takes_message(message.subject):
            return True
        heard = self.router.route(message)
        stream = self._stream_of(message.subject)
        if stream is None:
            return heard
        published = stream.publish(message.subject, message.payload, message.headers, message_id=None)
        if message.reply is not None:  # a stream answers whoever asks on its subjects
            answer = msgspec.json.encode({"stream": published.stream, "seq": published.sequence})
            self.router.route(Message(message.reply, answer))
        return True

    def consumer(self, stream: str, durable: str) -> MemoryConsumer:
        """Return a durable consumer; raises `BusError` if there is none."""
        if (stream, durable) not in self._consumers:
            raise BusError(f"{stream}/{durable}: consumer not found (10014)")
        return self._consumers[stream, durable]

    def ensure_consumer(self, name: str, durable: str, subject: str, ack_wait_s: float) -> MemoryConsumer:
        """Return the durable consumer, created if need be; work queues refuse filters that overlap."""
        stream = self.stream(name)
        existing = self._consumers.get((name, durable))
        if existing is not None:
            existing.ack_wait_s = ack_wait_s
            return existing
        if stream.settings.spec.retention is Retention.WORK_QUEUE:
            for (other_stream, _), other in self._consumers.items():
                if other_stream == name and overlap(other.subject, subject):
                    raise BusError(f"{name}/{durable}: filtered consumer not unique on workqueue (10100)")
        consumer = MemoryConsumer(stream, subject, ack_wait_s, self.clock, self.faults)
        self._consumers[name, durable] = consumer
        return consumer

    def _open_stream(self, subject: str, payload: bytes) -> MemoryStream:
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise PublishRefused(f"{len(payload)} bytes for {subject} are too many")
        if self.faults.takes_message(subject):
            raise Lost
        stream = self._stream_of(subject)
        if stream is None:
            raise PublishRefused(f"{subject}: no stream keeps this subject")
        if self.faults.disk_full:
            raise PublishRefused(f"{subject}: insufficient resources (10023)")
        return stream

    def _stream_of(self, subject: str) -> MemoryStream | None:
        return next((stream for stream in self._streams.values() if stream.covers(subject)), None)
