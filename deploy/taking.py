"""Whether anybody takes a run that was started: its first commit says so, and until then nothing else would.

A start lies in the inbox until a supervisor lives, and a run that has begun outlives any crash. So only the
first commit is waited for with a deadline. A start that no supervisor can take becomes a dead letter, which
names it by the id of its message.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from temporality.actors.bus.background import beside
from temporality.actors.bus.port import Bus
from temporality.actors.host import DETAIL_HEADER, REASON_HEADER
from temporality.protocol import subjects
from temporality.protocol.errors import UserError, WorldError
from temporality.protocol.message import ID_HEADER
from temporality.protocol.streams import DEAD, INBOX


class NotTaken(WorldError):
    """No supervisor took the run in time; its start is kept, and begins the run once one does."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a person waits for a run to begin: until it is told that nobody takes it, and at most.

    A supervisor that was killed gives up its runs within `lease_ttl_s` (at most 60 s, 5 s by default).
    """

    told_after_s: float = 5.0
    taken_within_s: float = 60.0


class Taking:
    """A run that waits to be taken."""

    def __init__(self) -> None:
        self._taken = anyio.Event()

    def taken(self) -> None:
        """Say that the run has a commit; nothing is waited for any more. Idempotent."""
        self._taken.set()

    async def wait(self, run: str, patience: Patience, notice: Callable[[str], None]) -> None:
        """Return when the run is taken; raises `NotTaken` when patience ends; `notice` is told before."""
        with anyio.move_on_after(patience.told_after_s):
            await self._taken.wait()
            return
        notice(f"{run}: no supervisor has taken the run yet — see: temporality doctor")
        with anyio.move_on_after(patience.taken_within_s - patience.told_after_s):
            await self._taken.wait()
            return
        what = (
            f"no supervisor has taken the run within {patience.taken_within_s:g} s; it begins once one does"
        )
        raise NotTaken(f"{run}: {what} — start one: temporality up, or see: temporality doctor")


async def newest_dead_letter(bus: Bus) -> int:
    """Return the sequence of the newest dead letter of the inbox, 0 for none: what comes above it is news."""
    newest = await bus.last(DEAD, subjects.dead_letters(INBOX))
    return newest.sequence if newest else 0


@asynccontextmanager
async def taken_in_time(
    bus: Bus,
    run: str,
    message_id: str,
    *,
    dead_before: int,
    patience: Patience,
    notice: Callable[[str], None],
) -> AsyncIterator[Taking]:
    """Watch over the start `message_id` of a run while the body waits for its first commit.

    Raises `NotTaken` in time, and `UserError` with the reason for a start that became a dead letter (above
    `dead_before`), until the body says that the run is taken.
    """
    taking = Taking()

    async def told_if_buried() -> None:
        async with bus.follow(DEAD, subjects.dead_letters(INBOX), after=dead_before) as letters:
            async for letter in letters:
                if letter.headers.get(ID_HEADER) == message_id:
                    raise _refused(
                        run, letter.headers.get(REASON_HEADER, ""), letter.headers.get(DETAIL_HEADER)
                    )

    async def watch() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(told_if_buried)
            await taking.wait(run, patience, notice)
            tasks.cancel_scope.cancel()

    async with beside(watch):
        yield taking


def _refused(run: str, reason: str, detail: str | None) -> UserError:
    what = f"the start was refused ({reason})" + (f": {detail}" if detail else "")
    do = "check that all processes run the same version, then read the supervisor's log"
    if reason == "too_large":
        do = "shorten the task, the instructions or the skills"
    return UserError(run, what, do)
