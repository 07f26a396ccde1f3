"""Core subscriptions: messages go from the connection into a mailbox, and from there to whoever iterates."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from nats.aio.msg import Msg

from temporality.actors.bus.mailbox import Mailbox
from temporality.actors.bus.nats.connection import Connection
from temporality.actors.bus.port import Message
from temporality.actors.bus.settings import SUBSCRIPTION_MESSAGES_MAX


@asynccontextmanager
async def subscribed(
    connection: Connection, subject: str, queue: str | None
) -> AsyncIterator[Mailbox[Message]]:
    """Receive messages of `subject` while the context is open; see `Bus.subscribe`."""
    mailbox: Mailbox[Message] = Mailbox(SUBSCRIPTION_MESSAGES_MAX)

    def receive(message: Msg) -> None:
        mailbox.put(Message(message.subject, message.data, message.headers or {}, message.reply or None))

    subscription = await connection.subscribe(subject, receive, queue=queue or "")
    withdraw = connection.on_close(mailbox.close)
    try:
        await connection.settle()  # now the server knows of it
        yield mailbox
    finally:
        withdraw()
        mailbox.close()
        with anyio.CancelScope(shield=True):
            await connection.unsubscribe(subscription)
