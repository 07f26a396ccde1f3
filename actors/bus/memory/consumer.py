"""A durable consumer in memory: who has which message of a queue, and until when.

Messages go to the shares in turn, redeliveries first. A message is pending from its delivery until it is
settled, through any number of redeliveries; an acknowledgement settles it whoever sends it, also one whose
own delivery has expired, because that is what the server does.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from temporality.actors.bus.mailbox import Mailbox
from temporality.actors.bus.memory.faults import Faults
from temporality.actors.bus.memory.stream import Entry, MemoryStream
from temporality.actors.bus.port import Delivery
from temporality.actors.clock import Clock

ACK_PENDING_MAX = 10_000
"""Unsettled deliveries of all shares together, as on the server."""


class MemoryDelivery:
    """One delivery of a queue message."""

    __slots__ = ("_entry", "_share", "delivered")

    def __init__(self, entry: Entry, delivered: int, share: "MemoryShare") -> None:
        self._entry = entry
        self._share = share
        self.delivered = delivered

    @property
    def subject(self) -> str:
        """The subject as stored."""
        return self._entry.subject

    @property
    def payload(self) -> bytes:
        """The message's bytes."""
        return self._entry.payload

    @property
    def headers(self) -> Mapping[str, str]:
        """The sender's headers."""
        return self._entry.headers

    @property
    def sequence(self) -> int:
        """The message's sequence in its stream."""
        return self._entry.sequence

    async def ack(self) -> None:
        """Say that the message is done with."""
        await self._share.settle(self, lambda consumer: consumer.done(self.sequence))

    async def nak(self, delay_s: float = 0.0) -> None:
        """Give the message back, to be delivered again after `delay_s`."""
        await self._share.settle(self, lambda consumer: consumer.again(self.sequence, delay_s))

    async def in_progress(self) -> None:
        """Restart the `ack_wait` clock of this delivery."""
        await self._share.prolong(self)

    async def term(self, reason: str) -> None:  # noqa: ARG002  # the server only tells the reason to watchers
        """Give the message up."""
        await self._share.settle(self, lambda consumer: consumer.done(self.sequence))


class MemoryShare:
    """What one `consume` holds of the queue."""

    def __init__(
        self,
        consumer: "MemoryConsumer",
        in_flight_max: int,
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self.mailbox: Mailbox[Delivery] = Mailbox()
        self.unsettled: set[MemoryDelivery] = set()
        self._consumer = consumer
        self._in_flight_max = in_flight_max
        self._post = post

    @property
    def has_room(self) -> bool:
        """Whether another message may be handed out here."""
        return len(self.unsettled) < self._in_flight_max

    async def settle(self, delivery: MemoryDelivery, word: Callable[["MemoryConsumer"], None]) -> None:
        """Say the last word on a delivery, now or when the connection is back."""

        def say() -> None:
            word(self._consumer)
            self._consumer.dispatch()

        self.unsettled.discard(delivery)
        self._post(say)

    async def prolong(self, delivery: MemoryDelivery) -> None:
        """Tell the consumer that the delivery is still worked on."""
        self._post(lambda: self._consumer.prolong(delivery.sequence))

    def join(self) -> None:
        """Take part in the queue."""
        self._consumer.join(self)

    def vanish(self) -> None:
        """Take part no longer, without a word: what is held comes again after `ack_wait`."""
        self._consumer.drop(self)

    def give_back(self) -> None:
        """Give back what nobody has read, in the order in which it came."""
        for delivery in self.mailbox.drain():
            self._consumer.again(delivery.sequence, 0.0)
        self._consumer.dispatch()


@dataclass
class _Pending:
    delivered: int = 0
    holder: tuple[MemoryShare, MemoryDelivery] | None = None
    cancel: Callable[[], None] = field(default=lambda: None)


class MemoryConsumer:
    """A durable consumer of one stream."""

    def __init__(
        self, stream: MemoryStream, subject: str, ack_wait_s: float, clock: Clock, faults: Faults
    ) -> None:
        self.subject = subject
        self.ack_wait_s = ack_wait_s
        self._stream = stream
        self._clock = clock
        self._faults = faults
        self._position = 0
        self._pending: dict[int, _Pending] = {}
        self._redeliver: deque[int] = deque()
        self._shares: deque[MemoryShare] = deque()
        stream.watchers.append(lambda _entry: self.dispatch())
        stream.removers.append(self._forget)

    def join(self, share: MemoryShare) -> None:
        """Let a share take part."""
        self._shares.append(share)
        self.dispatch()

    def drop(self, share: MemoryShare) -> None:
        """Let a share take part no longer."""
        if share in self._shares:
            self._shares.remove(share)

    def counts(self) -> tuple[int, int]:
        """Return how many messages wait, and how many are delivered but not settled."""
        return self._stream.count_after(self.subject, self._position), len(self._pending)

    def done(self, sequence: int) -> None:
        """Settle a message for good."""
        self._forget(sequence)
        if self._stream.is_queue:
            self._stream.remove(sequence)

    def again(self, sequence: int, delay_s: float) -> None:
        """Deliver a pending message again after `delay_s`."""
        pending = self._pending.get(sequence)
        if pending is None:
            return
        pending.cancel()
        if delay_s > 0:
            self._expire_at(sequence, pending, self._clock.monotonic() + delay_s)
        elif sequence not in self._redeliver:
            self._redeliver.append(sequence)

    def prolong(self, sequence: int) -> None:
        """Restart the clock of a pending message."""
        pending = self._pending.get(sequence)
        if pending is not None and sequence not in self._redeliver:
            pending.cancel()
            self._expire_at(sequence, pending, self._clock.monotonic() + self.ack_wait_s)

    def dispatch(self) -> None:
        """Hand out messages while there are any and somebody has room."""
        while (share := self._free_share()) is not None:
            entry = self._next()
            if entry is None:
                return
            self._deliver(entry, share)
            if self._faults.takes_repeat(entry.subject):
                self.again(entry.sequence, 0.0)

    def _free_share(self) -> MemoryShare | None:
        for _ in range(len(self._shares)):
            self._shares.rotate(-1)
            if self._shares[-1].has_room:
                return self._shares[-1]
        return None

    def _next(self) -> Entry | None:
        while self._redeliver:
            entry = self._stream.entry(self._redeliver.popleft())
            if entry is not None:
                return entry
        if len(self._pending) >= ACK_PENDING_MAX:
            return None
        entry = next(self._stream.after(self.subject, self._position), None)
        if entry is not None:
            self._position = entry.sequence
        return entry

    def _deliver(self, entry: Entry, share: MemoryShare) -> None:
        pending = self._pending.setdefault(entry.sequence, _Pending())
        pending.delivered += 1
        delivery = MemoryDelivery(entry, pending.delivered, share)
        pending.holder = (share, delivery)
        share.unsettled.add(delivery)
        self._expire_at(entry.sequence, pending, self._clock.monotonic() + self.ack_wait_s)
        share.mailbox.put(delivery)

    def _expire_at(self, sequence: int, pending: _Pending, due: float) -> None:
        def expire() -> None:
            if pending.holder is not None:
                share, delivery = pending.holder
                share.unsettled.discard(delivery)
            self.again(sequence, 0.0)
            self.dispatch()

        pending.cancel = self._clock.call_at(due, expire)

    def _forget(self, sequence: int) -> None:
        pending = self._pending.pop(sequence, None)
        if pending is not None:
            pending.cancel()
        if sequence in self._redeliver:
            self._redeliver.remove(sequence)
