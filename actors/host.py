"""The one shell around every actor: receive → decode → decide → publish → acknowledge.

An actor is a function from a message to messages. The host does the rest in the one order that loses nothing:
what a message caused is stored before the message is acknowledged, so a crash at any point brings the message
back, and what it caused is recognised by its id. (The run supervisor puts a commit between deciding and
publishing; see `commits.py`.)

What can go wrong is told apart here, once:
- a message that can't be understood goes to the dead letters with its reason, and the next one is served;
- a world that fails (bus down, disk full) gives the message back, to be served again later;
- a fault of ours gives it back with growing delay, and to the dead letters after `DELIVERIES_MAX` tries.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

import anyio
import msgspec
from anyio.abc import TaskStatus

from temporality.actors.bus.port import Bus, BusClosed, BusError, Delivery
from temporality.actors.bus.port import Message as CoreMessage
from temporality.actors.clock import Clock
from temporality.actors.crash import CrashPoints
from temporality.actors.redaction import redact
from temporality.actors.tracing import Tracing
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.errors import InvalidMessage, WorldError, fault
from temporality.protocol.message import (
    CAUSE_HEADER,
    ID_HEADER,
    SCHEMA_HEADER,
    SCHEMA_VERSION,
    TRACE_HEADER,
    Message,
)

M = TypeVar("M")

ACK_WAIT_S = 5.0
"""How long a queue waits for an answer before it gives a message to somebody else: the lease's life."""

DELIVERIES_MAX = 8
"""Tries at a message on which our own code fails: about two minutes, then a dead letter."""

RETRY_DELAY_MAX_S = 30.0
WORLD_RETRY_DELAY_S = 1.0
QUESTIONS_AT_ONCE_MAX = 256
"""Questions of one kind answered at once: more wait in the subscription, which has its own limit."""
GIVE_BACK_S = 1.0
"""A process that ends spends at most this long on giving back what it holds; the queue does it otherwise."""

DEAD_LETTER_BYTES_MAX = 900_000
"""A dead letter is cut here: with its headers it must fit into the server's 1 MiB to be kept."""

REASON_HEADER = "Temporality-Reason"
DETAIL_HEADER = "Temporality-Detail"
SUBJECT_HEADER = "Temporality-Subject"


@dataclass(frozen=True, slots=True)
class Received(Generic[M]):
    """A decoded queue message with its id, its cause, its trace, and how often it has been delivered."""

    message: M
    id: str
    cause: str | None
    traceparent: str | None
    subject: str
    sequence: int
    delivered: int


@dataclass(frozen=True, slots=True)
class Asked(Generic[M]):
    """A decoded question with its trace."""

    message: M
    traceparent: str | None
    subject: str


@dataclass(frozen=True, slots=True)
class Send:
    """One stored message that a handled message causes; `id` makes its repeats recognisable."""

    subject: str
    message: Message
    id: str
    traceparent: str | None = None


class QuestionRefused(Message, frozen=True, kw_only=True, tag="error"):
    """Answer a question that could not be understood or answered."""

    message: str


Handler = Callable[[Received[M]], Awaitable[Sequence[Send]]]
Answerer = Callable[[Asked[M]], Awaitable[msgspec.Struct]]


def headers_of(message_id: str, cause: str | None, traceparent: str | None) -> dict[str, str]:
    """Return the headers that every stored message carries."""
    headers = {ID_HEADER: message_id, SCHEMA_HEADER: str(SCHEMA_VERSION)}
    if cause:
        headers[CAUSE_HEADER] = cause
    if traceparent:
        headers[TRACE_HEADER] = traceparent
    return headers


class Held:
    """The deliveries this process is working on; their queue is told every third of `ack_wait_s`."""

    def __init__(self, ack_wait_s: float, clock: Clock) -> None:
        self._interval_s = ack_wait_s / 3
        self._clock = clock
        self._deliveries: dict[int, Delivery] = {}

    @contextmanager
    def holding(self, delivery: Delivery) -> Iterator[None]:
        """Keep `delivery` alive while the context lasts."""
        key = id(delivery)
        self._deliveries[key] = delivery
        try:
            yield
        finally:
            del self._deliveries[key]

    def add(self, delivery: Delivery) -> None:
        """Keep `delivery` alive until `drop`."""
        self._deliveries[id(delivery)] = delivery

    def drop(self, delivery: Delivery) -> None:
        """Stop keeping `delivery` alive."""
        self._deliveries.pop(id(delivery), None)

    async def keep_alive(self) -> None:
        """Send the heartbeats, for ever."""
        while True:
            await self._clock.sleep_until(self._clock.monotonic() + self._interval_s)
            for delivery in list(self._deliveries.values()):
                try:
                    await delivery.in_progress()
                except BusClosed:
                    raise
                except BusError:
                    break


