"""What core messages are promised, on the model and on a real server alike."""

import anyio
import pytest

from temporality.actors.bus.port import AnswerTimeout, BusClosed, NoResponders


async def test_a_question_gets_the_answer_and_its_headers(bus, other, broker):
    async with other.subscribe("ask.weather") as questions, anyio.create_task_group() as tasks:

        async def answer():
            question = await anext(questions)
            assert (question.payload, question.headers["traceparent"]) == (b"today?", "00-a")
            await other.send(question.reply, b"rain", headers={"traceparent": "00-b"})

        tasks.start_soon(answer)
        found = await broker.soon(
            bus.request("ask.weather", b"today?", timeout_s=5, headers={"traceparent": "00-a"})
        )
    assert (found.payload, dict(found.headers)) == (b"rain", {"traceparent": "00-b"})


async def test_a_question_that_nobody_hears_fails_at_once(bus):
    with pytest.raises(NoResponders):
        await bus.request("ask.nobody", b"", timeout_s=3600)


async def test_a_question_that_nobody_answers_fails_at_its_deadline(bus, other, broker):
    async with other.subscribe("ask.silent"):
        with pytest.raises(AnswerTimeout):
            await broker.soon(bus.request("ask.silent", b"", timeout_s=0.2))


async def test_answers_find_their_questions_among_many(bus, other):
    async with other.subscribe("ask.echo") as questions, anyio.create_task_group() as tasks:

        async def answer_in_reverse():
            asked = [await anext(questions) for _ in range(20)]
            for question in reversed(asked):
                await other.send(question.reply, question.payload)

        async def ask(number):
            answer = await bus.request("ask.echo", str(number).encode(), timeout_s=10)
            assert answer.payload == str(number).encode()

        tasks.start_soon(answer_in_reverse)
        for number in range(20):
            tasks.start_soon(ask, number)


async def test_a_cancelled_question_leaves_the_others_alone(bus, other):
    async with other.subscribe("ask.echo") as questions, anyio.create_task_group() as tasks:

        async def ask():
            assert (await bus.request("ask.echo", b"kept", timeout_s=10)).payload == b"kept"

        async def ask_and_give_up():
            with anyio.CancelScope() as scope:
                tasks.start_soon(answer, scope)
                await bus.request("ask.echo", b"given up", timeout_s=10)

        async def answer(scope):
            asked = [await anext(questions) for _ in range(2)]
            scope.cancel()
            for question in asked:
                await other.send(question.reply, question.payload)

        tasks.start_soon(ask)
        tasks.start_soon(ask_and_give_up)


async def test_every_plain_subscriber_hears_and_one_of_each_queue_group(bus, other, broker):
    async with (
        bus.subscribe("news.*") as plain,
        other.subscribe("news.>") as wide,
        bus.subscribe("news.*", queue="g") as one,
        other.subscribe("news.*", queue="g") as two,
    ):
        for number in range(20):
            await bus.send("news.x", str(number).encode())
        expected = [str(number).encode() for number in range(20)]
        assert [(await broker.soon(anext(plain))).payload for _ in range(20)] == expected
        assert [(await broker.soon(anext(wide))).payload for _ in range(20)] == expected
        await broker.until(lambda: _count(one, two), 20)
        assert sorted(m.payload for m in (*one.drain(), *two.drain())) == sorted(expected)


async def _count(*mailboxes):
    await anyio.lowlevel.checkpoint()
    return sum(map(len, mailboxes))


async def test_a_message_sent_after_the_subscription_was_entered_arrives(bus, other, broker):
    for number in range(20):
        async with bus.subscribe(f"fresh.{number}") as messages:
            await other.send(f"fresh.{number}", b"x", reply="somewhere")
            message = await broker.soon(anext(messages))
            assert (message.subject, message.reply) == (f"fresh.{number}", "somewhere")


async def test_nothing_arrives_after_leaving(bus, other):
    async with bus.subscribe("left") as messages:
        pass
    await other.send("left", b"x")
    assert [message async for message in messages] == []


async def test_cancelling_the_wait_for_a_message_loses_none(bus, other, broker):
    received = []

    async def take():
        received.append((await anext(messages)).payload)

    async with bus.subscribe("kept") as messages:
        for number in range(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take)
                await other.send("kept", str(number).encode())
                tasks.cancel_scope.cancel()
        while len(received) < 20:
            await broker.soon(take())
    assert received == [str(number).encode() for number in range(20)]


async def test_scattered_questions_gather_their_answers_at_an_inbox(bus, other, broker):
    inbox = f"{bus.inbox()}.1"
    assert bus.inbox() != bus.inbox()
    async with (
        other.subscribe("scatter") as a,
        other.subscribe("scatter") as b,
        bus.subscribe(inbox) as answers,
    ):
        await bus.send("scatter", b"?", reply=inbox)
        for questions, answer in ((a, b"a"), (b, b"b")):
            question = await broker.soon(anext(questions))
            await other.send(question.reply, answer)
        assert {(await broker.soon(anext(answers))).payload for _ in range(2)} == {b"a", b"b"}


async def test_a_stream_answers_whoever_asks_on_its_subjects(bus, broker, stream):
    spec = await stream()
    answer = await broker.soon(bus.request(f"{spec.name}.a", b"stored?", timeout_s=5))
    assert b'"seq"' in answer.payload
    assert await bus.last(spec.name, f"{spec.name}.a") is not None


async def test_closing_ends_what_is_under_way_and_everything_after(bus, other):
    async with other.subscribe("ask.silent") as questions, anyio.create_task_group() as tasks:

        async def close_when_asked():
            await anext(questions)
            await bus.aclose()

        tasks.start_soon(close_when_asked)
        with pytest.raises(BusClosed):
            await bus.request("ask.silent", b"", timeout_s=3600)
    await bus.aclose()
    for call in (
        bus.request("a", b"", timeout_s=1),
        bus.send("a", b""),
        bus.publish("a", b"", message_id="1"),
        bus.last("A", "a"),
        bus.read("A", "a"),
        bus.server_version(),
    ):
        with pytest.raises(BusClosed):
            await call


async def test_the_version_is_one_that_the_bus_can_work_with(bus):
    assert tuple(map(int, (await bus.server_version()).split("."))) >= (2, 12, 0)
