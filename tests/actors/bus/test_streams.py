"""What a stored message is promised, on the model and on a real server alike."""

import pytest

from temporality.actors.bus.port import BusError, PublishRefused, WrongLastSequence
from temporality.protocol.streams import Retention, StreamSpec


async def test_a_publish_that_returns_has_been_stored_under_the_next_sequence(bus, other, stream):
    spec = await stream()
    first = await bus.publish(f"{spec.name}.a", b"one", message_id="1")
    second = await bus.publish(f"{spec.name}.a", b"two", message_id="2")
    assert (first.stream, first.sequence, second.sequence) == (spec.name, 1, 2)
    assert [m.payload for m in await other.read(spec.name, f"{spec.name}.a")] == [b"one", b"two"]


async def test_any_bytes_come_back_as_they_were(bus, stream):
    spec = await stream()
    payload = bytes(range(256)) + b"\r\nMSG x 1 1\r\n"
    await bus.publish(f"{spec.name}.a", payload, message_id="1")
    await bus.publish(f"{spec.name}.b", b"", message_id="2")
    assert (await bus.read(spec.name, f"{spec.name}.a"))[0].payload == payload
    last = await bus.last(spec.name, f"{spec.name}.b")
    assert last is not None
    assert last.payload == b""


async def test_the_same_id_again_is_a_duplicate_and_changes_nothing(bus, stream):
    spec = await stream()
    first = await bus.publish(f"{spec.name}.a", b"one", message_id="1")
    again = await bus.publish(f"{spec.name}.a", b"one", message_id="1")
    assert (again.sequence, again.duplicate, first.duplicate) == (first.sequence, True, False)
    assert len(await bus.read(spec.name, f"{spec.name}.a")) == 1


async def test_expected_last_zero_means_that_there_is_none(bus, stream):
    spec = await stream()
    await bus.publish(f"{spec.name}.a", b"one", expected_last=0)
    with pytest.raises(WrongLastSequence):
        await bus.publish(f"{spec.name}.a", b"two", expected_last=0)
    assert [m.payload for m in await bus.read(spec.name, f"{spec.name}.a")] == [b"one"]


async def test_expected_last_is_the_subjects_own_and_not_the_streams(bus, stream):
    spec = await stream()
    first = await bus.publish(f"{spec.name}.a", b"one", expected_last=0)
    await bus.publish(f"{spec.name}.b", b"other", expected_last=0)
    second = await bus.publish(f"{spec.name}.a", b"two", expected_last=first.sequence)
    assert second.sequence == 3


async def test_expected_last_may_refer_to_another_subject(bus, stream):
    spec = await stream()
    lock = await bus.publish(f"{spec.name}.lock", b"", expected_last=0)
    await bus.publish(
        f"{spec.name}.a", b"one", expected_last=lock.sequence, expected_subject=f"{spec.name}.lock"
    )
    with pytest.raises(WrongLastSequence):
        await bus.publish(f"{spec.name}.a", b"two", expected_last=0, expected_subject=f"{spec.name}.lock")


async def test_the_repeat_of_ones_own_stored_message_looks_like_a_lost_race(bus, stream):
    spec = await stream()
    await bus.publish(f"{spec.name}.a", b"one", message_id="1", expected_last=0)
    with pytest.raises(WrongLastSequence):
        await bus.publish(f"{spec.name}.a", b"one", message_id="1", expected_last=0)
    last = await bus.last(spec.name, f"{spec.name}.a")
    assert last is not None
    assert last.headers["Nats-Msg-Id"] == "1"


async def test_a_publish_that_could_not_be_repeated_is_a_mistake_of_the_caller(bus, stream):
    spec = await stream()
    with pytest.raises(ValueError, match="message_id or expected_last"):
        await bus.publish(f"{spec.name}.a", b"one")


async def test_a_subject_that_no_stream_keeps_is_refused(bus):
    with pytest.raises(PublishRefused, match="no stream"):
        await bus.publish("nobody.keeps.this", b"one", message_id="1", timeout_s=0.3)


async def test_a_message_that_is_too_large_is_refused(bus, stream):
    spec = await stream()
    with pytest.raises(PublishRefused, match="too many"):
        await bus.publish(f"{spec.name}.a", bytes(1024 * 1024 + 1), message_id="1")


async def test_readers_see_the_senders_headers_and_the_id_but_not_the_servers(bus, stream):
    spec = await stream()
    subject = f"{spec.name}.a"
    await bus.publish(subject, b"x", message_id="1", headers={"traceparent": "00-a"}, expected_last=0)
    wanted = {"traceparent": "00-a", "Nats-Msg-Id": "1"}
    last = await bus.last(spec.name, subject)
    assert last is not None
    assert (await bus.read(spec.name, subject))[0].headers == last.headers == wanted
    async with bus.follow(spec.name, subject) as messages:
        assert (await anext(messages)).headers == wanted


