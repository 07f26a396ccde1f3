"""Asking a retriever: best effort, one deadline, a breaker, and no trust in the answer (A42)."""

import asyncio

import pytest

from temporality.actors.bus.memory import MemoryBus
from temporality.actors.bus.port import BusError
from temporality.actors.supervisor.barrier import OFFERS_BYTES_MAX, LookUp, batch
from temporality.actors.supervisor.planning import Plan, plan, proposals
from temporality.actors.supervisor.retrieval import (
    ANSWER_BYTES_MAX,
    BREAKER_OPEN_S,
    BREAKER_TIMEOUTS,
    Retrieval,
)
from temporality.actors.supervisor.settled import settled_turn
from temporality.protocol import subjects
from temporality.protocol.activation import ActivationSkipped, BlockInjected, HintsQueried
from temporality.protocol.codec import decode, encode
from temporality.protocol.hint import HintBatch, HintBatchAnswer, HintResult, hint_id

from .scenes import Scene, answer, evaluated, failed, item
from .system import System, system

DEADLINE_MS = 800


def planned() -> tuple[HintBatch, Plan]:
    """One failed call's look-up."""
    scene = Scene().start()
    (call,) = scene.model_calls(("look", "{}"))
    scene.finish(call, failed("no such table: users"))
    found, _ = proposals(scene.state, [("tool.failed", evaluated(settled_turn(scene.state, {})))])
    made = plan(scene.state, found)
    return batch(scene.state, made), made


class Asking:
    """A retrieval with a retriever whose answer a test chooses."""

    def __init__(self, on: System, bus: MemoryBus | None = None) -> None:
        self.on = on
        self.retrieval = Retrieval(bus or on.bus, on.clock)
        self.batch, self.plan = planned()

    async def look_up(self) -> LookUp:
        """Look the one situation up."""
        return await self.on.soon(self.looking_up())

    async def looking_up(self) -> LookUp:
        return await self.retrieval.look_up(
            self.batch, self.plan, project="default", deadline_ms=DEADLINE_MS, traceparent=None
        )

    async def serve(self, reply) -> asyncio.Task[None]:
        """Answer every question with the bytes that `reply` makes of it; None: never."""

        async def serve() -> None:
            async with self.on.bus.subscribe(subjects.all_hints_find()) as questions:
                async for question in questions:
                    payload = reply(decode(question.payload, HintBatch))
                    if payload is not None:
                        await self.on.bus.send(question.reply, payload)

        task = asyncio.ensure_future(serve())
        await self.on.quiet()
        return task


def honest(asked: HintBatch) -> bytes:
    """What a retriever answers that knows one item."""
    return encode(HintBatchAnswer(results=tuple(answer(r, [item("k1")]) for r in asked.resolved())))


def silent(_: HintBatch) -> None:
    """What a retriever answers that hangs."""


async def test_answer_in_time_is_a_success_with_its_hints():
    async with system() as on:
        asking = Asking(on)
        await asking.serve(honest)
        found = await asking.look_up()
        assert (found.result, [hint.knowledge_id for hint in found.results[0].hints]) == ("success", ["k1"])


async def test_nothing_found_is_empty_and_no_error():
    """A23."""
    async with system() as on:
        asking = Asking(on)
        await asking.serve(
            lambda asked: encode(HintBatchAnswer(results=tuple(answer(r, []) for r in asked.resolved())))
        )
        assert (await asking.look_up()).result == "empty"


async def test_retriever_that_hangs_costs_the_deadline_and_is_a_timeout():
    async with system() as on:
        asking = Asking(on)
        await asking.serve(silent)
        found = await asking.look_up()
        assert (found.result, found.retrieval_ms) == ("timeout", DEADLINE_MS)
        assert on.clock.monotonic() == DEADLINE_MS / 1000


async def test_absent_retriever_costs_nothing_and_trips_no_breaker():
    async with system() as on:
        asking = Asking(on)
        for _ in range(2 * BREAKER_TIMEOUTS):
            found = await asking.look_up()
            assert (found.result, found.retrieval_ms, found.detail) == (
                "error",
                0,
                "no retriever is running",
            )
        assert not asking.retrieval.breaker_open


class Away(MemoryBus):
    """A bus that can't ask anything."""

    async def request(self, subject, payload, **_):  # noqa: ARG002
        """Fail."""
        raise BusError("no connection")


async def test_bus_that_fails_is_an_error_and_no_exception():
    async with system() as on:
        assert (await Asking(on, Away(on.server, "away")).look_up()).result == "error"


# --- the breaker ------------------------------------------------------------------------------------------


async def tripped(on: System) -> tuple[Asking, asyncio.Task[None]]:
    """A retrieval whose breaker has just opened."""
    asking = Asking(on)
    serving = await asking.serve(silent)
    for _ in range(BREAKER_TIMEOUTS):
        assert not asking.retrieval.breaker_open
        await asking.look_up()
    assert asking.retrieval.breaker_open
    return asking, serving


async def test_three_timeouts_in_a_row_open_the_breaker_for_thirty_seconds():
    async with system() as on:
        asking, _ = await tripped(on)
        await on.quiet(BREAKER_OPEN_S - 0.01)
        assert asking.retrieval.breaker_open
        await on.quiet(0.01)
        assert not asking.retrieval.breaker_open


