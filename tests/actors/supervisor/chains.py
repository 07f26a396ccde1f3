"""Commits made by hand, and what is stored of them."""

from temporality.actors.supervisor.commits import identified
from temporality.protocol import subjects
from temporality.protocol.codec import decode, raw
from temporality.protocol.message import Outgoing
from temporality.protocol.run import Commit, RunCancelled, TimerFired
from temporality.protocol.streams import RUNS


def commit(number: int = 1, predecessor: int = 0, *, what: str = "mine", outgoing: int = 0) -> Commit:
    """A commit of the run `r1` that differs from others by `what`."""
    owed = tuple(
        Outgoing(subject=subjects.tool_pool("default"), body=raw(TimerFired(name=f"{what}-{n}")))
        for n in range(outgoing)
    )
    return identified(
        Commit(
            id="",
            run="r1",
            number=number,
            predecessor=predecessor,
            at="2026-05-01T12:00:00+00:00",
            facts=(RunCancelled(reason=what),),
            outgoing=owed,
            causes=("m1",),
        )
    )


async def stored(bus, run: str = "r1") -> list[str]:
    """What the stored commits of a run say, in order."""
    return [
        fact.reason
        for message in await bus.read(RUNS, subjects.commit(run))
        for fact in decode(message.payload, Commit).facts
    ]
