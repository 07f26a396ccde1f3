"""A share of a queue, taken by one standing pull request.

Asking for one message after another costs a round trip each. So a request for as many messages as this
process may still hold stands at the server, which sends each message when it comes; when half of them have
come, or the request has expired, the next request is made. What counts is `credit`, the messages asked for
and not come. A request can vanish without a word (a server killed, a leader changed), and credit with it:
after a reconnect, and when every request must long have expired, the credit is known to be worth nothing
and is asked for again. No loop runs while nothing comes, so a closed connection costs nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription

from temporality.actors.bus.background import beside
from temporality.actors.bus.mailbox import Mailbox
from temporality.actors.bus.nats.api import JetStreamApi
from temporality.actors.bus.nats.connection import Connection
from temporality.actors.bus.nats.reader import own_headers
from temporality.actors.bus.port import AnswerTimeout, BusError, Delivery

PULL_EXPIRES_S = 5.0
"""A request that was lost without a sign holds messages back no longer than this."""
PULL_GRACE_S = 1.0
"""An expired request is told by the server within this time."""
CHECK_S = 0.25
"""How often lost requests and deliveries past their `ack_wait` are looked for."""
ACK_PENDING_MAX = 10_000
"""Unsettled deliveries of all processes together; bounds the server's memory for one consumer."""

_NS = 1_000_000_000
_DATA_REPLY = "$JS.ACK."


class NatsDelivery:
    """One delivery; headers and numbers are read from the message only when asked for."""

    __slots__ = ("_message", "_share", "expires")

    def __init__(self, message: Msg, share: "Share", expires: float) -> None:
        self._message = message
        self._share = share
        self.expires = expires

    @property
    def subject(self) -> str:
        """The subject as stored."""
        return self._message.subject

    @property
    def payload(self) -> bytes:
        """The message's bytes."""
        return self._message.data

    @property
    def headers(self) -> Mapping[str, str]:
        """The sender's headers."""
        return own_headers(self._message.headers)

    @property
    def sequence(self) -> int:
        """The message's sequence in its stream."""
        return int(_numbers(self._message.reply)[1])

    @property
    def delivered(self) -> int:
        """How often the message has been delivered, this time included."""
        return int(_numbers(self._message.reply)[0])

    async def ack(self) -> None:
        """Say that the message is done with."""
        await self._share.settle(self, b"+ACK")

    async def nak(self, delay_s: float = 0.0) -> None:
        """Give the message back, to be delivered again after `delay_s`."""
        body = b"-NAK" if delay_s <= 0 else b'-NAK {"delay": %d}' % int(delay_s * _NS)
        await self._share.settle(self, body)

    async def in_progress(self) -> None:
        """Restart the `ack_wait` clock of this delivery."""
        await self._share.prolong(self)

    async def term(self, reason: str) -> None:
        """Give the message up."""
        await self._share.settle(self, b"+TERM " + reason.replace("\n", " ").encode())

    @property
    def reply(self) -> str:
        """Where the server expects the acknowledgement."""
        return self._message.reply


def _numbers(reply: str) -> list[str]:
    # $JS.ACK.<stream>.<consumer>.<delivered>.<stream sequence>.…; newer servers may name domain and account.
    tokens = reply.split(".")
    return tokens[4:] if len(tokens) == 9 else tokens[6:]


