"""A key-value bucket as a stream: the layout every NATS client uses, over the port alone.

A key is a subject that keeps one message, its revision is that message's sequence, and the expected
sequence makes `create` and `update` exclusive. The whole stream has one age limit, so a key expires when it
has not been written for that long; no markers are left, so an expired key is simply absent. A write whose
acknowledgement got lost looks refused when it is repeated; each write carries an id of its own, and reading
the key tells whether the refusal came from somebody else.
"""

import uuid
from collections.abc import Mapping

from temporality.actors.bus.port import Bus, Published, Stored, WrongLastSequence

OPERATION = "KV-Operation"
_GONE = frozenset({"DEL", "PURGE"})
_MESSAGE_ID = "Nats-Msg-Id"
KEYS_PAGE = 1024


class StreamBucket:
    """The bucket `name`, kept in the stream `KV_<name>` of `bus`."""

    def __init__(self, bus: Bus, name: str) -> None:
        self._bus = bus
        self._stream = f"KV_{name}"
        self._prefix = f"$KV.{name}."

    async def get(self, key: str) -> tuple[bytes, int] | None:
        """Return value and revision, or None if the key is absent, deleted or expired."""
        last = await self._bus.last(self._stream, self._prefix + key)
        return None if last is None or _is_gone(last) else (last.payload, last.sequence)

    async def create(self, key: str, value: bytes) -> int | None:
        """Store a key that must be absent; return its revision, or None if somebody else holds it."""
        revision = await self._write(key, value, 0)
        if revision is not None:
            return revision
        last = await self._bus.last(self._stream, self._prefix + key)
        if last is not None and not _is_gone(last):
            return None
        return await self._write(key, value, 0 if last is None else last.sequence)

    async def update(self, key: str, value: bytes, revision: int) -> int | None:
        """Replace the value if `revision` is still the last; return the new one, or None if it is not."""
        return await self._write(key, value, revision)

    async def delete(self, key: str, revision: int) -> bool:
        """Delete the key if `revision` is still the last; say whether it was."""
        return await self._write(key, b"", revision, {OPERATION: "DEL"}) is not None

    async def keys(self) -> list[str]:
        """List the live keys, sorted."""
        found: list[str] = []
        after = 0
        while page := await self._bus.read(
            self._stream, self._prefix + ">", after=after, count_max=KEYS_PAGE
        ):
            found.extend(entry.subject.removeprefix(self._prefix) for entry in page if not _is_gone(entry))
            after = page[-1].sequence
        return sorted(found)

    async def _write(
        self, key: str, value: bytes, expected: int, headers: Mapping[str, str] | None = None
    ) -> int | None:
        subject = self._prefix + key
        write_id = uuid.uuid4().hex
        try:
            published: Published = await self._bus.publish(
                subject, value, message_id=write_id, headers=headers or {}, expected_last=expected
            )
        except WrongLastSequence:
            last = await self._bus.last(self._stream, subject)
            mine = last is not None and last.headers.get(_MESSAGE_ID) == write_id
            return last.sequence if last is not None and mine else None
        return published.sequence


def _is_gone(entry: Stored) -> bool:
    return entry.headers.get(OPERATION) in _GONE
