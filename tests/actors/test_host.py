"""The shell loses nothing: what fails is given back or buried, what was caused is stored before the ack."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.lowlevel
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporality.actors.bus.memory import MemoryServer
from temporality.actors.bus.port import Bus, BusError, Stored
from temporality.actors.clock import Clock, SystemClock, VirtualClock
from temporality.actors.crash import CrashPoints
from temporality.actors.host import (
    DEAD_LETTER_BYTES_MAX,
    DELIVERIES_MAX,
    DETAIL_HEADER,
    REASON_HEADER,
    RETRY_DELAY_MAX_S,
    SUBJECT_HEADER,
    WORLD_RETRY_DELAY_S,
    Asked,
    Host,
    QuestionRefused,
    Received,
    Send,
    header_text,
)
from temporality.actors.tracing import Tracing
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.folding import AskPosition, FoldPosition
from temporality.protocol.message import CAUSE_HEADER, ID_HEADER, SCHEMA_HEADER, TRACE_HEADER, Message
from temporality.protocol.run import TimerFired
from temporality.protocol.streams import DEAD, WORK, stream_specs

DURABLE = "queue"
QUEUE = subjects.tool_pool("default")
CAUSED = subjects.tool_pool("caused")
QUESTION = subjects.ask("worker", "position")
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
DEADLINE_S = 20.0
"""Nothing here takes this long, by either clock; reaching it is a failure."""

Handler = Callable[[Received[TimerFired]], Awaitable[Sequence[Send]]]


class World:
    """A bus with the system's streams, its clock, and a way to wait for what it brings."""

    def __init__(self, bus: Bus, clock: Clock, server: MemoryServer | None = None) -> None:
        self.bus = bus
        self.clock = clock
        self.server = server

    def host(self, *, crash: CrashPoints | None = None, ack_wait_s: float = 5.0) -> Host:
        return Host(
            self.bus,
            actor="worker",
            name="worker-1",
            clock=self.clock,
            tracing=Tracing(),
            crash=crash,
            ack_wait_s=ack_wait_s,
        )

    async def put(self, payload: bytes, message_id: str, **headers: str) -> None:
        await self.bus.publish(QUEUE, payload, message_id=message_id, headers=headers)

    async def dead(self) -> Stored | None:
        return await self.bus.last(DEAD, "temporality.dead.>")

    async def caused(self) -> list[Stored]:
        return await self.bus.read(WORK, CAUSED)

    async def settled(self) -> bool:
        return await self.bus.pending(WORK, DURABLE) == (0, 0)

    async def until(self, holds: Callable[[], Awaitable[object]]) -> None:
        """Wait until something holds; virtual time moves on whenever everybody waits for it."""
        with anyio.fail_after(DEADLINE_S):
            while not await holds():
                for _ in range(50):
                    await anyio.lowlevel.checkpoint()
                if isinstance(self.clock, VirtualClock) and not await holds():
                    due = self.clock.next_due()
                    assert due is not None, "nothing that comes in time brings it about"
                    self.clock.advance(due - self.clock.monotonic())


@pytest.fixture
async def model() -> AsyncIterator[World]:
    """The bus in memory, by the virtual clock."""
    clock = VirtualClock()
    server = MemoryServer(clock)
    async with server.connect() as bus:
        await bus.declare(stream_specs(1))
        yield World(bus, clock, server)


@pytest.fixture
async def real(nats_bus: Bus) -> World:
    """A real server, where time passes by itself."""
    await nats_bus.declare(stream_specs(1))
    return World(nats_bus, SystemClock())


@pytest.fixture(params=["model", "real"])
def world(request: pytest.FixtureRequest) -> World:
    """The bus in memory, then a real server."""
    chosen: World = request.getfixturevalue(request.param)
    return chosen


@asynccontextmanager
async def working(host: Host, handle: Handler, concurrency: int = 1) -> AsyncIterator[anyio.CancelScope]:
    """Serve the queue while the context lasts; leaving it cancels the service."""
    async with anyio.create_task_group() as tasks:
        await tasks.start(
            partial(
                host.work,
                stream=WORK,
                durable=DURABLE,
                subject=QUEUE,
                kind=TimerFired,
                handle=handle,
                concurrency=concurrency,
            )
        )
        yield tasks.cancel_scope
        tasks.cancel_scope.cancel()


