"""The scatter to the evaluators: who is asked, who is waited for, and what a bad one costs (A11)."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

import anyio
import pytest

from temporality.actors.bus.memory import MemoryBus
from temporality.actors.bus.port import Message
from temporality.actors.bus.service import Endpoint, Service, ServiceError, serve
from temporality.actors.supervisor.evaluators import (
    ROSTER_ABSENCES_MAX,
    ROSTER_INTERVAL_S,
    Evaluators,
    Gathered,
)
from temporality.protocol import subjects
from temporality.protocol.codec import encode
from temporality.protocol.trigger import TRIGGER_SERVICE, Candidate, TurnEvaluated
from temporality.protocol.turn import TurnSettled

from .system import System, system

DEADLINE_MS = 250
TURN = TurnSettled(project="default", run="r1", turn=1, calls=())


class Asking:
    """Evaluators as a supervisor keeps them, and the processes that play them."""

    def __init__(self, on: System) -> None:
        self.on = on
        self.evaluators = Evaluators(on.host(on.bus, "supervisor", "s"))
        self.asked: list[str] = []
        self.stack = AsyncExitStack()

    async def __aenter__(self) -> "Asking":
        await self.on.soon(self.on.tasks.start(self.evaluators.run))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stack.aclose()

    async def join(
        self,
        kind: str,
        *,
        after_s: float = 0.0,
        delays_s: Sequence[float] = (),
        says: Callable[[str], bytes] | None = None,
    ) -> Service:
        """Start an evaluator that answers after a time (first those of `delays_s`, then always `after_s`).

        It answers with one candidate, or what `says` makes of its id.
        """
        service: list[Service] = []
        delays = iter(delays_s)

        async def evaluate(_: Message) -> bytes:
            self.asked.append(kind)
            delay_s = next(delays, after_s)
            if delay_s:
                await self.on.clock.sleep_until(self.on.clock.monotonic() + delay_s)
            instance = service[0].info.id
            if says is not None:
                return says(instance)
            candidate = Candidate(situation=f"{kind} has seen it")
            return encode(TurnEvaluated(instance=instance, candidates=(candidate,)))

        endpoint = Endpoint(
            name="evaluate", subject=subjects.all_turns_settled(), handler=evaluate, queue=kind
        )
        bus = MemoryBus(self.on.server, kind)
        opened = serve(
            bus,
            name=TRIGGER_SERVICE,
            version="1.0.0",
            endpoints=[endpoint],
            metadata={"kind": kind},
            clock=self.on.clock,
        )
        service.append(await self.stack.enter_async_context(opened))
        return service[0]

    async def known(self) -> None:
        """Let the roster be renewed."""
        await self.on.quiet(2 * ROSTER_INTERVAL_S)

    async def ask(self) -> Gathered:
        """Put a turn to them."""
        asked = self.evaluators.ask(TURN, deadline_ms=DEADLINE_MS, traceparent=None)
        return await self.on.soon(asked)

    async def timed(self) -> tuple[Gathered, float]:
        """Put a turn to them; say how long it took."""
        started = self.on.clock.monotonic()
        return await self.ask(), round((self.on.clock.monotonic() - started) * 1000)


def kinds(gathered: Gathered) -> list[str]:
    """Who has answered."""
    return [kind for kind, _ in gathered.answers]


def missed(gathered: Gathered) -> list[tuple[str, str]]:
    """Who has not, and why."""
    return [(miss.kind, miss.reason) for miss in gathered.missed]


async def test_without_an_evaluator_nothing_is_sent_and_nothing_is_waited_for():
    """A13."""
    async with system() as on, Asking(on) as asking, on.bus.subscribe("temporality.turn.>") as sent:
        gathered, took_ms = await asking.timed()
        assert (gathered, took_ms, len(sent)) == (Gathered(), 0, 0)


async def test_evaluator_takes_part_by_starting_and_is_asked_after_the_next_roster():
    """A10: nobody is told of it but NATS."""
    async with system() as on, Asking(on) as asking:
        await asking.join("third.party")
        await asking.known()
        assert asking.evaluators.kinds() == {"third.party"}
        assert kinds(await asking.ask()) == ["third.party"]


async def test_barrier_closes_as_soon_as_every_kind_has_answered():
    async with system() as on, Asking(on) as asking:
        await asking.join("quick")
        await asking.join("slower", after_s=0.1)
        await asking.known()
        gathered, took_ms = await asking.timed()
        assert (kinds(gathered), missed(gathered), took_ms) == (["quick", "slower"], [], 100)


async def test_all_are_waited_for_together_up_to_one_deadline():
    async with system() as on, Asking(on) as asking:
        await asking.join("quick")
        for kind in ("hangs", "hangs.too"):
            await asking.join(kind, after_s=3600.0)
        await asking.known()
        gathered, took_ms = await asking.timed()
        assert (kinds(gathered), took_ms) == (["quick"], DEADLINE_MS)
        assert missed(gathered) == [("hangs", "no_answer"), ("hangs.too", "no_answer")]


async def test_kind_that_missed_is_asked_on_but_costs_its_deadline_once():
    async with system() as on, Asking(on) as asking:
        await asking.join("hangs", after_s=3600.0)
        await asking.known()
        await asking.ask()
        for turn in range(2, 6):
            gathered, took_ms = await asking.timed()
            assert (gathered, took_ms) == (Gathered(), 0)
            await on.quiet()
            assert asking.asked == ["hangs"] * turn


async def test_kind_that_answers_in_time_again_is_waited_for_again():
    async with system() as on, Asking(on) as asking:
        await asking.join("hiccups", delays_s=(1.0, 0.1, 0.1))
        await asking.known()
        assert missed(await asking.ask()) == [("hiccups", "no_answer")]
        gathered, took_ms = await asking.timed()
        assert (kinds(gathered), took_ms) == ([], 0), "asked, not waited for"
        await on.quiet(0.2)
        gathered, took_ms = await asking.timed()
        assert (kinds(gathered), took_ms) == (["hiccups"], 100)


async def test_answer_after_the_deadline_is_late_and_used_for_nothing():
    """A44: it is recorded at the next barrier and proposes nothing there."""
    async with system() as on, Asking(on) as asking:
        await asking.join("slow", after_s=0.3)
        await asking.known()
        assert missed(await asking.ask()) == [("slow", "no_answer")]
        await on.quiet(0.1)
        gathered = await asking.ask()
        assert missed(gathered) == [("slow", "late")]
        assert gathered.missed[0].detail == "answered after 300 ms"
        assert gathered.answers == ()


@pytest.mark.parametrize(
    "rubbish",
    [
        b"",
        b"{",
        b'{"type":"turn.settled"}',
        encode({"type": "turn.evaluated", "candidates": []}),
        encode({"type": "turn.evaluated", "instance": "i", "candidates": [{"situation": "x" * 9000}]}),
        encode({"type": "turn.evaluated", "instance": "i", "candidates": [{"situation": "x"}] * 65}),
    ],
    ids=["nothing", "no JSON", "another message", "no instance", "too long", "too many"],
)
async def test_malformed_answer_is_invalid_of_its_kind_and_is_not_waited_for(rubbish: bytes):
    async with system() as on, Asking(on) as asking:
        await asking.join("broken", says=lambda _: rubbish)
        await asking.join("well")
        await asking.known()
        gathered, took_ms = await asking.timed()
        assert (kinds(gathered), missed(gathered), took_ms) == (["well"], [("broken", "invalid")], 0)


async def test_evaluator_that_fails_is_invalid_of_its_kind():
    def fails(_: str) -> bytes:
        raise ServiceError(500, "ZeroDivisionError")

    async with system() as on, Asking(on) as asking:
        await asking.join("fails", says=fails)
        await asking.known()
        gathered, took_ms = await asking.timed()
        assert (missed(gathered), took_ms) == ([("fails", "invalid")], 0)


async def test_answer_in_another_name_is_unknown_and_speaks_for_nobody():
    async with system() as on, Asking(on) as asking:
        await asking.join(
            "liar",
            says=lambda _: encode(
                TurnEvaluated(instance="somebody else", candidates=(Candidate(situation="s"),))
            ),
        )
        await asking.known()
        gathered = await asking.ask()
        assert gathered.answers == ()
        assert ("unknown", "unknown") in missed(gathered)


async def test_flood_of_answers_is_one_miss_and_grows_nothing():
    async with system() as on, Asking(on) as asking:
        await asking.join("hangs", after_s=3600.0)
        await asking.known()
        async with on.bus.subscribe(subjects.all_turns_settled()) as questions:
            asked = asyncio.ensure_future(asking.ask())
            await asyncio.sleep(0)
            question = await anext(questions)
            assert question.reply is not None
            for _ in range(200):
                await on.bus.send(question.reply, b"rubbish")
                await on.bus.send(question.reply, encode(TurnEvaluated(instance="nobody")))
            gathered = await asked
        assert sorted(missed(gathered)) == [
            ("hangs", "no_answer"),
            ("unknown", "invalid"),
            ("unknown", "unknown"),
        ]


async def test_several_instances_of_a_kind_give_one_answer():
    """Each kind is a queue group: one of its instances is asked."""
    async with system() as on, Asking(on) as asking:
        for _ in range(3):
            await asking.join("many")
        await asking.known()
        for turn in range(1, 5):
            gathered = await asking.ask()
            assert kinds(gathered) == ["many"]
            assert len(asking.asked) == turn


async def test_evaluator_that_is_gone_is_forgotten_after_three_rosters_and_not_before():
    async with system() as on, Asking(on) as asking:
        service = await asking.join("passing")
        await asking.known()
        assert asking.evaluators.kind_of(service.info.id) == "passing"
        await asking.stack.aclose()
        await on.quiet((ROSTER_ABSENCES_MAX - 1) * ROSTER_INTERVAL_S)
        assert asking.evaluators.kinds() == {"passing"}, "one roster without it may be a slow answer"
        await on.quiet(2 * ROSTER_INTERVAL_S)
        assert asking.evaluators.kinds() == frozenset()
        assert asking.evaluators.kind_of(service.info.id) is None


async def test_several_barriers_at_once_get_their_own_answers():
    async with system() as on, Asking(on) as asking:
        await asking.join("slower", after_s=0.1)
        await asking.known()
        gathered: list[Gathered] = []

        async def one() -> None:
            gathered.append(await asking.evaluators.ask(TURN, deadline_ms=DEADLINE_MS, traceparent=None))

        async def all_of_them() -> None:
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(one)

        await on.soon(all_of_them())
        assert [kinds(each) for each in gathered] == [["slower"]] * 20
        assert asking.asked == ["slower"] * 20


async def test_bus_that_is_closed_to_the_question_is_no_answer_of_everybody():
    async with system() as on, Asking(on) as asking:
        await asking.join("well")
        await asking.known()
        on.faults.lose_next_message("temporality.turn.settled.*")
        gathered, took_ms = await asking.timed()
        assert (missed(gathered), took_ms) == ([("well", "no_answer")], DEADLINE_MS)
