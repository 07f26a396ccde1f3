"""A question gets its answer or is told why not, and none of them ends the service."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.lowlevel
import msgspec
import pytest

from temporality.actors.bus.port import BusError
from temporality.actors.host import QUESTIONS_AT_ONCE_MAX, Asked, Host, QuestionRefused
from temporality.protocol.codec import decode, encode
from temporality.protocol.folding import AskPosition, FoldPosition
from temporality.protocol.message import Message

from .world import DEADLINE_S, QUESTION, World


@asynccontextmanager
async def answering(
    host: Host, handle: Callable[[Asked[AskPosition]], Awaitable[msgspec.Struct]]
) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        await tasks.start(
            partial(host.answer, subject=QUESTION, queue="workers", kind=AskPosition, handle=handle)
        )
        yield
        tasks.cancel_scope.cancel()


async def asked(world: World, payload: bytes) -> Message:
    answer = await world.bus.request(QUESTION, payload, timeout_s=DEADLINE_S)
    message: Message = decode(answer.payload, FoldPosition | QuestionRefused)
    return message


async def test_question_gets_its_answer(world: World) -> None:
    async def answer(question: Asked[AskPosition]) -> FoldPosition:
        return FoldPosition(sequence=len(question.subject))

    async with answering(world.host(), answer):
        assert await asked(world, encode(AskPosition())) == FoldPosition(sequence=len(QUESTION))


@pytest.mark.parametrize(
    ("payload", "error", "said"),
    [
        (b"{", None, "truncated"),
        (encode(AskPosition()), BusError("the disk is full"), "BusError: the disk is full"),
        (encode(AskPosition()), RuntimeError("the secret is 4711"), "internal error: RuntimeError"),
    ],
    ids=["malformed", "failing world", "our fault"],
)
async def test_question_that_can_t_be_answered_is_told_so_and_the_next_one_is_answered(
    world: World, payload: bytes, error: Exception | None, said: str
) -> None:
    errors = [error] if error else []

    async def answer(_: Asked[AskPosition]) -> FoldPosition:
        if errors:
            raise errors.pop()
        return FoldPosition(sequence=1)

    async with answering(world.host(), answer):
        refused = await asked(world, payload)
        assert isinstance(refused, QuestionRefused)
        assert said in refused.message
        assert "4711" not in refused.message
        assert await asked(world, encode(AskPosition())) == FoldPosition(sequence=1)


async def test_slow_answer_does_not_hold_up_the_next_question(world: World) -> None:
    release = anyio.Event()
    order = []

    async def answer(question: Asked[AskPosition]) -> FoldPosition:
        order.append(question.traceparent)
        if len(order) == 1:
            await release.wait()
        return FoldPosition(sequence=len(order))

    async with answering(world.host(), answer), anyio.create_task_group() as tasks:
        tasks.start_soon(asked, world, encode(AskPosition()))
        await world.until(lambda: _is(order, 1))
        assert await asked(world, encode(AskPosition())) == FoldPosition(sequence=2)
        release.set()


async def _is(order: list[str | None], count: int) -> bool:
    return len(order) == count


async def test_no_more_questions_are_answered_at_once_than_the_limit_says(model: World) -> None:
    release = anyio.Event()
    begun: list[None] = []

    async def answer(_: Asked[AskPosition]) -> FoldPosition:
        begun.append(None)
        await release.wait()
        return FoldPosition(sequence=len(begun))

    answered: list[Message] = []

    async def ask() -> None:
        answered.append(await asked(model, encode(AskPosition())))

    async with answering(model.host(), answer), anyio.create_task_group() as tasks:
        for _ in range(QUESTIONS_AT_ONCE_MAX + 5):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert len(begun) == QUESTIONS_AT_ONCE_MAX
        release.set()
    assert len(answered) == QUESTIONS_AT_ONCE_MAX + 5
