"""The connection: nats-py with settings under which an outage is waited out and a refusal is not silent.

By default nats-py notices a dead server after four minutes, gives up reconnecting for good after sixty
tries, and lets a permission violation look like a timeout. Here a server that stops answering is noticed
within 15 s, reconnecting never ends, and a violation (or a close that nobody asked for) ends the bus with
an error that names the subject.
"""

import asyncio
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

import anyio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription
from nats.errors import ConnectionClosedError, MaxPayloadError, OutboundBufferLimitError
from nats.errors import Error as NatsError

from temporality.actors.bus.port import BusClosed, BusError, PermissionDenied, PublishRefused

PING_INTERVAL_S = 5
PINGS_OUTSTANDING_MAX = 2
"""A server that went silent (a hung machine) is given up after (2 + 1) × 5 s."""
RECONNECT_WAIT_S = 0.1
"""Pause between two tries at one server; a local one is back within a second."""
CONNECT_TIMEOUT_S = 5
"""One try at one server."""
BUFFER_BYTES_MAX = 16 * 1024 * 1024
"""What is sent during an outage waits here; beyond it core messages are dropped, as they may be."""
PENDING_MESSAGES_MAX = 1024 * 1024
PENDING_BYTES_MAX = 1024 * 1024 * 1024
"""Callbacks only move a message into a mailbox, which has its own limit; nats-py's is never met first."""

_VIOLATION = re.compile(r'permissions violation for (?:publish|subscription) to "(?P<subject>[^"]*)"')
_REFUSED_LOGIN = ("authorization", "authentication")


class _LoginRefused(Exception):
    """No use in trying again."""


