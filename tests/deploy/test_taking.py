"""A run that nobody takes, or whose start is refused, is told; one that has begun is waited for."""

from collections.abc import AsyncIterator

import anyio
import pytest

from temporality.actors.bus.memory import MemoryBus, MemoryServer
from temporality.actors.host import DETAIL_HEADER, REASON_HEADER
from temporality.deploy.taking import NotTaken, Patience
from temporality.deploy.watching import run_to_end
from temporality.protocol import subjects
from temporality.protocol.agent import AgentSpec, ModelSpec
from temporality.protocol.codec import encode
from temporality.protocol.errors import UserError
from temporality.protocol.identity import RunIdentity
from temporality.protocol.message import ID_HEADER
from temporality.protocol.run import Commit, RunFact, RunFinished, StartRun, TurnClosed
from temporality.protocol.streams import DEAD, INBOX, stream_specs

RUN = "run-1"
START = StartRun(
    identity=RunIdentity(run=RUN, project="demo"),
    agent=AgentSpec(name="demo", model=ModelSpec(provider="scripted", name="demo", script="")),
    task="wait",
)
SOON = Patience(told_after_s=0.02, taken_within_s=0.1)
NEVER = Patience(told_after_s=30, taken_within_s=60)


@pytest.fixture
async def bus() -> AsyncIterator[MemoryBus]:
    async with MemoryServer().connect() as connected:
        await connected.declare(stream_specs(1))
        yield connected


async def commit(bus: MemoryBus, number: int, fact: RunFact) -> None:
    one = Commit(
        id=f"c-{number}", run=RUN, number=number, predecessor=number - 1, at="2026-12-01", facts=(fact,)
    )
    await bus.publish(subjects.commit(RUN), encode(one), message_id=one.id)


async def bury(bus: MemoryBus, start: str, reason: str, detail: str) -> None:
    headers = {ID_HEADER: start, REASON_HEADER: reason, DETAIL_HEADER: detail}
    await bus.publish(subjects.dead(INBOX, reason), b"", message_id=f"dead-{start}-{reason}", headers=headers)


async def test_run_that_no_supervisor_takes_is_told_early_and_given_up_in_time(bus: MemoryBus) -> None:
    told: list[str] = []
    with pytest.raises(NotTaken, match=r"within 0\.1 s.* — start one: temporality up"):
        await run_to_end(bus, START, patience=SOON, notice=told.append)
    assert told == ["run-1: no supervisor has taken the run yet — see: temporality doctor"]


async def test_run_that_has_begun_is_waited_for_however_long_it_takes(bus: MemoryBus) -> None:
    told: list[str] = []

    async with anyio.create_task_group() as tasks:
        await commit(bus, 1, TurnClosed(turn=1))

        async def end() -> None:
            with anyio.move_on_after(3 * SOON.taken_within_s):  # time itself is what must not end it
                await anyio.Event().wait()
            await commit(bus, 2, RunFinished(answer="done"))

        tasks.start_soon(end)
        result = await run_to_end(bus, START, patience=SOON, notice=told.append)
    assert (result.status, result.answer, told) == ("finished", "done", [])


@pytest.mark.parametrize(
    ("reason", "do"),
    [("too_large", "shorten the task"), ("malformed", "check that all processes run the same version")],
)
async def test_start_that_was_buried_is_told_with_its_reason(bus: MemoryBus, reason: str, do: str) -> None:
    await bury(bus, f"{RUN}.start", "before", "of an earlier time, which is no news")
    async with anyio.create_task_group() as tasks:

        async def refuse() -> None:
            async with bus.subscribe(subjects.inbox(RUN, "command")) as starts:
                ready.set()
                await anext(aiter(starts))
            await bury(bus, "run-2.start", reason, "another's")
            await bury(bus, f"{RUN}.start", reason, "the start is not right")

        ready = anyio.Event()
        tasks.start_soon(refuse)
        await ready.wait()
        with pytest.raises(UserError, match=rf"refused \({reason}\): the start is not right — {do}"):
            await run_to_end(bus, START, patience=NEVER)
    newest = await bus.last(DEAD, subjects.dead_letters(INBOX))
    assert newest is not None