class Host:
    """Everything an actor has of the outside: the bus, time, traces, and the loop that serves it.

    `name` is unique to the process; `actor` is its kind (`executor`) and prefixes the crash points.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        actor: str,
        name: str,
        clock: Clock,
        tracing: Tracing,
        crash: CrashPoints | None = None,
        ack_wait_s: float = ACK_WAIT_S,
    ) -> None:
        self.bus = bus
        self.actor = actor
        self.name = name
        self.clock = clock
        self.tracing = tracing
        self.crash = crash or CrashPoints()
        self.ack_wait_s = ack_wait_s
        self.log = logging.getLogger(f"temporality.{actor}")

    async def work(
        self,
        *,
        stream: str,
        durable: str,
        subject: str,
        kind: Any,
        handle: Handler[M],
        concurrency: int,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve a queue for ever, up to `concurrency` messages at once; at least once each.

        Cancelled, it gives back what it holds, so that somebody else is served it at once.
        """
        held = Held(self.ack_wait_s, self.clock)
        async with (
            self.bus.consume(
                stream,
                durable=durable,
                subject=subject,
                ack_wait_s=self.ack_wait_s,
                in_flight_max=concurrency,
            ) as deliveries,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(held.keep_alive)
            task_status.started()
            async for delivery in deliveries:
                tasks.start_soon(self._serve, held, stream, delivery, kind, handle)

    async def _serve(
        self, held: Held, stream: str, delivery: Delivery, kind: Any, handle: Handler[M]
    ) -> None:
        with held.holding(delivery):
            async with self.given_back_on_failure(stream, delivery):
                received: Received[M] | None = await self.receive(stream, delivery, kind)
                if received is None:
                    return
                sends = await handle(received)
                self.crash.reached(f"{self.actor}.handled")
                for send in sends:
                    await self.publish(send, cause=received.id, traceparent=received.traceparent)
                self.crash.reached(f"{self.actor}.published")
                await delivery.ack()
                self.crash.reached(f"{self.actor}.acked")

    async def publish(self, send: Send, *, cause: str, traceparent: str | None) -> None:
        """Store one message; repeating it is recognised by its id."""
        await self.bus.publish(
            send.subject,
            encode(send.message),
            message_id=send.id,
            headers=headers_of(send.id, cause, send.traceparent or traceparent),
        )

    async def receive(self, stream: str, delivery: Delivery, kind: Any) -> Received[Any] | None:
        """Decode a delivery; one that can't be understood becomes a dead letter, and None is returned."""
        headers = delivery.headers
        try:
            message = decode(delivery.payload, kind)
        except InvalidMessage as error:
            await self.bury(stream, delivery, reason="malformed", detail=str(error))
            return None
        return Received(
            message=message,
            id=headers.get(ID_HEADER) or f"{stream}-{delivery.sequence}",
            cause=headers.get(CAUSE_HEADER),
            traceparent=headers.get(TRACE_HEADER),
            subject=delivery.subject,
            sequence=delivery.sequence,
            delivered=delivery.delivered,
        )

    async def bury(self, stream: str, delivery: Delivery, *, reason: str, detail: str) -> None:
        """Move a delivery to the dead letters (private), with the reason and where it came from.

        Headers are shown by every tool that lists messages, so a secret of the payload must not be in them.
        """
        headers = {
            **{name: value for name, value in delivery.headers.items() if not name.startswith("Nats-")},
            REASON_HEADER: reason,
            DETAIL_HEADER: header_text(redact(detail).text),
            SUBJECT_HEADER: delivery.subject,
        }
        try:
            await self.bus.publish(
                subjects.dead(stream, reason),
                delivery.payload[:DEAD_LETTER_BYTES_MAX],
                message_id=f"dead-{stream}-{delivery.sequence}",
                headers=headers,
            )
        except WorldError:
            await self.postpone(delivery, WORLD_RETRY_DELAY_S)
            return
        self.log.warning("dead letter from %s: %s", stream, reason)
        await delivery.term(reason)

    async def give_back(self, *deliveries: Delivery) -> None:
        """Let somebody else be served these at once; also when cancelled, for at most a second."""
        with anyio.move_on_after(GIVE_BACK_S, shield=True):
            for delivery in deliveries:
                await self.postpone(delivery, 0.0)

    async def postpone(self, delivery: Delivery, delay_s: float) -> None:
        """Give a delivery back, to come again after `delay_s`; never raises."""
        try:
            await delivery.nak(delay_s)
        except BusError:
            self.log.warning("%s: could not be given back; its queue will", delivery.subject)

    def given_back_on_failure(self, stream: str, *deliveries: Delivery) -> "_GivenBack":
        """Guard the handling of deliveries: whatever fails inside, no message is lost."""
        return _GivenBack(self, stream, deliveries)

    async def answer(
        self,
        *,
        subject: str,
        queue: str,
        kind: Any,
        handle: Answerer[M],
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Answer questions for ever, one member of `queue` each; an answer may come after its deadline.

        At most `QUESTIONS_AT_ONCE_MAX` are answered at once.
        """
        free = anyio.Semaphore(QUESTIONS_AT_ONCE_MAX)

        async def answer(question: CoreMessage) -> None:
            try:
                await self._answer(question, kind, handle)
            finally:
                free.release()

        async with self.bus.subscribe(subject, queue=queue) as questions, anyio.create_task_group() as tasks:
            task_status.started()
            async for question in questions:
                await free.acquire()
                tasks.start_soon(answer, question)

    async def _answer(self, question: CoreMessage, kind: Any, handle: Answerer[M]) -> None:
        if question.reply is None:
            return
        answer: msgspec.Struct
        try:
            message = decode(question.payload, kind)
            answer = await handle(Asked(message, question.headers.get(TRACE_HEADER), question.subject))
        except InvalidMessage as error:
            answer = QuestionRefused(message=str(error))
        except WorldError as error:
            answer = QuestionRefused(message=f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001  # a fault in one answer must not end the service
            self.log.error("question on %s failed: %s", question.subject, fault(error))
            answer = QuestionRefused(message=f"internal error: {type(error).__name__}")
        try:
            await self.bus.send(question.reply, encode(answer))
        except BusError as error:
            self.log.warning("answer on %s not sent: %s", question.subject, error)


class _GivenBack:
    """Give deliveries back, or bury them, when handling them fails; cancellation passes through."""

    def __init__(self, host: Host, stream: str, deliveries: Sequence[Delivery]) -> None:
        self._host = host
        self._stream = stream
        self._deliveries = deliveries

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            return False
        if not isinstance(error, Exception):
            await self._host.give_back(*self._deliveries)
            return False
        for delivery in self._deliveries:
            await self._failed(delivery, error)
        return not of_kind(error, BusClosed)

    async def _failed(self, delivery: Delivery, error: Exception) -> None:
        if of_kind(error, WorldError):
            self._host.log.warning("%s: given back: %s", delivery.subject, type(error).__name__)
            await self._host.postpone(delivery, WORLD_RETRY_DELAY_S)
            return
        self._host.log.error("%s failed: %s", delivery.subject, fault(error))
        if delivery.delivered >= DELIVERIES_MAX:
            await self._host.bury(self._stream, delivery, reason="failed", detail=fault(error))
        else:
            await self._host.postpone(delivery, min(2.0 ** (delivery.delivered - 1), RETRY_DELAY_MAX_S))


def of_kind(error: BaseException, kind: type[Exception]) -> bool:
    """Tell whether an error is of `kind`, or a group (of tasks that failed together) of nothing else."""
    if isinstance(error, BaseExceptionGroup):
        return all(of_kind(part, kind) for part in error.exceptions)
    return isinstance(error, kind)


def header_text(text: str, characters_max: int = 500) -> str:
    """Return `text` as a header value: one line of printable ASCII, bounded."""
    line = " ".join(text.split())[:characters_max]
    shown = "".join(char if char.isprintable() else "?" for char in line)
    return shown.encode("ascii", "backslashreplace").decode()