class Share:
    """What one `consume` holds of a queue: its credit at the server and its unsettled deliveries."""

    def __init__(
        self,
        connection: Connection,
        api: JetStreamApi,
        stream: str,
        config: dict[str, object],
        in_flight_max: int,
        ack_wait_s: float,
    ) -> None:
        self._connection = connection
        self._api = api
        self._stream = stream
        self._config = config
        self._in_flight_max = in_flight_max
        self._ack_wait_s = ack_wait_s
        self._loop = asyncio.get_running_loop()
        self._inbox = connection.client.new_inbox()
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{config['durable_name']}"
        self._credit = 0
        self._credit_until = 0.0
        self._unsettled: dict[str, NatsDelivery] = {}
        self._must_create = False
        self._leaving = False
        self._expired = anyio.Event()
        self._subscription: NatsSubscription | None = None
        self._late: list[Delivery] = []
        self.mailbox: Mailbox[Delivery] = Mailbox()

    async def open(self) -> None:
        """Create the consumer and ask for the first messages."""
        await self.create()
        self._subscription = await self._connection.subscribe(self._inbox, self.receive)
        await self.pull()

    async def create(self) -> None:
        """Create the consumer, or leave it as it is when it exists."""
        name, subject = self._config["durable_name"], self._config["filter_subject"]
        body = {"stream_name": self._stream, "config": self._config}
        await self._api.call(f"CONSUMER.CREATE.{self._stream}.{name}.{subject}", body)
        self._must_create = False

    def receive(self, message: Msg) -> None:
        """Take what the server sends: a message, or the status of a request."""
        if not message.reply.startswith(_DATA_REPLY):
            self._on_status(message.headers or {})
            return
        self._credit = max(0, self._credit - 1)
        delivery = NatsDelivery(message, self, self._loop.time() + self._ack_wait_s)
        self._unsettled[message.reply] = delivery
        if not self.mailbox.put(delivery):
            self._late.append(delivery)

    async def settle(self, delivery: NatsDelivery, body: bytes) -> None:
        """Send the last word on a delivery, once, and ask for another message if it is time."""
        held = self._unsettled.pop(delivery.reply, None)
        await self._connection.post(delivery.reply, body)
        if held is not None:
            await self.pull()

    async def prolong(self, delivery: NatsDelivery) -> None:
        """Tell the server that the delivery is still worked on."""
        delivery.expires = self._loop.time() + self._ack_wait_s
        await self._connection.post(delivery.reply, b"+WPI")

    async def pull(self) -> None:
        """Ask for as many messages as may still come, if at most half of the last request is left."""
        if self._leaving or self._must_create or not self._connection.client.is_connected:
            return
        wanted = self._in_flight_max - len(self._unsettled) - self._credit
        if wanted <= 0 or self._credit * 2 > self._in_flight_max:
            return
        self._credit += wanted
        self._credit_until = self._loop.time() + PULL_EXPIRES_S
        body = b'{"batch":%d,"expires":%d}' % (wanted, int(PULL_EXPIRES_S * _NS))
        await self._connection.post(self._next, body, self._inbox)

    async def resume(self) -> None:
        """Ask anew after a reconnect: the server has forgotten every request."""
        self._credit = 0
        await self.pull()

    async def keep(self) -> None:
        """Look after what can get lost, until cancelled."""
        while True:
            with anyio.move_on_after(CHECK_S):
                await self._expired.wait()
                self._expired = anyio.Event()
            now = self._loop.time()
            for reply, delivery in tuple(self._unsettled.items()):
                if delivery.expires <= now:  # the server delivers it again: it no longer counts as held here
                    del self._unsettled[reply]
            if self._credit and now > self._credit_until + PULL_GRACE_S:
                self._credit = 0
            if self._must_create and self._connection.client.is_connected:
                try:
                    await self.create()
                except AnswerTimeout:
                    continue
                except BusError as error:
                    self.mailbox.close(error)
                    return
            await self.pull()

    async def leave(self) -> None:
        """Stop asking, and give back what nobody has taken, also what is still under way."""
        self._leaving = True
        self.mailbox.close()
        if self._subscription is not None:
            await self._connection.drain(self._subscription)
        if self._connection.failure is None:
            for delivery in (*self.mailbox.drain(), *self._late):
                await delivery.nak()

    def _on_status(self, headers: Mapping[str, str]) -> None:
        status = headers.get("Status")
        if status == "100":
            return
        left = headers.get("Nats-Pending-Messages")
        self._credit = max(0, self._credit - int(left)) if left is not None else 0
        if status == "408":
            self._expired.set()
        elif status == "503" or "deleted" in headers.get("Description", "").lower():
            self._must_create = True  # after a pause: JetStream may be starting


@asynccontextmanager
async def consuming(
    connection: Connection,
    api: JetStreamApi,
    *,
    stream: str,
    durable: str,
    subject: str,
    ack_wait_s: float,
    in_flight_max: int,
) -> AsyncIterator[Mailbox[Delivery]]:
    """Take messages of a queue while the context is open; see `Bus.consume`."""
    config: dict[str, object] = {
        "durable_name": durable,
        "name": durable,
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "ack_wait": int(ack_wait_s * _NS),
        "max_deliver": -1,
        "max_ack_pending": ACK_PENDING_MAX,
        "filter_subject": subject,
        "replay_policy": "instant",
    }
    share = Share(connection, api, stream, config, in_flight_max, ack_wait_s)
    withdraw = [connection.on_close(share.mailbox.close), connection.on_resume(share.resume)]
    try:
        await share.open()
        async with beside(share.keep):
            yield share.mailbox
    finally:
        for undo in withdraw:
            undo()
        with anyio.CancelScope(shield=True):
            await share.leave()
