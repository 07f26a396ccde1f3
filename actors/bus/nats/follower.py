"""Reading a stream for ever, in order: a push consumer, made anew whenever a message may be missing.

The server numbers what it sends; a number out of turn, a heartbeat that knows of more, silence for longer
than two heartbeats, or a reconnect all mean the same: start a new consumer after the last message that was
taken. So the reader sees every message once and in order, whatever the connection does. Flow control is
answered only when the reader has come that far, which bounds what waits in memory.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription

from temporality.actors.bus.background import beside
from temporality.actors.bus.mailbox import Mailbox
from temporality.actors.bus.nats.api import JetStreamApi
from temporality.actors.bus.nats.connection import Connection
from temporality.actors.bus.nats.reader import own_headers
from temporality.actors.bus.port import AnswerTimeout, BusError, Stored

HEARTBEAT_S = 2.0
"""While nothing comes the server says this often that it is there."""
SILENCE_MAX_S = 5.0
"""Two heartbeats and some slack; then the consumer counts as lost."""
INACTIVE_S = 10.0
"""The server forgets a consumer that nobody listens to after this time."""

_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _FlowMark:
    """The server waits for an answer here before it sends more."""

    reply: str


class Follower(AsyncIterator[Stored]):
    """The reader's end: takes messages, and answers flow control as it passes it."""

    def __init__(
        self, connection: Connection, api: JetStreamApi, stream: str, subject: str, after: int
    ) -> None:
        self._connection = connection
        self._api = api
        self._stream = stream
        self._subject = subject
        self._taken = after
        self._loop = asyncio.get_running_loop()
        self._inbox = connection.client.new_inbox()
        self._generation = 0
        self._name = ""
        self._consumer_sequence = 0
        self._heard = self._loop.time()
        self._lost = anyio.Event()
        self._subscription: NatsSubscription | None = None
        self.mailbox: Mailbox[Stored | _FlowMark] = Mailbox()

    async def start(self) -> None:
        """Make a consumer that begins after the last message taken."""
        await self.stop()
        self._generation += 1
        self._name = f"follow-{self._inbox.rpartition('.')[2]}-{self._generation}"
        self._consumer_sequence = 0
        self._lost = anyio.Event()
        # A subject of its own for each consumer, literally: the server sees no interest in a wildcard.
        deliver_subject = f"{self._inbox}.{self._generation}"
        self._subscription = await self._connection.subscribe(deliver_subject, self.receive)
        config = {
            "name": self._name,
            "deliver_subject": deliver_subject,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self._taken + 1,
            "filter_subject": self._subject,
            "ack_policy": "none",
            "max_deliver": 1,
            "flow_control": True,
            "idle_heartbeat": int(HEARTBEAT_S * _NS),
            "inactive_threshold": int(INACTIVE_S * _NS),
            "mem_storage": True,
            "num_replicas": 1,
            "replay_policy": "instant",
        }
        await self._api.call(
            f"CONSUMER.CREATE.{self._stream}.{self._name}.{self._subject}",
            {"stream_name": self._stream, "config": config},
        )
        self._heard = self._loop.time()

    async def stop(self) -> None:
        """Listen to the present consumer no longer; the server forgets it."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await self._connection.unsubscribe(subscription)

    async def keep(self) -> None:
        """Make a new consumer whenever the present one is lost, until cancelled."""
        while True:
            with anyio.move_on_after(HEARTBEAT_S):
                await self._lost.wait()
            if not self._connection.client.is_connected:
                self._lost.set()
                await anyio.sleep(HEARTBEAT_S / 10)
                continue
            if self._lost.is_set() or self._loop.time() > self._heard + SILENCE_MAX_S:
                try:
                    await self.start()
                except AnswerTimeout:
                    self._lost.set()
                except BusError as error:
                    self.mailbox.close(error)
                    return

    def lose(self) -> None:
        """Count the present consumer as lost."""
        self._lost.set()

    def receive(self, message: Msg) -> None:
        """Take what the server sends: the next message, or a sign of life."""
        if not message.reply.startswith("$JS.ACK."):
            self._on_status(message)
            return
        tokens = message.reply.split(".")
        if len(tokens) != 9:
            del tokens[2:4]  # newer servers may name domain and account
        if tokens[3] != self._name or self._lost.is_set():
            return
        self._heard = self._loop.time()
        sequence, consumer_sequence, pending = int(tokens[5]), int(tokens[6]), int(tokens[8])
        if consumer_sequence != self._consumer_sequence + 1:
            self._lost.set()
            return
        self._consumer_sequence = consumer_sequence
        self._taken = sequence
        self.mailbox.put(
            Stored(message.subject, message.data, sequence, own_headers(message.headers), pending)
        )

    async def __anext__(self) -> Stored:
        """Return the next message; cancelling loses none."""
        while True:
            item = await self.mailbox.__anext__()
            if isinstance(item, Stored):
                return item
            await self._connection.post(item.reply, b"")

    def _on_status(self, message: Msg) -> None:
        if message.subject != f"{self._inbox}.{self._generation}":
            return
        self._heard = self._loop.time()
        headers = message.headers or {}
        if headers.get("Status") != "100":
            self._lost.set()
            return
        stalled = message.reply or headers.get("Nats-Consumer-Stalled")
        if stalled:
            self.mailbox.put(_FlowMark(stalled))
        elif int(headers.get("Nats-Last-Consumer", "0")) != self._consumer_sequence:
            self._lost.set()


@asynccontextmanager
async def following(
    connection: Connection, api: JetStreamApi, stream: str, subject: str, after: int
) -> AsyncIterator[Follower]:
    """Iterate over a stream while the context is open; see `Bus.follow`."""
    follower = Follower(connection, api, stream, subject, after)
    withdraw = [connection.on_close(follower.mailbox.close), connection.on_resume(follower.lose)]
    try:
        await follower.start()
        async with beside(follower.keep):
            yield follower
    finally:
        for undo in withdraw:
            undo()
        follower.mailbox.close()
        with anyio.CancelScope(shield=True):
            await follower.stop()