class Handled:
    """A handler that remembers what it received and when, and then does what it is told."""

    def __init__(self, clock: Clock, *, fails: Callable[[int], Exception | None] = lambda _: None) -> None:
        self.received: list[Received[TimerFired]] = []
        self.at: list[float] = []
        self._clock = clock
        self._fails = fails

    async def __call__(self, received: Received[TimerFired]) -> Sequence[Send]:
        self.received.append(received)
        self.at.append(self._clock.monotonic())
        if (error := self._fails(len(self.received))) is not None:
            raise error
        return [Send(CAUSED, TimerFired(name=received.message.name), f"caused-{received.id}")]

    @property
    def names(self) -> list[str]:
        return [received.message.name for received in self.received]

    def delays(self) -> list[float]:
        return [round(after - before, 3) for before, after in zip(self.at, self.at[1:], strict=False)]


# --- what goes well ---------------------------------------------------------------------------------------


async def test_message_is_handled_what_it_caused_is_stored_and_then_it_is_gone(world: World) -> None:
    handled = Handled(world.clock)
    await world.put(
        encode(TimerFired(name="one")),
        "m-1",
        **{ID_HEADER: "m-1", CAUSE_HEADER: "c-0", TRACE_HEADER: TRACEPARENT},
    )
    async with working(world.host(), handled):
        await world.until(world.settled)
    (received,) = handled.received
    assert (received.id, received.cause, received.traceparent) == ("m-1", "c-0", TRACEPARENT)
    assert (received.subject, received.delivered) == (QUEUE, 1)
    (stored,) = await world.caused()
    assert decode(stored.payload, TimerFired) == TimerFired(name="one")
    assert {stored.headers[name] for name in (ID_HEADER, CAUSE_HEADER, SCHEMA_HEADER, TRACE_HEADER)} == {
        "caused-m-1",
        "m-1",
        "1",
        TRACEPARENT,
    }


async def test_message_without_headers_gets_an_id_that_its_repeat_has_too(model: World) -> None:
    handled = Handled(model.clock, fails=lambda time: RuntimeError() if time == 1 else None)
    await model.put(encode(TimerFired(name="one")), "m-1")
    async with working(model.host(), handled):
        await model.until(model.settled)
    first, second = handled.received
    assert first.id == second.id == f"{WORK}-{first.sequence}"


async def test_as_many_messages_are_handled_at_once_as_allowed(model: World) -> None:
    release, busy = anyio.Event(), []

    async def handle(received: Received[TimerFired]) -> Sequence[Send]:
        busy.append(received.message.name)
        await release.wait()
        return []

    for index in range(5):
        await model.put(encode(TimerFired(name=f"t{index}")), f"m-{index}")
    async with working(model.host(), handle, concurrency=3):
        for _ in range(200):
            await anyio.lowlevel.checkpoint()
        assert busy == ["t0", "t1", "t2"]
        release.set()
        await model.until(model.settled)
    assert len(busy) == 5


# --- what can't be understood -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "detail"),
    [
        (b"not json", "JSON is malformed"),
        (b'{"type":"timer.fired"}', "missing required field `name`"),
        (b'{"type":"other","name":"x"}', "Invalid value 'other' - at `$.type`"),
        (b"", "truncated"),
        (b'{"type":"timer.fired","name":"\xff"}', ""),
    ],
)
async def test_message_that_is_malformed_is_a_dead_letter_and_the_next_one_is_served(
    world: World, payload: bytes, detail: str
) -> None:
    handled = Handled(world.clock)
    await world.put(payload, "bad", **{ID_HEADER: "bad", TRACE_HEADER: TRACEPARENT})
    await world.put(encode(TimerFired(name="good")), "good")
    async with working(world.host(), handled):
        await world.until(world.settled)
    assert handled.names == ["good"]
    letter = await world.dead()
    assert letter is not None
    assert letter.subject == subjects.dead(WORK, "malformed")
    assert letter.payload == payload
    assert letter.headers[REASON_HEADER] == "malformed"
    assert letter.headers[SUBJECT_HEADER] == QUEUE
    assert (letter.headers[ID_HEADER], letter.headers[TRACE_HEADER]) == ("bad", TRACEPARENT)
    assert detail in letter.headers[DETAIL_HEADER]


