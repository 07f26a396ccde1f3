"""Blobs: content kept by its own SHA-256, in chunks that fit a message.

Chunk `i` of a blob is the only message of its subject, stored with expected sequence 0, so writing a blob
again, or at the same time elsewhere, or after a crash in the middle, only adds the chunks that are missing.
Each chunk says how many there are; a blob with a chunk missing is absent, one that doesn't match its digest
is an error.
"""

import hashlib

import anyio

from temporality.actors.bus.port import Bus, BusError, PublishUnconfirmed, WrongLastSequence
from temporality.protocol.streams import BLOBS_BUCKET

CHUNK_BYTES = 512 * 1024
"""Half of the server's largest message. A stored blob's chunks have the size of this constant when it was
written, so changing it needs a new stream."""
CHUNKS_IN_FLIGHT_MAX = 4
"""Pipelines the chunks of a large blob without filling the connection's buffer."""
CHUNK_COUNT = "Temporality-Chunks"
RETRY_PAUSE_S = 0.05
TIMEOUT_S = 30.0
"""A blob of some hundred megabytes with sync on each chunk."""


def chunk_subject(digest: str, index: int) -> str:
    """Name the subject of one chunk."""
    return f"{BLOBS_BUCKET}.{digest}.{index}"


def check_digest(digest: str, data: bytes) -> None:
    """Raise `ValueError` if `digest` is not the SHA-256 of `data` in lower-case hex."""
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"{digest!r} is not the SHA-256 of these {len(data)} bytes")


async def put_blob(bus: Bus, digest: str, data: bytes, *, timeout_s: float = TIMEOUT_S) -> None:
    """Keep `data` under its digest. Raises as `publish` does; cancelled half-way, the blob stays absent."""
    check_digest(digest, data)
    count = max(1, -(-len(data) // CHUNK_BYTES))
    limit = anyio.CapacityLimiter(CHUNKS_IN_FLIGHT_MAX)
    headers = {CHUNK_COUNT: str(count)}
    failures: list[BusError] = []

    async def put_chunk(index: int) -> None:
        async with limit:
            if failures:
                return
            chunk = data[index * CHUNK_BYTES : (index + 1) * CHUNK_BYTES]
            try:
                await _put_once(bus, chunk_subject(digest, index), chunk, headers, timeout_s)
            except BusError as error:
                failures.append(error)

    if count == 1:
        await _put_once(bus, chunk_subject(digest, 0), data, headers, timeout_s)
        return
    async with anyio.create_task_group() as tasks:
        for index in range(count):
            tasks.start_soon(put_chunk, index)
    if failures:
        raise failures[0]


async def get_blob(bus: Bus, digest: str) -> bytes | None:
    """Return the bytes kept under `digest`, None if absent; raises `BusError` if they don't match it."""
    first = await bus.last(BLOBS_BUCKET, chunk_subject(digest, 0))
    if first is None:
        return None
    chunks = [first.payload]
    for index in range(1, int(first.headers[CHUNK_COUNT])):
        chunk = await bus.last(BLOBS_BUCKET, chunk_subject(digest, index))
        if chunk is None:
            return None
        chunks.append(chunk.payload)
    data = b"".join(chunks)
    if hashlib.sha256(data).hexdigest() != digest:
        raise BusError(f"blob {digest} does not match its digest")
    return data


async def _put_once(bus: Bus, subject: str, chunk: bytes, headers: dict[str, str], timeout_s: float) -> None:
    with anyio.move_on_after(timeout_s):
        while True:
            try:
                await bus.publish(subject, chunk, headers=headers, expected_last=0)
                return
            except WrongLastSequence:
                # There already, or (R3) another writer is just being served: only the leader knows.
                if await bus.last(BLOBS_BUCKET, subject) is not None:
                    return
                await anyio.sleep(RETRY_PAUSE_S)
    raise PublishUnconfirmed(f"a chunk was not confirmed within {timeout_s:g} s")
