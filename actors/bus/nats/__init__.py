"""The bus over NATS: `connect` gives a `Bus` for as long as its context is open."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio

from temporality.actors.bus.nats.bus import NatsBus
from temporality.actors.bus.nats.connection import Connection
from temporality.actors.bus.nats.version import SERVER_VERSION_MIN, check_server_version

__all__ = ["SERVER_VERSION_MIN", "NatsBus", "check_server_version", "connect"]

CONNECT_TIMEOUT_S = 10.0
"""How long the first connection may take; later ones are tried for ever."""


@asynccontextmanager
async def connect(
    url: str | Sequence[str],
    *,
    name: str,
    user: str | None = None,
    password: str | None = None,
    inbox_prefix: str | None = None,
    timeout_s: float = CONNECT_TIMEOUT_S,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[NatsBus]:
    """Connect to a NATS server, or one of several, as `name`; `url` may hold user and password.

    Answers come to `inbox_prefix`, by default `_INBOX_<user>`, so that a user may be allowed its own only.
    Raises `BusError` if no server answers in time, `UserError` if it is too old. When the connection is over
    for good (a subject this user may not use, a login withdrawn) the body is cancelled and the reason raised
    here, even if the body has no call under way.
    """
    servers = [url] if isinstance(url, str) else list(url)
    prefix = inbox_prefix or _inbox_of(user or urlsplit(servers[0]).username)
    body = anyio.CancelScope()
    connection = Connection(body.cancel)
    with body:
        await connection.open(
            servers,
            name=name,
            user=user,
            password=password,
            inbox_prefix=prefix,
            timeout_s=timeout_s,
            tls=tls,
        )
        try:
            check_server_version(connection.server_version, "nats.url")
            bus = NatsBus(connection)
            await bus.open()
            yield bus
        finally:
            await connection.close()
    if body.cancelled_caught:
        connection.check()


def _inbox_of(user: str | None) -> str:
    return f"_INBOX_{user}" if user else "_INBOX"
