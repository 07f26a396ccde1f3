"""Triggers on a real nats-server: found by any NATS tool, asked every turn, and harmless when they fail."""

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import nats
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from temporality.actors.bus.nats import NatsBus, connect
from temporality.actors.bus.port import Message
from temporality.actors.bus.service import service_error, service_infos
from temporality.actors.clock import SystemClock
from temporality.actors.host import Host
from temporality.actors.tracing import Tracing
from temporality.actors.triggers.actor import TriggersActor, run_trigger
from temporality.actors.triggers.serving import WAITING_MAX
from temporality.actors.triggers.trigger import Trigger
from temporality.deploy.embedded import EmbeddedServer
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.trigger import CANDIDATES_MAX, TRIGGER_SERVICE, Candidate, TurnEvaluated
from temporality.protocol.turn import SettledCall, TurnSettled

ANSWER_TIMEOUT_S = 10.0
SECRET = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

Serving = Callable[..., AbstractAsyncContextManager[None]]


class Answers:
    """A trigger that does what its function does."""

    def __init__(self, kind: str, evaluate: Callable[[TurnSettled], Iterable[Candidate]]) -> None:
        self.kind = kind
        self.evaluate = evaluate


def one_candidate(turn: TurnSettled) -> list[Candidate]:
    return [Candidate(situation=f"turn {turn.turn}")]


def turn(number: int = 1, *calls: SettledCall) -> bytes:
    return encode(TurnSettled(project="demo", run="r1", turn=number, calls=calls))


def failed(call: str = "c1", result: str = "no such file") -> SettledCall:
    return SettledCall(call=call, tool="read", outcome="failed", argument_digest="d", result=result)


async def ask(bus: NatsBus, payload: bytes, **headers: str) -> Message:
    return await bus.request(
        subjects.turn_settled("demo"), payload, timeout_s=ANSWER_TIMEOUT_S, headers=headers
    )


def candidates(answer: Message) -> list[str]:
    assert service_error(answer) is None
    return [one.situation for one in decode(answer.payload, TurnEvaluated).candidates]


def error(answer: Message) -> str:
    found = service_error(answer)
    assert found is not None
    return str(found)


@pytest.fixture
def serving(nats_server: EmbeddedServer) -> Serving:
    """Serve triggers in a process of their own as far as NATS can tell, while the context is open."""

    @asynccontextmanager
    async def serve(
        *triggers: Trigger, tracing: Tracing | None = None, built_in: bool = False
    ) -> AsyncIterator[None]:
        async with connect(nats_server.url, name="triggers") as bus, anyio.create_task_group() as tasks:
            host = Host(
                bus, actor="triggers", name="triggers-1", clock=SystemClock(), tracing=tracing or Tracing()
            )

            async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
                if built_in:
                    await TriggersActor(host).run(task_status=task_status)
                else:
                    await run_trigger(host, triggers, task_status=task_status)

            await tasks.start(run)
            yield
            tasks.cancel_scope.cancel()

    return serve


async def test_trigger_is_in_the_roster_that_any_nats_tool_reads(
    nats_bus: NatsBus, nats_server: EmbeddedServer, serving: Serving
) -> None:
    """A10"""
    async with serving(Answers("disk.full", one_candidate)):
        (info,) = await service_infos(nats_bus, TRIGGER_SERVICE, timeout_s=1.0)
        plain = await nats.connect(nats_server.url)
        answer = json.loads((await plain.request(f"$SRV.INFO.{TRIGGER_SERVICE}", b"")).data)
        await plain.close()
    assert (info.metadata["kind"], info.metadata["version"]) == ("disk.full", "0.0.0")
    assert answer["id"] == info.id
    assert answer["endpoints"][0]["subject"] == "temporality.turn.settled.*"
    assert answer["endpoints"][0]["queue_group"] == "disk.full"


async def test_answer_names_the_instance_by_which_the_roster_knows_the_kind(
    nats_bus: NatsBus, serving: Serving
) -> None:
    async with serving(Answers("disk.full", one_candidate)):
        (info,) = await service_infos(nats_bus, TRIGGER_SERVICE, timeout_s=1.0)
        answer = await ask(nats_bus, turn(7))
    assert decode(answer.payload, TurnEvaluated).instance == info.id
    assert candidates(answer) == ["turn 7"]


async def test_built_in_trigger_proposes_a_look_up_for_a_failed_call(
    nats_bus: NatsBus, serving: Serving
) -> None:
    """A6, A7"""
    async with serving(built_in=True):
        answer = decode((await ask(nats_bus, turn(1, failed(), failed("c2", " ")))).payload, TurnEvaluated)
    assert [(one.call, one.situation) for one in answer.candidates] == [("c1", "no such file")]
    assert [one.call for one in answer.empty] == ["c2"]


async def test_of_two_processes_of_a_kind_one_answers(nats_bus: NatsBus, serving: Serving) -> None:
    asked = []

    def evaluate(turn: TurnSettled) -> list[Candidate]:
        asked.append(turn.turn)
        return one_candidate(turn)

    trigger = Answers("k", evaluate)
    async with serving(trigger), serving(trigger):
        for number in range(10):
            await ask(nats_bus, turn(number))
    assert asked == list(range(10))


