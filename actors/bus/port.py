"""What every actor may ask of the bus, and what the bus promises in return.

Two kinds of traffic meet here. *Stored* messages live in a stream until its retention lets them go: a
`publish` that returns has been kept by the server; one that raises `PublishUnconfirmed` may have been kept,
so every stored message has an id, and repeating it with the same id is safe for the dedupe window (120 s).
*Core* messages (`send`, `request`, `subscribe`) reach whoever listens now, at most once.

Nothing here retries on behalf of a caller beyond sending a publish again, with the same id, while its
acknowledgement is missing (after a reconnect, after two seconds of silence, while the server starts): whether
a lost acknowledgement means "won" or "lost" is known only to the one who reads the subject again.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from temporality.protocol.errors import WorldError
from temporality.protocol.streams import StreamSpec

NO_HEADERS: Mapping[str, str] = {}
PUBLISH_TIMEOUT_S = 10.0
"""A publish waits this long for its acknowledgement: an R3 leader change takes about 6 s."""


class BusError(WorldError):
    """The bus could not do what was asked."""


class WrongLastSequence(BusError):
    """The subject's last message is not the expected one, or another writer is being served just now."""


class PublishUnconfirmed(BusError):
    """No acknowledgement came in time; the message may or may not be stored."""


class PublishRefused(BusError):
    """The server refused to store the message (disk full, too large, no such stream); it is not stored."""


class NoResponders(BusError):
    """Nobody subscribes to the question's subject."""


class AnswerTimeout(BusError):
    """No answer came before the deadline."""


class PermissionDenied(BusError):
    """This process's NATS user may not use that subject; fatal, and the message names the subject."""


class BusClosed(BusError):
    """The bus was closed while the call was under way."""


@dataclass(frozen=True, slots=True)
class Message:
    """A core message as received; `reply` is where an answer goes, if one is wanted."""

    subject: str
    payload: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A message of a stream: its stream sequence, and how many matching ones lie behind it in a read."""

    subject: str
    payload: bytes
    sequence: int
    headers: Mapping[str, str] = field(default_factory=dict)
    pending: int = 0


@dataclass(frozen=True, slots=True)
class Published:
    """The acknowledgement of a stored publish; `duplicate` when its id had been stored before."""

    stream: str
    sequence: int
    duplicate: bool = False


class Delivery(Protocol):
    """One delivery of a queue message, to be settled exactly once: `ack`, `nak` or `term`.

    An acknowledgement is no fence: one that comes after `ack_wait` is accepted although somebody else holds
    the message again. Settling is sent, not confirmed: a lost one means a redelivery.
    """

    @property
    def subject(self) -> str: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def sequence(self) -> int: ...
    @property
    def delivered(self) -> int:
        """How often the message has been delivered, this time included."""
        ...

    async def ack(self) -> None: ...
    async def nak(self, delay_s: float = 0.0) -> None: ...
    async def in_progress(self) -> None:
        """Restart the `ack_wait` clock of this delivery."""
        ...

    async def term(self, reason: str) -> None:
        """Give the message up: it is never delivered again."""
        ...


class Bucket(Protocol):
    """A key-value bucket whose keys expire together after the bucket's time-to-live."""

    async def get(self, key: str) -> tuple[bytes, int] | None:
        """Return value and revision, or None if the key is absent, deleted or expired."""
        ...

    async def create(self, key: str, value: bytes) -> int | None:
        """Store a key that must be absent; return its revision, or None if somebody else holds it."""
        ...

    async def update(self, key: str, value: bytes, revision: int) -> int | None:
        """Replace the value if `revision` is still the last; return the new one, or None if it is not."""
        ...

    async def delete(self, key: str, revision: int) -> bool:
        """Delete the key if `revision` is still the last; say whether it was."""
        ...

    async def keys(self) -> list[str]:
        """List the live keys, sorted."""
        ...


class Subscription(Protocol):
    """A stream of core messages; iterating waits for the next one.

    A reader that falls tens of thousands of messages behind loses the newest; `dropped` counts them.
    """

    @property
    def dropped(self) -> int: ...
    def __aiter__(self) -> AsyncIterator[Message]: ...
    async def __anext__(self) -> Message: ...
    def __len__(self) -> int:
        """Return how many messages wait to be read."""
        ...