async def test_last_is_the_newest_that_matches_or_none(bus, stream):
    spec = await stream()
    assert await bus.last(spec.name, f"{spec.name}.*.x") is None
    await bus.publish(f"{spec.name}.a.x", b"one", message_id="1")
    await bus.publish(f"{spec.name}.b.x", b"two", message_id="2")
    await bus.publish(f"{spec.name}.b.y", b"three", message_id="3")
    last = await bus.last(spec.name, f"{spec.name}.*.x")
    assert last is not None
    assert (last.subject, last.payload, last.sequence) == (f"{spec.name}.b.x", b"two", 2)


async def test_read_begins_above_after_stops_at_the_count_and_says_what_is_left(bus, stream):
    spec = await stream()
    for number in range(6):
        await bus.publish(f"{spec.name}.{number % 2}", str(number).encode(), message_id=str(number))
    found = await bus.read(spec.name, f"{spec.name}.*", after=2, count_max=3)
    assert [(m.payload, m.sequence, m.pending) for m in found] == [(b"2", 3, 3), (b"3", 4, 2), (b"4", 5, 1)]
    assert [m.sequence for m in await bus.read(spec.name, f"{spec.name}.0", after=1)] == [3, 5]
    assert await bus.read(spec.name, f"{spec.name}.*", after=6) == []


async def test_follow_gives_what_is_there_and_then_what_comes_in_order(bus, other, stream):
    spec = await stream()
    for number in range(3):
        await bus.publish(f"{spec.name}.a", str(number).encode(), message_id=str(number))
    async with bus.follow(spec.name, f"{spec.name}.a", after=1) as messages:
        assert [(m.payload, m.pending) for m in [await anext(messages), await anext(messages)]] == [
            (b"1", 1),
            (b"2", 0),
        ]
        await other.publish(f"{spec.name}.b", b"not asked for", message_id="b")
        await other.publish(f"{spec.name}.a", b"3", message_id="3")
        live = await anext(messages)
    assert (live.payload, live.sequence, live.pending) == (b"3", 5, 0)


async def test_follow_sees_a_thousand_messages_without_gap_or_repeat(bus, stream):
    spec = await stream()
    for number in range(1000):
        await bus.publish(f"{spec.name}.a", b"x" * 100, message_id=str(number))
    async with bus.follow(spec.name, f"{spec.name}.>") as messages:
        assert [(await anext(messages)).sequence for _ in range(1000)] == list(range(1, 1001))


async def test_a_work_queue_can_not_be_followed(bus, stream):
    spec = await stream(Retention.WORK_QUEUE)
    with pytest.raises(BusError):
        async with bus.follow(spec.name, f"{spec.name}.a"):
            pass


@pytest.mark.parametrize(
    ("options", "left"),
    [({"below": 3}, [3, 4]), ({"keep": 1}, [4]), ({}, []), ({"below": 1}, [1, 2, 3, 4])],
    ids=["below", "keep", "all", "below the first"],
)
async def test_purge_removes_just_what_it_was_told(bus, stream, options, left):
    spec = await stream()
    for number in range(4):
        await bus.publish(f"{spec.name}.a", b"", message_id=str(number))
    await bus.publish(f"{spec.name}.b", b"", message_id="b")
    await bus.purge(spec.name, f"{spec.name}.a", **options)
    assert [m.sequence for m in await bus.read(spec.name, f"{spec.name}.a")] == left
    assert [m.sequence for m in await bus.read(spec.name, f"{spec.name}.b")] == [5]


async def test_a_fully_purged_subject_expects_zero_again(bus, stream):
    spec = await stream()
    await bus.publish(f"{spec.name}.a", b"", expected_last=0)
    await bus.purge(spec.name, f"{spec.name}.a")
    assert (await bus.publish(f"{spec.name}.a", b"", expected_last=0)).sequence == 2


async def test_declaring_again_keeps_what_is_stored(bus, stream):
    spec = await stream()
    await bus.publish(f"{spec.name}.a", b"one", message_id="1")
    await bus.declare([spec])
    wider = StreamSpec(
        name=spec.name,
        subjects=(*spec.subjects, f"more{spec.name}.>"),
        retention=spec.retention,
        private=True,
    )
    await bus.declare([wider])
    await bus.publish(f"more{spec.name}.a", b"two", message_id="2")
    assert len(await bus.read(spec.name, ">")) == 2


async def test_a_declaration_that_would_lose_messages_is_refused(bus, stream):
    spec = await stream()
    await bus.publish(f"{spec.name}.a", b"one", message_id="1")
    queue = StreamSpec(name=spec.name, subjects=spec.subjects, retention=Retention.WORK_QUEUE, private=True)
    with pytest.raises(BusError):
        await bus.declare([queue])
    assert len(await bus.read(spec.name, f"{spec.name}.a")) == 1


async def test_two_streams_can_not_keep_the_same_subject(bus, stream):
    spec = await stream()
    rival = StreamSpec(
        name=f"{spec.name}R", subjects=(f"{spec.name}.*",), retention=Retention.LIMITS, private=True
    )
    with pytest.raises(BusError):
        await bus.declare([rival])
