"""Actors as tasks of one process: a fault of one is started again, as its process would be."""

import anyio
import pytest

from temporality.deploy.processes import RESTART_DELAY_MAX_S, RESTART_DELAY_MIN_S
from temporality.deploy.tasks import keep_running
from temporality.protocol.errors import UserError, WorldError


class Unsteady:
    """An actor that fails after it could serve as often as it is told, and then serves for ever."""

    def __init__(self, *failures: Exception, serves_first: bool = True) -> None:
        self.failures = list(failures)
        self.serves_first = serves_first
        self.steady = anyio.Event()

    async def __call__(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        if self.serves_first:
            task_status.started()
        if self.failures:
            raise self.failures.pop(0)
        task_status.started()
        self.steady.set()
        await anyio.sleep_forever()


async def watched(actor: Unsteady) -> tuple[list[str], list[float]]:
    """Keep an actor running until it is steady; return what was told, and the delays."""
    told: list[str] = []
    delays: list[float] = []

    async def sleep(delay_s: float) -> None:
        delays.append(delay_s)

    async with anyio.create_task_group() as tasks:

        async def keep(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            await keep_running("clerk", actor, on_change=told.append, sleep=sleep, task_status=task_status)

        await tasks.start(keep)
        with anyio.fail_after(5):
            await actor.steady.wait()
        tasks.cancel_scope.cancel()
    return told, delays


async def test_an_actor_that_fails_is_started_again_and_told_by_the_kind_of_its_fault() -> None:
    group = ExceptionGroup("tasks", [ValueError("secret"), WorldError("disk")])
    told, delays = await watched(Unsteady(group))
    assert told[:3] == ["clerk is ready", "clerk failed (WorldError) and is started again", "clerk is ready"]
    assert delays == [RESTART_DELAY_MIN_S]


async def test_one_that_fails_before_it_serves_waits_longer_each_time_up_to_a_limit() -> None:
    actor = Unsteady(*[ValueError() for _ in range(9)])
    told: list[str] = []
    delays: list[float] = []

    async def sleep(delay_s: float) -> None:
        actor.serves_first = False  # from now on it doesn't come so far
        delays.append(delay_s)

    async with anyio.create_task_group() as tasks:

        async def keep(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            await keep_running("clerk", actor, on_change=told.append, sleep=sleep, task_status=task_status)

        await tasks.start(keep)
        with anyio.fail_after(5):
            await actor.steady.wait()
        tasks.cancel_scope.cancel()
    assert delays == sorted(delays)
    assert delays[-1] == RESTART_DELAY_MAX_S
    assert told.count("clerk is ready") == 2


async def test_one_that_never_could_serve_fails_whoever_started_it() -> None:
    with pytest.raises(UserError, match="no room"):
        await keep_running(
            "clerk", Unsteady(UserError("data", "no room"), serves_first=False), on_change=lambda _: None
        )