async def test_exception_is_answered_by_its_class_and_the_next_turn_is_served(
    nats_bus: NatsBus, serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    """A11, A47"""

    def evaluate(turn: TurnSettled) -> list[Candidate]:
        if turn.turn == 1:
            raise ValueError(f"can't read {SECRET}")
        return one_candidate(turn)

    async with serving(Answers("k", evaluate)):
        first = await ask(nats_bus, turn(1))
        second = await ask(nats_bus, turn(2))
    assert error(first) == "500 ValueError"
    assert candidates(second) == ["turn 2"]
    assert "trigger k failed: ValueError" in caplog.text
    assert SECRET not in caplog.text


async def test_trigger_that_tries_to_end_the_process_does_not(nats_bus: NatsBus, serving: Serving) -> None:
    def evaluate(turn: TurnSettled) -> list[Candidate]:
        if turn.turn == 1:
            raise SystemExit(1)
        return one_candidate(turn)

    async with serving(Answers("k", evaluate)):
        assert error(await ask(nats_bus, turn(1))) == "500 RuntimeError"
        assert candidates(await ask(nats_bus, turn(2))) == ["turn 2"]


async def test_slow_trigger_does_not_hold_up_another_of_its_process(
    nats_bus: NatsBus, serving: Serving
) -> None:
    """A11"""
    may_end = threading.Event()

    def slow(_: TurnSettled) -> list[Candidate]:
        may_end.wait(ANSWER_TIMEOUT_S)
        return [Candidate(situation="slow")]

    inbox = nats_bus.inbox()
    async with (
        serving(Answers("slow", slow), Answers("quick", one_candidate)),
        nats_bus.subscribe(f"{inbox}.*") as answers,
    ):
        await nats_bus.send(subjects.turn_settled("demo"), turn(1), reply=f"{inbox}.1")
        arriving = aiter(answers)
        assert candidates(await anext(arriving)) == ["turn 1"]
        may_end.set()
        assert candidates(await anext(arriving)) == ["slow"]


async def test_turns_that_wait_too_long_for_a_hung_trigger_are_refused_at_once(
    nats_bus: NatsBus, serving: Serving
) -> None:
    may_end = threading.Event()

    def hang(turn: TurnSettled) -> list[Candidate]:
        may_end.wait(ANSWER_TIMEOUT_S)
        return one_candidate(turn)

    inbox = nats_bus.inbox()
    async with serving(Answers("k", hang)), nats_bus.subscribe(f"{inbox}.*") as answers:
        for number in range(WAITING_MAX + 1):
            await nats_bus.send(subjects.turn_settled("demo"), turn(number), reply=f"{inbox}.{number}")
        arriving = aiter(answers)
        assert error(await anext(arriving)) == "503 busy"
        may_end.set()
        assert [candidates(await anext(arriving)) for _ in range(WAITING_MAX)] == [
            [f"turn {number}"] for number in range(WAITING_MAX)
        ]


def forever(_: TurnSettled) -> Iterator[Candidate]:
    while True:
        yield Candidate(situation="again")


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda _: ["no candidate"],
        lambda _: 7,
        lambda _: [Candidate(situation="x" * 8_193)],
        lambda _: [Candidate(situation="s", entities=("e",) * 65)],
        lambda _: [Candidate(situation="s")] * (CANDIDATES_MAX + 1),
        forever,
    ],
    ids=["no candidate", "no iterable", "too long", "too many entities", "too many", "endless"],
)
async def test_rubbish_is_an_error_before_it_reaches_a_supervisor(
    nats_bus: NatsBus, serving: Serving, evaluate: Callable[[TurnSettled], Iterable[Candidate]]
) -> None:
    """A11"""
    async with serving(Answers("k", evaluate)):
        assert error(await ask(nats_bus, turn())).startswith("500 ")


async def test_as_many_candidates_as_a_supervisor_accepts_are_answered(
    nats_bus: NatsBus, serving: Serving
) -> None:
    async with serving(Answers("k", lambda _: [Candidate(situation="s")] * CANDIDATES_MAX)):
        assert len(candidates(await ask(nats_bus, turn()))) == CANDIDATES_MAX


async def test_question_that_is_no_turn_is_an_error(nats_bus: NatsBus, serving: Serving) -> None:
    async with serving(Answers("k", one_candidate)):
        assert error(await ask(nats_bus, b'{"type":"turn.settled"}')) == "400 not a settled turn"
        assert candidates(await ask(nats_bus, turn(3))) == ["turn 3"]


async def test_evaluation_is_a_span_under_the_turn_that_asked(nats_bus: NatsBus, serving: Serving) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traceparent = f"00-{'a' * 32}-{'b' * 16}-01"
    async with serving(Answers("disk.full", one_candidate), tracing=Tracing(provider)):
        answer = await ask(nats_bus, turn(1, failed(result=SECRET)), traceparent=traceparent)
    span: ReadableSpan
    (span,) = exporter.get_finished_spans()
    assert span.name == "evaluate disk.full"
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "b" * 16
    assert dict(span.attributes or {}) == {
        "temporality.trigger.kind": "disk.full",
        "temporality.run.id": "r1",
        "temporality.candidates": 1,
    }
    assert "traceparent" not in answer.headers