async def test_huge_malformed_message_is_buried_cut(world: World) -> None:
    await world.put(b"x" * (DEAD_LETTER_BYTES_MAX + 50_000), "huge")
    async with working(world.host(), Handled(world.clock)):
        await world.until(world.settled)
    letter = await world.dead()
    assert letter is not None
    assert len(letter.payload) == DEAD_LETTER_BYTES_MAX


async def test_letter_that_can_t_be_buried_yet_is_buried_later(model: World) -> None:
    assert model.server is not None
    await model.put(b"not json", "bad")
    model.server.faults.disk_full = True
    async with working(model.host(), Handled(model.clock)):
        await model.until(lambda: _passed(model.clock, 3 * WORLD_RETRY_DELAY_S))
        assert await model.dead() is None
        model.server.faults.disk_full = False
        await model.until(model.settled)
    assert await model.dead() is not None


async def _passed(clock: Clock, seconds: float) -> bool:
    return clock.monotonic() >= seconds


# --- what fails -------------------------------------------------------------------------------------------


async def test_fault_of_ours_gives_back_with_growing_delay_and_then_buries(model: World) -> None:
    handled = Handled(model.clock, fails=lambda _: RuntimeError("the secret is 4711"))
    await model.put(encode(TimerFired(name="one")), "m-1")
    async with working(model.host(), handled):
        await model.until(model.settled)
    assert handled.delays() == [1.0, 2.0, 4.0, 8.0, 16.0, RETRY_DELAY_MAX_S, RETRY_DELAY_MAX_S]
    assert [received.delivered for received in handled.received] == list(range(1, DELIVERIES_MAX + 1))
    letter = await model.dead()
    assert letter is not None
    assert letter.subject == subjects.dead(WORK, "failed")
    assert letter.headers[DETAIL_HEADER].startswith("RuntimeError at ")
    assert "4711" not in str(letter.headers)
    assert await model.caused() == []


async def test_message_that_succeeds_at_last_is_no_dead_letter(world: World) -> None:
    handled = Handled(world.clock, fails=lambda time: RuntimeError() if time == 1 else None)
    await world.put(encode(TimerFired(name="one")), "m-1")
    async with working(world.host(), handled):
        await world.until(world.settled)
    assert [received.delivered for received in handled.received] == [1, 2]
    assert len(await world.caused()) == 1
    assert await world.dead() is None


@pytest.mark.parametrize(
    "error",
    [
        BusError("down"),
        ExceptionGroup("together", [BusError("down"), ExceptionGroup("in", [BusError("full")])]),
    ],
    ids=["alone", "of several tasks"],
)
async def test_failing_world_gives_back_for_as_long_as_it_fails(model: World, error: Exception) -> None:
    tries = 3 * DELIVERIES_MAX
    handled = Handled(model.clock, fails=lambda time: error if time < tries else None)
    await model.put(encode(TimerFired(name="one")), "m-1")
    async with working(model.host(), handled):
        await model.until(model.settled)
    assert handled.delays() == [WORLD_RETRY_DELAY_S] * (tries - 1)
    assert await model.dead() is None
    assert len(await model.caused()) == 1


async def test_group_with_one_fault_of_ours_is_a_fault_of_ours(model: World) -> None:
    group = ExceptionGroup("together", [BusError("down"), KeyError("x")])
    handled = Handled(model.clock, fails=lambda _: group)
    await model.put(encode(TimerFired(name="one")), "m-1")
    async with working(model.host(), handled):
        await model.until(model.dead)
    assert len(handled.received) == DELIVERIES_MAX


