"""Runs in memory: loaded from snapshot and commits, advanced by each commit, forgotten when in doubt."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from temporality.actors.bus.port import Bus
from temporality.actors.supervisor.commits import (
    StoredCommit,
    last_commit,
    publish_outgoing,
    read_commits,
)
from temporality.actors.supervisor.state import ENDED, RunState, Status, evolve
from temporality.protocol.agent import AgentSpec
from temporality.protocol.codec import decode, encode
from temporality.protocol.identity import RunIdentity
from temporality.protocol.message import Record
from temporality.protocol.run import Commit, RunFact
from temporality.protocol.transcript import TranscriptMessage, fold
from temporality.storage.snapshots import Snapshot, Snapshots


class Origin(Record, frozen=True, kw_only=True):
    """What a run started with: the large part of its state, which never changes and is kept once."""

    identity: RunIdentity
    agent: AgentSpec
    task: str
    traceparent: str | None = None


_SAVED_IN = ENDED | {Status.AWAITING_MODEL}


@dataclass(slots=True)
class LoadedRun:
    """A run as this process knows it: the fold of its commits up to `sequence`.

    `unsaved` are the transcript's messages since the last snapshot (of the commit at `saved`), the first of
    them at `position`.
    """

    run: str
    state: RunState = field(default_factory=RunState)
    sequence: int = 0
    last: Commit | None = None
    position: int = 0
    saved: int = 0
    unsaved: list[TranscriptMessage] = field(default_factory=list)

    @property
    def is_due(self) -> bool:
        """Say whether a barrier has closed, or the run has ended, since the last snapshot."""
        return self.sequence > self.saved and self.state.status in _SAVED_IN

    def advance(self, stored: StoredCommit) -> None:
        """Fold one more commit."""
        self.state = self._folded(stored.commit.facts)
        self.state = msgspec.structs.replace(
            self.state, number=stored.commit.number, generation=stored.commit.generation
        )
        self.sequence = stored.sequence
        self.last = stored.commit

    def is_followed_by(self, commit: Commit) -> bool:
        """Say whether a commit was decided on this state."""
        return commit.predecessor == self.sequence and commit.number == self.state.number + 1

    def snapshot(self) -> Snapshot:
        """Return what is new since the last snapshot, and count it as saved."""
        state = self.state
        origin = Origin(identity=state.who, agent=state.spec, task=state.task, traceparent=state.traceparent)
        slim = msgspec.structs.replace(state, identity=None, agent=None, task="", traceparent=None)
        messages = tuple(encode(message) for message in self.unsaved)
        snapshot = Snapshot(
            run=self.run,
            sequence=self.sequence,
            number=state.number,
            origin=encode(origin),
            state=encode(slim),
            position=self.position,
            messages=messages,
        )
        self.position += len(messages)
        self.saved = self.sequence
        self.unsaved.clear()
        return snapshot

    def _folded(self, facts: Iterable[RunFact]) -> RunState:
        state = self.state
        for fact in facts:
            self.unsaved.extend(fold(state.open, fact)[1])
            state = evolve(state, fact)
        return state


def restored(snapshot: Snapshot) -> LoadedRun:
    """Return the run that a snapshot holds."""
    origin = decode(snapshot.origin, Origin)
    state = msgspec.structs.replace(
        decode(snapshot.state, RunState),
        identity=origin.identity,
        agent=origin.agent,
        task=origin.task,
        traceparent=origin.traceparent,
    )
    return LoadedRun(
        run=snapshot.run,
        state=state,
        sequence=snapshot.sequence,
        position=snapshot.position,
        saved=snapshot.sequence,
    )


async def load_run(bus: Bus, snapshots: Snapshots, run: str, log: logging.Logger) -> LoadedRun:
    """Load a run: its snapshot and the commits after it, or all of its commits.

    The snapshot is used only if the commit after it names it as predecessor (or if it is of the last commit);
    one that can't be read is logged and left out. A run without commits is new.
    The last commit's outgoing messages are published again, since whoever stored it may have died before it
    sent them.
    """
    last = await last_commit(bus, run)
    if last is None:
        return LoadedRun(run)
    loaded = await _from_snapshot(snapshots, run, last, log)
    if loaded.sequence < last.sequence:
        commits = await read_commits(bus, run, after=loaded.sequence, upto=last.sequence)
        if not commits or not loaded.is_followed_by(commits[0].commit):
            loaded = LoadedRun(run)
            commits = await read_commits(bus, run, after=0, upto=last.sequence)
        for stored in commits:
            loaded.advance(stored)
    loaded.last = last.commit
    await publish_outgoing(bus, last.commit, traceparent=loaded.state.traceparent)
    return loaded


async def _from_snapshot(
    snapshots: Snapshots, run: str, last: StoredCommit, log: logging.Logger
) -> LoadedRun:
    """Return what the snapshot holds, or a new run if there is none that belongs to these commits."""
    try:
        snapshot = await snapshots.load(run)
        loaded = restored(snapshot) if snapshot else LoadedRun(run)
    except Exception as error:  # noqa: BLE001
        # A snapshot is a cache: a damaged row or file costs reading the commits, never the run.
        log.warning("the snapshot of %s could not be read: %s", run, type(error).__name__)
        return LoadedRun(run)
    ahead = loaded.sequence > last.sequence
    other = loaded.sequence == last.sequence and loaded.state.number != last.commit.number
    return LoadedRun(run) if ahead or other else loaded