class Bus(Protocol):
    """The port. An instance belongs to one event loop; every method may raise `BusClosed`."""

    # --- stored ---------------------------------------------------------------------------------------
    async def declare(self, specs: Sequence[StreamSpec], *, replicas: int = 1) -> None:
        """Create or update streams; an update that would lose messages is refused."""
        ...

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
        """Store a message and wait for the server's acknowledgement.

        With `expected_last` the server stores it only if the last sequence of `expected_subject` (default:
        `subject`) is that one; 0 means that there is none. Sent again until it is answered.
        Raises `WrongLastSequence`, `PublishUnconfirmed`, `PublishRefused`. Cancelling leaves it open whether
        the message is stored. `message_id=None` only together with `expected_last`, whose check replaces it.
        """
        ...

    async def schedule(
        self,
        subject: str,
        target: str,
        payload: bytes,
        *,
        at: datetime,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """Store `payload` to be published to `target` (same stream) at `at`; a past time fires at once.

        Scheduling again on the same `subject` replaces the earlier one. Fires at least once.
        """
        ...

    async def purge(self, stream: str, subject: str, *, below: int | None = None, keep: int = 0) -> None:
        """Remove messages of `subject`: those with a sequence under `below`, or all but the last `keep`."""
        ...

    async def last(self, stream: str, subject: str) -> Stored | None:
        """Return the last message of `subject` (wildcards allowed) as the stream's leader has it."""
        ...

    async def read(self, stream: str, subject: str, *, after: int = 0, count_max: int = 256) -> list[Stored]:
        """Return up to `count_max` messages of `subject` with a sequence above `after`, in order.

        May be served by a replica that lags; a reader that knows what it waits for asks again.
        """
        ...

    def follow(
        self, stream: str, subject: str, *, after: int = 0
    ) -> AbstractAsyncContextManager[AsyncIterator[Stored]]:
        """Iterate for ever over messages of `subject` above `after`, in order, without gaps or repeats."""
        ...

    def consume(
        self,
        stream: str,
        *,
        durable: str,
        subject: str,
        ack_wait_s: float,
        in_flight_max: int = 128,
    ) -> AbstractAsyncContextManager[AsyncIterator[Delivery]]:
        """Take messages of a queue, shared with every process that uses the same `durable` name.

        At least once: a delivery not settled within `ack_wait_s` comes again, here or elsewhere. Up to
        `in_flight_max` unsettled deliveries are held here at once; one past `ack_wait_s` no longer counts.
        Leaving the context stops asking for more; deliveries never handed out are given back with `nak`.
        """
        ...

    async def pending(self, stream: str, durable: str) -> tuple[int, int]:
        """Return how many messages wait for a consumer, and how many are delivered but not settled."""
        ...

    # --- core -----------------------------------------------------------------------------------------
    async def send(
        self,
        subject: str,
        payload: bytes,
        *,
        reply: str | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """Send a core message to whoever listens now: at most once, not confirmed."""
        ...

    async def request(
        self, subject: str, payload: bytes, *, timeout_s: float, headers: Mapping[str, str] = NO_HEADERS
    ) -> Message:
        """Ask and return the first answer. Raises `NoResponders` at once, `AnswerTimeout` at the deadline."""
        ...

    def subscribe(
        self, subject: str, *, queue: str | None = None
    ) -> AbstractAsyncContextManager[Subscription]:
        """Receive core messages; with `queue`, each goes to one member of that group.

        When the context is entered the server knows the subscription: a message sent afterwards arrives.
        """
        ...

    def inbox(self) -> str:
        """Return a fresh unique subject prefix for answers (append `.<token>`), under this user's inbox."""
        ...

    # --- kept beside the streams ----------------------------------------------------------------------
    async def bucket(self, name: str, *, ttl_s: float, replicas: int = 1) -> Bucket:
        """Open a key-value bucket, creating it with this time-to-live for all its keys."""
        ...

    async def put_blob(self, digest: str, data: bytes) -> None:
        """Keep `data` under its SHA-256 `digest` (hex); keeping it again changes nothing."""
        ...

    async def get_blob(self, digest: str) -> bytes | None:
        """Return the bytes kept under `digest`, or None; raises `BusError` if they don't match it."""
        ...

    # --- life -----------------------------------------------------------------------------------------
    def on_reconnect(self, callback: Callable[[], None]) -> None:
        """Call `callback` each time the connection to the server is back after a loss."""
        ...

    async def server_version(self) -> str:
        """Return the version of the server behind the bus."""
        ...

    async def aclose(self) -> None:
        """Close the bus; pending calls raise `BusClosed`. Idempotent."""
        ...
