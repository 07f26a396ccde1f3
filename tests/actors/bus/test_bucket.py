"""Keys that one writer holds until they expire, on the model and on a real server alike."""

from itertools import count

import pytest

from temporality.actors.clock import VirtualClock

_names = count(1)


@pytest.fixture
async def bucket(bus):
    return await bus.bucket(f"b{next(_names)}", ttl_s=3600)


async def test_what_was_created_is_there_with_its_revision(bucket):
    revision = await bucket.create("k", b"one")
    assert await bucket.get("k") == (b"one", revision)
    assert await bucket.get("other") is None


async def test_a_key_is_created_by_one_only(bucket):
    assert await bucket.create("k", b"one") is not None
    assert await bucket.create("k", b"two") is None
    assert (await bucket.get("k"))[0] == b"one"


async def test_an_update_needs_the_last_revision(bucket):
    first = await bucket.create("k", b"one")
    second = await bucket.update("k", b"two", first)
    assert second is not None
    assert await bucket.update("k", b"three", first) is None
    assert await bucket.get("k") == (b"two", second)


async def test_a_delete_needs_the_last_revision_and_frees_the_key(bucket):
    first = await bucket.create("k", b"one")
    second = await bucket.update("k", b"two", first)
    assert await bucket.delete("k", first) is False
    assert await bucket.delete("k", second) is True
    assert await bucket.get("k") is None
    assert await bucket.create("k", b"three") is not None


async def test_keys_are_the_live_ones_sorted(bucket):
    for key in ("b", "a", "c"):
        await bucket.create(key, b"")
    await bucket.delete("b", (await bucket.get("b"))[1])
    assert await bucket.keys() == ["a", "c"]


async def test_every_connection_sees_the_same_bucket(bus, other):
    name = f"b{next(_names)}"
    mine, theirs = await bus.bucket(name, ttl_s=60), await other.bucket(name, ttl_s=60)
    revision = await mine.create("k", b"one")
    assert await theirs.create("k", b"two") is None
    assert await theirs.update("k", b"two", revision) is not None
    assert await mine.update("k", b"three", revision) is None


async def test_a_key_that_is_not_written_for_the_time_to_live_is_absent(bus, broker):
    bucket = await bus.bucket(f"b{next(_names)}", ttl_s=1)
    revision = await bucket.create("k", b"one")
    revision = await bucket.update("k", b"two", revision)
    ticking = await bus.bucket(f"b{next(_names)}", ttl_s=3600)

    async def found():
        await let_time_pass(broker, ticking)
        return await bucket.get("k")

    await broker.until(found, None)
    assert await bucket.keys() == []
    assert await bucket.update("k", b"three", revision) is None
    assert await bucket.create("k", b"four") is not None


async def let_time_pass(broker, bucket):
    """On the model time stands still until it is moved; on the server a round trip is time."""
    if isinstance(broker.clock, VirtualClock):
        broker.clock.advance(0.1)
    else:
        await bucket.get("tick")


async def test_a_bucket_that_can_not_be_is_refused(bus):
    with pytest.raises(ValueError, match="bucket"):
        await bus.bucket("with space", ttl_s=1)
