"""JetStream's request API: one JSON question to the stream's leader, asked again while the server starts.

Every question sent through here may be repeated (reading, or creating what exists already), so an outage is
waited out until the deadline instead of being handed to the caller.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from nats.aio.msg import Msg

from temporality.actors.bus.nats.replies import DeadlinePassed, Replies
from temporality.actors.bus.port import AnswerTimeout, BusError

API_TIMEOUT_S = 15.0
"""A leader change takes 6 s, the recovery of a large store some more."""
TRY_TIMEOUT_S = 3.0
"""A question that reached a server which then lost the leadership is never answered: ask again."""
RETRY_PAUSE_S = 0.1
"""Between two tries while JetStream starts or elects; a start takes some tenths of a second."""

NO_RESPONDERS = "503"
NOT_READY_CODES = frozenset({10008, 10064, 10118})
"""The cluster has no leader yet, or the stream or consumer is not available on it yet."""

_PREFIX = "$JS.API."


class ApiFault(msgspec.Struct, frozen=True):
    """The server's description of what it could not do."""

    code: int = 0
    err_code: int = 0
    description: str = ""


class _Answer(msgspec.Struct, frozen=True):
    error: ApiFault | None = None


class ApiError(BusError):
    """The server refused a JetStream API call; `fault` says why."""

    def __init__(self, call: str, fault: ApiFault) -> None:
        self.fault = fault
        super().__init__(f"{call}: {fault.description} ({fault.err_code})")


_decode_answer = msgspec.json.Decoder(_Answer).decode


def status_of(message: Msg) -> str | None:
    """Return the status of a message that is only a status (no payload), else None."""
    if message.headers and not message.data:
        return message.headers.get("Status")
    return None


class JetStreamApi:
    """Calls of `$JS.API`; each returns the answer's bytes, to be decoded by the one who knows its type."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies
        self._loop = asyncio.get_running_loop()

    async def call(
        self, name: str, body: Mapping[str, Any] | None = None, *, timeout_s: float = API_TIMEOUT_S
    ) -> bytes:
        """Call `$JS.API.<name>`. Raises `ApiError` if refused, `AnswerTimeout` if unanswered to the end."""
        payload = msgspec.json.encode(body) if body else b""
        deadline = self._loop.time() + timeout_s
        problem = "no answer"
        while (left := deadline - self._loop.time()) > 0:
            try:
                message: Msg = await self._replies.ask(
                    _PREFIX + name,
                    payload,
                    None,
                    deadline=self._loop.time() + min(left, TRY_TIMEOUT_S),
                    survives=True,
                )
            except DeadlinePassed:
                continue
            if status_of(message) == NO_RESPONDERS:
                problem = "JetStream is not there"
            else:
                fault = _decode_answer(message.data).error
                if fault is None:
                    return message.data
                if fault.err_code not in NOT_READY_CODES:
                    raise ApiError(name, fault)
                problem = fault.description
            await asyncio.sleep(RETRY_PAUSE_S)
        raise AnswerTimeout(f"{name}: {problem} within {timeout_s:.0f} s")
