"""Reading a stream: the last message from its leader, ranges in one batched question to any replica."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import msgspec
from nats.aio.msg import Msg

from temporality.actors.bus.nats.api import ApiError, JetStreamApi, status_of
from temporality.actors.bus.nats.publisher import MESSAGE_ID
from temporality.actors.bus.nats.replies import DeadlinePassed, Replies, Waiting
from temporality.actors.bus.port import Stored

READ_TIMEOUT_S = 3.0
"""One batch from one server; on silence the leader is asked instead."""
BATCH_BYTES_MAX = 16 * 1024 * 1024
"""Bounds what one read holds in memory; a reader asks again for the rest."""
NO_MESSAGE = 10037


class _StoredMessage(msgspec.Struct, frozen=True):
    subject: str
    seq: int
    data: str = ""
    hdrs: str = ""


class _GetAnswer(msgspec.Struct, frozen=True):
    message: _StoredMessage


_decode_get = msgspec.json.Decoder(_GetAnswer).decode


def own_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers that the sender set, with the message id, without those the server adds or reads."""
    if not headers:
        return {}
    return {k: v for k, v in headers.items() if not k.startswith("Nats-") or k == MESSAGE_ID}


class _Batch(Waiting):
    """Collects the answers to one batched question; ends with a status."""

    __slots__ = ("found",)

    def __init__(self, *question: Any) -> None:
        super().__init__(*question)
        self.found: list[Stored] = []

    def receive(self, message: Msg) -> None:
        """Take a message of the batch, or its end: 204, or 404 and 503 when there is nothing to be had."""
        if status_of(message) is not None:
            self.settle(self.found)
            return
        headers = message.headers or {}
        self.found.append(
            Stored(
                headers["Nats-Subject"],
                message.data,
                int(headers["Nats-Sequence"]),
                own_headers(headers),
                int(headers.get("Nats-Num-Pending", "0")),
            )
        )


class Reader:
    """Reads stored messages without a consumer."""

    def __init__(self, replies: Replies, api: JetStreamApi) -> None:
        self._replies = replies
        self._api = api
        self._loop = asyncio.get_running_loop()

    async def last(self, stream: str, subject: str) -> Stored | None:
        """Return the subject's last message as the leader has it."""
        return await self._get(stream, {"last_by_subj": subject})

    async def read(self, stream: str, subject: str, after: int, count_max: int) -> list[Stored]:
        """Return messages of `subject` above `after`; see `Bus.read`.

        A replica without any is not believed: the leader is asked for the next one.
        """
        found = await self._batch(stream, subject, after, count_max)
        if found:
            return found
        first = await self._get(stream, {"seq": after + 1, "next_by_subj": subject})
        return [] if first is None else [first]

    async def _batch(self, stream: str, subject: str, after: int, count_max: int) -> list[Stored]:
        question = {
            "seq": after + 1,
            "next_by_subj": subject,
            "batch": count_max,
            "max_bytes": BATCH_BYTES_MAX,
        }
        try:
            found: list[Stored] = await self._replies.ask(
                f"$JS.API.DIRECT.GET.{stream}",
                msgspec.json.encode(question),
                None,
                deadline=self._loop.time() + READ_TIMEOUT_S,
                survives=False,
                kind=_Batch,
            )
        except DeadlinePassed:
            return []
        return found

    async def _get(self, stream: str, question: dict[str, object]) -> Stored | None:
        try:
            answer = await self._api.call(f"STREAM.MSG.GET.{stream}", question)
        except ApiError as error:
            if error.fault.err_code == NO_MESSAGE:
                return None
            raise
        message = _decode_get(answer).message
        headers = own_headers(_header_block(base64.b64decode(message.hdrs)))
        return Stored(message.subject, base64.b64decode(message.data), message.seq, headers)


def _header_block(raw: bytes) -> dict[str, str]:
    lines = raw.decode("utf-8", "replace").split("\r\n")[1:]  # the first one is the protocol's version
    pairs = (line.partition(":") for line in lines if line)
    return {name.strip(): value.strip() for name, _, value in pairs}
