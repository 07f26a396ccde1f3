"""Content kept by its digest, on the model and on a real server alike."""

import hashlib

import anyio
import pytest

from temporality.actors.bus.blobs import CHUNK_BYTES, CHUNK_COUNT, chunk_subject, put_blob
from temporality.actors.bus.port import BusError, PublishUnconfirmed, WrongLastSequence
from temporality.protocol.streams import BLOBS_BUCKET


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(autouse=True)
async def _declared(bus):
    await bus.declare([])


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 7])
async def test_content_of_any_size_comes_back(bus, other, size):
    data = hashlib.shake_128(str(size).encode()).digest(size)
    await bus.put_blob(digest_of(data), data)
    assert await other.get_blob(digest_of(data)) == data


async def test_absent_content_is_none(bus):
    assert await bus.get_blob(digest_of(b"never kept")) is None


async def test_keeping_the_same_content_again_stores_nothing(bus):
    data = b"x" * (CHUNK_BYTES + 1)
    digest = digest_of(data)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bus.put_blob, digest, data)
        tasks.start_soon(bus.put_blob, digest, data)
    await bus.put_blob(digest, data)
    assert len(await bus.read(BLOBS_BUCKET, f"{BLOBS_BUCKET}.{digest}.*")) == 2


async def test_content_that_was_kept_half_is_absent_and_can_be_completed(bus):
    data = b"y" * (2 * CHUNK_BYTES)
    digest = digest_of(data)
    await bus.publish(
        chunk_subject(digest, 0), data[:CHUNK_BYTES], headers={CHUNK_COUNT: "2"}, expected_last=0
    )
    assert await bus.get_blob(digest) is None
    await bus.put_blob(digest, data)
    assert await bus.get_blob(digest) == data


async def test_a_wrong_digest_is_a_mistake_of_the_caller(bus):
    with pytest.raises(ValueError, match="SHA-256"):
        await bus.put_blob(digest_of(b"one"), b"two")


async def test_content_that_was_tampered_with_is_not_handed_out(bus):
    digest = digest_of(b"true")
    await bus.publish(chunk_subject(digest, 0), b"false", headers={CHUNK_COUNT: "1"}, expected_last=0)
    with pytest.raises(BusError, match="digest"):
        await bus.get_blob(digest)


async def test_content_that_no_replica_ever_shows_is_unconfirmed_as_any_publish():
    """Callers wait for the bus on `BusError` only: anything else would count as a fault of theirs."""

    class NeverCatchesUp:
        async def publish(self, *_, **__):
            raise WrongLastSequence("another writer is being served")

        async def last(self, *_):
            return None

    with pytest.raises(PublishUnconfirmed, match="chunk"):
        await put_blob(NeverCatchesUp(), digest_of(b"late"), b"late", timeout_s=0.2)