async def test_failing_message_does_not_hold_up_others(model: World) -> None:
    """While it waits for its next try, its place is free."""
    handled = Handled(model.clock, fails=lambda time: RuntimeError() if time == 1 else None)
    await model.put(encode(TimerFired(name="bad")), "m-1")
    await model.put(encode(TimerFired(name="good")), "m-2")
    async with working(model.host(), handled):
        await model.until(model.settled)
    assert handled.names == ["bad", "good", "bad"]
    assert handled.at[1] == handled.at[0]


async def test_cancelled_worker_gives_back_at_once(world: World) -> None:
    """So a drained process costs no `ack_wait`."""
    holding = anyio.Event()

    async def hang(_: Received[TimerFired]) -> Sequence[Send]:
        holding.set()
        await anyio.sleep_forever()
        return []

    await world.put(encode(TimerFired(name="one")), "m-1")
    async with working(world.host(ack_wait_s=600.0), hang):
        with anyio.fail_after(DEADLINE_S):
            await holding.wait()
    began = world.clock.monotonic()
    handled = Handled(world.clock)
    async with working(world.host(ack_wait_s=600.0), handled):
        await world.until(world.settled)
    (received,) = handled.received
    assert received.delivered > 1
    assert world.clock.monotonic() - began < DEADLINE_S


async def test_heartbeats_keep_a_long_message_from_being_served_twice(model: World) -> None:
    release = anyio.Event()
    served = []

    async def slow(received: Received[TimerFired]) -> Sequence[Send]:
        served.append(received.delivered)
        await release.wait()
        return []

    await model.put(encode(TimerFired(name="one")), "m-1")
    async with working(model.host(ack_wait_s=5.0), slow, concurrency=4):
        await model.until(lambda: _passed(model.clock, 60.0))
        release.set()
        await model.until(model.settled)
    assert served == [1]


# --- what was caused is stored before the acknowledgement -------------------------------------------------


class Died(BaseException):
    """Stands for the end of the process."""


class DiesAt(CrashPoints):
    """End the work at one point, once, as far as it can be done without ending the test."""

    def __init__(self, point: str) -> None:
        super().__init__()
        self._left = [point]

    def reached(self, point: str) -> None:
        if point in self._left:
            self._left.remove(point)
            raise Died


@pytest.mark.parametrize(
    ("point", "stored", "served_again"),
    [("worker.handled", 0, True), ("worker.published", 1, True), ("worker.acked", 1, False)],
)
async def test_crash_between_any_two_steps_loses_and_doubles_nothing(
    world: World, point: str, stored: int, served_again: bool
) -> None:
    handled = Handled(world.clock)
    await world.put(encode(TimerFired(name="one")), "m-1", **{ID_HEADER: "m-1"})
    with pytest.raises(BaseExceptionGroup) as raised:
        async with working(world.host(crash=DiesAt(point)), handled):
            await anyio.sleep_forever()
    assert raised.group_contains(Died)
    assert len(await world.caused()) == stored
    async with working(world.host(), handled):
        await world.until(world.settled)
    assert (len(handled.received) > 1) == served_again
    assert len(await world.caused()) == 1


async def test_message_whose_effect_can_t_be_stored_is_not_acknowledged(model: World) -> None:
    assert model.server is not None
    handled = Handled(model.clock)
    await model.put(encode(TimerFired(name="one")), "m-1")
    model.server.faults.disk_full = True
    async with working(model.host(), handled):
        await model.until(lambda: _passed(model.clock, 3 * WORLD_RETRY_DELAY_S))
        assert not await model.settled()
        model.server.faults.disk_full = False
        await model.until(model.settled)
    assert len(handled.received) > 1
    assert len(await model.caused()) == 1


# --- questions --------------------------------------------------------------------------------------------


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


# --- headers ----------------------------------------------------------------------------------------------


@given(st.text(), st.integers(1, 50))
def test_any_text_becomes_one_printable_line_for_a_header(text: str, characters_max: int) -> None:
    line = header_text(text, characters_max)
    assert line.isascii()
    assert line.isprintable()
    assert len(line) <= characters_max * len("\\U0001f600")