async def test_an_answer_between_timeouts_counts_them_anew():
    async with system() as on:
        asking = Asking(on)
        for _ in range(2):
            for _ in range(BREAKER_TIMEOUTS - 1):
                serving = await asking.serve(silent)
                await asking.look_up()
                serving.cancel()
            serving = await asking.serve(honest)
            await asking.look_up()
            serving.cancel()
            await on.quiet()
        assert not asking.retrieval.breaker_open


async def test_after_thirty_seconds_one_look_up_is_let_through_however_many_runs_wait():
    """Half-open: while one asks, the others go on without paying its deadline."""
    async with system() as on:
        asking, _ = await tripped(on)
        await on.quiet(BREAKER_OPEN_S)
        assert not asking.retrieval.breaker_open
        trial = asyncio.ensure_future(asking.looking_up())
        await on.quiet()
        assert asking.retrieval.breaker_open, "the next run's barrier, while the trial is under way"
        assert (await on.soon(trial)).result == "timeout"
        assert asking.retrieval.breaker_open
        await on.quiet(BREAKER_OPEN_S - 1.0)
        assert asking.retrieval.breaker_open, "a failed trial opens it for as long again"


@pytest.mark.parametrize("reply", [honest, lambda _: b"{", None], ids=["well", "broken", "gone"])
async def test_trial_that_is_answered_at_once_closes_the_breaker(reply):
    async with system() as on:
        asking, serving = await tripped(on)
        serving.cancel()
        if reply is not None:
            await asking.serve(reply)
        await on.quiet(BREAKER_OPEN_S)
        await asking.look_up()
        assert not asking.retrieval.breaker_open
        await asking.look_up()
        assert not asking.retrieval.breaker_open


async def test_open_breaker_is_a_reason_in_the_facts_and_no_look_up():
    scene = Scene().start()
    (call,) = scene.model_calls(("look", "{}"))
    scene.finish(call, failed("quota exceeded"))
    found, _ = proposals(scene.state, [("tool.failed", evaluated(settled_turn(scene.state, {})))])
    made = plan(scene.state, found, breaker_open=True)
    assert made.activations == ()
    assert [fact.reason for fact in made.facts if isinstance(fact, ActivationSkipped)] == ["breaker"]


# --- answers that lie -------------------------------------------------------------------------------------


def lying(change) -> object:
    """Return a reply whose honest results are changed by `change`."""

    def reply(asked: HintBatch) -> bytes:
        honest_results = decode(honest(asked), HintBatchAnswer).results
        return encode({"results": change(honest_results)})

    return reply


def many(count: int, matched: int = 0):
    """Return so many hints of the right activation, each with reasons of so many characters."""

    def change(results: tuple[HintResult, ...]) -> list[object]:
        (result,) = results
        (hint,) = result.hints
        hints = [
            {
                **decode(encode(hint), dict),
                "knowledge_id": f"k{n}",
                "hint_id": hint_id(result.activation_id, f"k{n}", 1),
                "matched": ["x" * matched],
            }
            for n in range(count)
        ]
        return [{**decode(encode(result), dict), "hints": hints}]

    return change


LIES = {
    "no JSON": lambda _: b"\x00",
    "another type": lambda _: b'{"results": 3}',
    "an error": lambda _: b'{"type":"error","message":"no"}',
    "too large": lambda _: b" " * (ANSWER_BYTES_MAX + 1),
    "too few results": lying(lambda _: ()),
    "too many results": lying(lambda results: results * 2),
    "of another activation": lying(
        lambda results: [{**decode(encode(results[0]), dict), "activation_id": "a"}]
    ),
    "success without hints": lying(lambda results: [{**decode(encode(results[0]), dict), "hints": []}]),
    "empty with hints": lying(lambda results: [{**decode(encode(results[0]), dict), "result": "empty"}]),
    "a foreign hint": lying(
        lambda results: [
            {
                **decode(encode(results[0]), dict),
                "hints": [{**decode(encode(results[0].hints[0]), dict), "hint_id": "hint-of-another"}],
            }
        ]
    ),
    "one hint twice": lying(
        lambda results: [{**decode(encode(results[0]), dict), "hints": [*results[0].hints] * 2}]
    ),
    "too many hints": lying(many(65)),
    "reasons too long for a commit": lying(many(2, OFFERS_BYTES_MAX)),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
async def test_answer_that_lies_is_an_error_with_a_word_about_it(lie):
    async with system() as on:
        asking = Asking(on)
        await asking.serve(lie)
        found = await asking.look_up()
        assert (found.result, found.results) == ("error", ())
        assert found.detail


async def test_most_that_an_honest_answer_may_hold_is_taken():
    async with system() as on:
        asking = Asking(on)
        await asking.serve(lying(many(64, 100)))
        assert (await asking.look_up()).result == "success"


async def test_lying_retriever_fails_no_run():
    """Whatever it answers, the barrier closes, and the facts say `error`."""
    async with system() as on:
        await on.supervisor()
        await on.triggers()
        await on.quiet(2.0)
        asking = Asking(on)
        await on.start()
        call = await on.model_call()
        for number, lie in enumerate(LIES.values()):
            serving = await asking.serve(lie)
            await on.model_asks(call, ("look", f'{{"n": {number}}}'))
            await on.finish(await on.tool_call(), failed(f"{'abcdefghijklmnop'[number] * 9} is broken"))
            call = await on.model_call()
            assert call.turn == number + 2
            serving.cancel()
        queried = await on.of(HintsQueried)
        assert {fact.result for fact in queried} == {"error"}
        assert len(queried) >= 5, "until the tool's limit"
        assert await on.of(BlockInjected) == []
