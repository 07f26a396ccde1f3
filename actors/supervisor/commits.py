"""The commit protocol: how facts become true exactly once, whoever else believes to own the run.

A commit names the stream sequence of its predecessor and is stored only if that is still the run's last. So
of two owners one writes and the other is refused, and nothing else is needed for safety. Two things make it
hard:

A lost acknowledgement looks like a lost race. After a refusal *or* a time-out the run's last commit is read:
our own id means that it was stored, another id that the race was lost, nothing newer that it was never stored
and may be sent again. The id is the digest of the content, since two owners of one message may have decided
differently.

A decision that a message means nothing writes nothing, so no expected sequence guards it: what looks like a
repeat to an owner that has fallen behind may be news. So before such a message is acknowledged, the run's
last commit is looked at, too (`is_last`).

A crash may come between a commit and what it owes. So whoever loads a run first publishes the last commit's
outgoing messages again (their ids are the commit's, so repeats are dropped); therefore only the last commit
can ever have unpublished ones.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import anyio
import msgspec

from temporality.actors.bus.port import Bus, BusError, PublishUnconfirmed, Stored, WrongLastSequence
from temporality.actors.host import headers_of
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.message import Outgoing
from temporality.protocol.run import Commit, commit_id, outgoing_id
from temporality.protocol.streams import RUNS

APPEND_TRIES_MAX = 5
"""Tries to store one commit; each may wait for a leader change, after that the message is given back."""

APPEND_RETRY_DELAY_S = 0.05
"""A cluster refuses (10164) while another write to the subject is under way: this long it is let finish."""

READ_TRIES_MAX = 20
READ_RETRY_DELAY_S = 0.05
"""A replica that lags behind the leader has this long (1 s) to show what the leader has."""


class CommitUnconfirmed(BusError):
    """It could not be found out in time whether a commit was stored."""


class CommitsMissing(BusError):
    """The stream does not show the commits that its leader says it has."""


@dataclass(frozen=True, slots=True)
class StoredCommit:
    """A commit and its stream sequence."""

    sequence: int
    commit: Commit


def identified(commit: Commit) -> Commit:
    """Return the commit with the id that its content gives it."""
    return msgspec.structs.replace(commit, id=commit_id(commit))


async def append(bus: Bus, commit: Commit, *, traceparent: str | None) -> int | None:
    """Store a commit; return its stream sequence, or None if another commit took its place.

    Raises `CommitUnconfirmed` if the bus can't say for too long; whether it is stored is then open, and the
    run must be loaded anew. Cancelling leaves it open, too.
    """
    subject = subjects.commit(commit.run)
    payload = encode(commit)
    cause = commit.causes[0] if commit.causes else None
    for _ in range(APPEND_TRIES_MAX):
        try:
            published = await bus.publish(
                subject,
                payload,
                message_id=commit.id,
                headers=headers_of(commit.id, cause, traceparent),
                expected_last=commit.predecessor,
            )
        except (WrongLastSequence, PublishUnconfirmed) as error:
            last = await bus.last(RUNS, subject)
            if last is None or last.sequence <= commit.predecessor:
                if isinstance(error, WrongLastSequence):
                    await anyio.sleep(APPEND_RETRY_DELAY_S)
                continue
            # Ours may also be stored, below another's: whoever wrote that one had loaded ours and sent what
            # it owes, and to us, once we have reloaded, the message is a repeat.
            stored = decode(last.payload, Commit)
            return last.sequence if stored.id == commit.id else None
        return published.sequence
    raise CommitUnconfirmed(f"commit {commit.number} of {commit.run} was not confirmed")


async def publish_outgoing(bus: Bus, commit: Commit, *, traceparent: str | None) -> None:
    """Send what a commit owes, all at once; sending it again is harmless.

    Raises the first `BusError` when all have been tried.
    """
    sends = [
        partial(_send, bus, message, outgoing_id(commit.id, index), commit.id, traceparent)
        for index, message in enumerate(commit.outgoing)
    ]
    if len(sends) == 1:
        await sends[0]()
        return
    failures: list[BusError] = []

    async def attempt(send: Callable[[], Awaitable[None]]) -> None:
        # One by one: as a group of exceptions, an outage would look like a fault of ours.
        try:
            await send()
        except BusError as error:
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        for send in sends:
            tasks.start_soon(attempt, send)
    if failures:
        raise failures[0]


async def _send(bus: Bus, message: Outgoing, message_id: str, cause: str, traceparent: str | None) -> None:
    headers = headers_of(message_id, cause, traceparent)
    body = bytes(message.body)
    if message.at is not None and message.target is not None:
        at = datetime.fromisoformat(message.at)
        await bus.schedule(message.subject, message.target, body, at=at, headers=headers)
        return
    await bus.publish(message.subject, body, message_id=message_id, headers=headers)


async def read_commits(bus: Bus, run: str, *, after: int, upto: int) -> Sequence[StoredCommit]:
    """Return the commits of a run with a sequence above `after`, up to and including `upto`.

    Raises `CommitsMissing` if a replica does not catch up in time.
    """
    subject = subjects.commit(run)
    commits: list[StoredCommit] = []
    position = after
    for _ in range(READ_TRIES_MAX):
        while messages := await bus.read(RUNS, subject, after=position):
            commits.extend(_stored(message) for message in messages if message.sequence <= upto)
            position = messages[-1].sequence
            if position >= upto:
                return commits
        await anyio.sleep(READ_RETRY_DELAY_S)
    raise CommitsMissing(f"commits of {run} after {position} are not readable yet")


async def last_commit(bus: Bus, run: str) -> StoredCommit | None:
    """Return the run's last commit as the stream's leader has it, or None for an unknown run."""
    last = await bus.last(RUNS, subjects.commit(run))
    return _stored(last) if last else None


async def is_last(bus: Bus, run: str, sequence: int) -> bool:
    """Say whether the run's last commit is the one at `sequence` (0: it has none)."""
    last = await bus.last(RUNS, subjects.commit(run))
    return (last.sequence if last else 0) == sequence


def _stored(message: Stored) -> StoredCommit:
    return StoredCommit(message.sequence, decode(message.payload, Commit))
