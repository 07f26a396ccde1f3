"""Durable publishing: a message is sent until the server has said whether it is stored.

The answer decides. Acknowledged: done, also as a duplicate of an earlier try with the same id. Wrong last
sequence: a race was lost, or an earlier try of this very message was stored and its acknowledgement lost;
only reading the subject tells, so the caller does. Refused: not stored. Nobody there (JetStream starts, or
a leader is being elected): tried again until the deadline. No answer: unconfirmed, stored or not.
"""

import asyncio
from collections.abc import Mapping

import msgspec
from nats.aio.msg import Msg

from temporality.actors.bus.nats.api import (
    NO_RESPONDERS,
    NOT_READY_CODES,
    RETRY_PAUSE_S,
    ApiFault,
    status_of,
)
from temporality.actors.bus.nats.replies import DeadlinePassed, Replies
from temporality.actors.bus.port import Published, PublishRefused, PublishUnconfirmed, WrongLastSequence

MESSAGE_ID = "Nats-Msg-Id"
EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"

WRONG_LAST_SEQUENCE = 10071
WRONG_LAST_SEQUENCE_IN_PROCESS = 10164
"""R3: another writer of the subject is being served, so this one would come too late."""

SILENCE_S = 2.0
"""A publish that reached a leader in the moment it died is never answered; a copy may reach the next one.
Longer than a slow disk takes, since the copy of an expecting publish that was stored is refused."""


class _Ack(msgspec.Struct, frozen=True):
    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    error: ApiFault | None = None


_decode_ack = msgspec.json.Decoder(_Ack).decode


class Publisher:
    """Publishes to streams and waits for what becomes of it."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies
        self._loop = asyncio.get_running_loop()

    async def publish(
        self,
        subject: str,
        payload: bytes,
        *,
        message_id: str | None,
        headers: Mapping[str, str],
        expected_last: int | None,
        expected_subject: str | None,
        timeout_s: float,
    ) -> Published:
        """Store a message: see `Bus.publish`."""
        sent = dict(headers)
        if message_id is not None:
            sent[MESSAGE_ID] = message_id
        if expected_last is not None:
            sent[EXPECTED_LAST] = str(expected_last)
            if expected_subject is not None:
                sent[EXPECTED_SUBJECT] = expected_subject
        return await self.send(subject, payload, sent, timeout_s=timeout_s)

    async def send(
        self, subject: str, payload: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> Published:
        """Store a message with exactly these headers; raises as `Bus.publish` does."""
        deadline = self._loop.time() + timeout_s
        while True:
            try:
                message: Msg = await self._replies.ask(
                    subject, payload, headers, deadline=deadline, survives=True, again_s=SILENCE_S
                )
            except DeadlinePassed:
                raise PublishUnconfirmed(f"{subject}: no acknowledgement in {timeout_s:g} s") from None
            if status_of(message) == NO_RESPONDERS:
                problem = "no stream keeps this subject, or JetStream is not there"
            else:
                ack = _decode_ack(message.data)
                if ack.error is None:
                    return Published(ack.stream, ack.seq, ack.duplicate)
                problem = _raise_or_retry(subject, ack.error)
            if self._loop.time() + RETRY_PAUSE_S >= deadline:
                raise PublishRefused(f"{subject}: {problem}")
            await asyncio.sleep(RETRY_PAUSE_S)


def _raise_or_retry(subject: str, fault: ApiFault) -> str:
    code = fault.err_code
    if code in (WRONG_LAST_SEQUENCE, WRONG_LAST_SEQUENCE_IN_PROCESS):
        raise WrongLastSequence(f"{subject}: {fault.description}")
    if code not in NOT_READY_CODES:
        raise PublishRefused(f"{subject}: {fault.description} ({code})")
    return fault.description