class Connection:
    """A NATS connection that survives outages; `failure` is set once it is over for good."""

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self.client = Client()
        self.failure: BusError | None = None
        self.dropped = 0
        """Core messages and acknowledgements given up because an outage had filled the buffer."""
        self.on_reconnect: list[Callable[[], None]] = []
        self._resumers: list[Callable[[], object]] = []
        self._on_failure = on_failure
        self._on_close: list[Callable[[BusError], None]] = []
        self._subscribed: list[str] = []
        self._subjects_in_use: list[Callable[[], Sequence[str]]] = [lambda: self._subscribed]
        self._connect_error: Exception | None = None
        self._opening = True
        self._closing = False

    async def open(
        self,
        servers: Sequence[str],
        *,
        name: str,
        user: str | None,
        password: str | None,
        inbox_prefix: str,
        timeout_s: float,
        tls: ssl.SSLContext | None,
    ) -> None:
        """Connect to one of `servers`. Raises `BusError` at the deadline, at once if the login is refused."""
        try:
            with anyio.move_on_after(timeout_s):
                await self.client.connect(
                    servers=list(servers),
                    name=name,
                    user=user,
                    password=password,
                    tls=tls,
                    inbox_prefix=inbox_prefix,
                    error_cb=self._on_error,
                    reconnected_cb=self._on_reconnected,
                    closed_cb=self._on_closed,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=RECONNECT_WAIT_S,  # type: ignore[arg-type]  # annotated int, slept on
                    connect_timeout=CONNECT_TIMEOUT_S,
                    ping_interval=PING_INTERVAL_S,
                    max_outstanding_pings=PINGS_OUTSTANDING_MAX,
                    pending_size=BUFFER_BYTES_MAX,
                )
        except _LoginRefused:
            pass
        except BaseException:
            await self._abandon()
            raise
        self._opening = False
        if not self.client.is_connected:
            await self._abandon()
            hosts = ", ".join(f"{urlsplit(server).hostname}:{urlsplit(server).port}" for server in servers)
            reason = f": {self._connect_error}" if self._connect_error else ""
            raise BusError(f"can't connect to NATS at {hosts}{reason}")

    async def close(self) -> None:
        """Close for good; whatever still waits raises `BusClosed`. Idempotent."""
        self._closing = True
        self._fail(BusClosed("the bus was closed"))
        with anyio.CancelScope(shield=True), anyio.move_on_after(CONNECT_TIMEOUT_S, shield=True):
            await self.client.close()

    def on_close(self, callback: Callable[[BusError], None]) -> Callable[[], None]:
        """Call `callback` with the reason once the connection is over; return what takes this back."""
        self._on_close.append(callback)
        return lambda: self._on_close.remove(callback)

    def on_resume(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call `callback` first thing after a reconnect, awaiting it if it is a coroutine function."""
        self._resumers.append(callback)
        return lambda: self._resumers.remove(callback)

    def name_subjects(self, subjects: Callable[[], Sequence[str]]) -> None:
        """Let a refusal be told with the true spelling of a subject (nats-py reports it in lower case)."""
        self._subjects_in_use.append(subjects)

    def check(self) -> None:
        """Raise what ended the connection, if something has."""
        if self.failure is not None:
            raise self.failure

    @property
    def epoch(self) -> int:
        """How often the connection has been made again; what was sent in an earlier epoch may be lost."""
        return self.client.stats["reconnects"]

    @property
    def server_version(self) -> str:
        """The version that the server last connected to has told."""
        version = self.client.connected_server_version
        return f"{version.major}.{version.minor}.{version.patch}"

    async def post(
        self, subject: str, payload: bytes, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a message, at most once: during a long outage it is dropped, and counted."""
        if self.failure is not None:
            raise self.failure
        try:
            await self.client.publish(subject, payload, reply, dict(headers) if headers else None)
        except OutboundBufferLimitError:
            self.dropped += 1
        except MaxPayloadError as error:
            raise PublishRefused(f"{len(payload)} bytes for {subject} are too many") from error
        except ConnectionClosedError as error:
            raise BusClosed("the bus was closed") from error
        except NatsError as error:
            raise BusError(f"{subject}: {error}") from error

    async def subscribe(
        self, subject: str, callback: Callable[[Msg], object], *, queue: str = ""
    ) -> NatsSubscription:
        """Subscribe a callback that only moves messages on; it must not raise or wait."""

        async def receive(message: Msg) -> None:
            callback(message)

        self.check()
        try:
            subscription = await self.client.subscribe(
                subject,
                queue=queue,
                cb=receive,
                pending_msgs_limit=PENDING_MESSAGES_MAX,
                pending_bytes_limit=PENDING_BYTES_MAX,
            )
        except NatsError as error:
            raise BusError(f"can't subscribe to {subject!r}: {error}") from error
        self._subscribed.append(subject)
        return subscription

    async def settle(self) -> None:
        """Return when the server has seen everything sent so far (after an outage it is sent again anyway).

        Raises what ended the connection, a refused subscription included.
        """
        if self.client.is_connected:
            try:
                # nats-py's flush writes its PING past the commands that still wait to be written, so its
                # PONG proves nothing about them: they must have left first.
                await asyncio.sleep(0)
                while self.client.pending_data_size:
                    await self.client.flush(CONNECT_TIMEOUT_S)
                await self.client.flush(CONNECT_TIMEOUT_S)
            except NatsError:
                self.check()
        self.check()

    async def unsubscribe(self, subscription: NatsSubscription) -> None:
        """End a subscription; what is under way on it is lost."""
        self._subscribed.remove(subscription.subject)
        if self.client.is_closed or self.client.is_draining:
            return
        await subscription.unsubscribe()

    async def drain(self, subscription: NatsSubscription) -> None:
        """End a subscription after its callback has seen everything that was under way on it."""
        if not self.client.is_connected or self.client.is_draining:
            await self.unsubscribe(subscription)
            return
        with anyio.move_on_after(CONNECT_TIMEOUT_S):
            try:
                # Not nats-py's drain, which forgets the subscription too early (see settle).
                await self.client._send_unsubscribe(subscription._id)  # noqa: SLF001  # its only door
                await self.settle()
                while subscription.pending_msgs:  # noqa: ASYNC110  # its callback takes them in a moment
                    await asyncio.sleep(0)
            except (NatsError, BusError):
                pass
        await self.unsubscribe(subscription)

    async def _on_error(self, error: Exception) -> None:
        if self._closing:
            return
        text = str(error).lower()
        violation = _VIOLATION.search(text)
        if violation is not None:
            subject = self._spelled(violation["subject"])
            self._fail(PermissionDenied(f"this NATS user may not use the subject {subject}"))
            return
        self._connect_error = error
        transport = self.client._transport  # noqa: SLF001  # its only door
        if transport is not None and not (self._opening or self.client.is_connected):
            # nats-py opens the next socket without closing one on which the server did not greet.
            transport.close()  # type: ignore[no-untyped-call]
        if self._opening and any(word in text for word in _REFUSED_LOGIN):
            raise _LoginRefused  # nats-py would try for ever; this leaves its connect

    async def _on_reconnected(self) -> None:
        for resume in tuple(self._resumers):
            waiting = resume()
            if asyncio.iscoroutine(waiting):
                await waiting
        for callback in tuple(self.on_reconnect):
            callback()

    async def _on_closed(self) -> None:
        if not self._closing:
            self._fail(BusClosed(f"the server ended the connection: {self.client.last_error}"))

    def _spelled(self, lowered: str) -> str:
        for subjects in self._subjects_in_use:
            for subject in subjects():
                if subject.lower() == lowered:
                    return subject
        return lowered

    def _fail(self, error: BusError) -> None:
        if self.failure is not None:
            return
        self.failure = error
        for callback in tuple(self._on_close):
            callback(error)
        if not self._closing:
            self._on_failure()

    async def _abandon(self) -> None:
        self._closing = True
        with anyio.CancelScope(shield=True), anyio.move_on_after(CONNECT_TIMEOUT_S, shield=True):
            try:
                await self.client.close()
            except NatsError:
                return
