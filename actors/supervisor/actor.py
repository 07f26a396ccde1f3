"""The supervisor's shell: partitions in, one mailbox a run, commits out.

Messages of a run are decided one batch at a time, so that what came together becomes one commit; runs go on
beside one another. The order within a batch's life is the commit protocol's (0-architecture, "Commit"):
decide → commit → publish → acknowledge, with a named crash point between any two of them.

What is known of runs is kept a partition, and goes with it: while somebody else held the partition the runs
went on, so knowledge from before would be out of date.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
import msgspec
from anyio.abc import TaskGroup, TaskStatus
from opentelemetry.trace import SpanKind

from temporality.actors import conventions
from temporality.actors.bus.port import BusError, Delivery
from temporality.actors.host import DELIVERIES_MAX, Held, Host, Received
from temporality.actors.supervisor.commits import (
    StoredCommit,
    append,
    identified,
    is_last,
    publish_outgoing,
)
from temporality.actors.supervisor.evaluators import Evaluators
from temporality.actors.supervisor.partitions import Partitions
from temporality.actors.supervisor.runs import LoadedRun, load_run
from temporality.actors.supervisor.saver import Saver
from temporality.actors.supervisor.state import ENDED, Status
from temporality.actors.supervisor.steps import Refusal, Step, Steps
from temporality.protocol import subjects
from temporality.protocol.codec import encode
from temporality.protocol.errors import InvalidSubject, WorldError, fault
from temporality.protocol.run import (
    COMMIT_BYTES_MAX,
    INBOX_KIND_TYPES,
    Commit,
    InboxMessage,
    RunFailed,
)
from temporality.protocol.streams import INBOX
from temporality.storage.snapshots import Snapshots

BATCH_BYTES_MAX = 98_304
"""Messages decided together: what they bring stands in the commit, and its tool calls once more."""

BATCH_MESSAGES_MAX = 64
ALONE_FROM = 3
"""Deliveries after which a message is decided alone: if it is what fails, it takes no other one along."""

RACES_MAX = 8
"""Lost races in a row after which a batch is given back: somebody else is busy with this run."""

IN_FLIGHT_MAX = 256
RUNS_CACHED_MAX = 2_048
"""Runs kept in memory over all partitions; an older one is loaded again when it is addressed."""

START_BYTES_MAX = 786_432
"""A first commit holds the whole specification of its agent; beyond this no message could carry it."""


class RaceLost(BusError):
    """Another supervisor keeps committing to this run."""


@dataclass(frozen=True, slots=True)
class SupervisorSettings:
    """How many partitions the inbox has, how long a lease lives without renewal, and on how many servers."""

    partitions: int = 16
    lease_ttl_s: float = 5.0
    replicas: int = 1


@dataclass(slots=True)
class _Mailbox:
    """Messages of one run that wait, and whether a task is at work on them."""

    waiting: deque[tuple[Received[InboxMessage], Delivery]] = field(default_factory=deque)
    busy: bool = False


@dataclass(slots=True)
class _Partition:
    """What is known of the runs of a partition while it is held: their mailboxes, and those in memory."""

    mailboxes: dict[str, _Mailbox] = field(default_factory=dict)
    runs: dict[str, LoadedRun] = field(default_factory=dict)


class SupervisorActor:
    """Own the runs of the partitions held."""

    def __init__(self, host: Host, settings: SupervisorSettings, snapshots: Snapshots) -> None:
        self._host = host
        self._snapshots = snapshots
        self._held = Held(host.ack_wait_s, host.clock)
        self._evaluators = Evaluators(host)
        self._steps = Steps(host, self._evaluators)
        self._saver = Saver(snapshots, host.log, host.clock, self._forget)
        self._owned: dict[int, _Partition] = {}
        self._runs_max = max(RUNS_CACHED_MAX // settings.partitions, 1)
        self._reconnected = anyio.Event()
        self._partitions = Partitions(
            host,
            count=settings.partitions,
            ttl_s=settings.lease_ttl_s,
            serve=self._serve_partition,
            replicas=settings.replicas,
        )

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; then give back what is held, give up the leases, and write the snapshots."""
        self._host.bus.on_reconnect(self._note_reconnect)
        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._evaluators.run)
                tasks.start_soon(self._saver.run)
                tasks.start_soon(self._held.keep_alive)
                tasks.start_soon(self._republish_after_reconnects)
                await self._partitions.run(task_status=task_status)
        finally:
            await self._saver.finish()

    async def _serve_partition(
        self, partition: int, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        async with (
            self._host.bus.consume(
                INBOX,
                durable=f"inbox-{partition}",
                subject=subjects.inbox_partition(partition),
                ack_wait_s=self._host.ack_wait_s,
                in_flight_max=IN_FLIGHT_MAX,
            ) as deliveries,
            anyio.create_task_group() as tasks,
        ):
            owned = self._owned[partition] = _Partition()
            task_status.started()
            try:
                async for delivery in deliveries:
                    await self._accept(delivery, owned, tasks)
            finally:
                del self._owned[partition]

    async def _accept(self, delivery: Delivery, owned: _Partition, tasks: TaskGroup) -> None:
        """Put a message into its run's mailbox; one that can't be understood goes to the dead letters."""
        received: Received[InboxMessage] | None = await self._host.receive(INBOX, delivery, InboxMessage)
        if received is None:
            return
        try:
            run, kind = subjects.run_and_kind_of_inbox(delivery.subject)
        except InvalidSubject as error:
            await self._host.bury(INBOX, delivery, reason="wrong_subject", detail=str(error))
            return
        if not isinstance(received.message, INBOX_KIND_TYPES.get(kind, ())):
            detail = f"{type(received.message).__name__} is no message of kind {kind}"
            await self._host.bury(INBOX, delivery, reason="wrong_kind", detail=detail)
            return
        mailbox = owned.mailboxes.setdefault(run, _Mailbox())
        mailbox.waiting.append((received, delivery))
        self._held.add(delivery)
        if not mailbox.busy:
            mailbox.busy = True
            tasks.start_soon(self._empty, run, mailbox, owned)

    async def _empty(self, run: str, mailbox: _Mailbox, owned: _Partition) -> None:
        """Process a run's messages until none wait; cancelled, give back those that do."""
        try:
            while mailbox.waiting:
                received, deliveries = _take_batch(mailbox)
                try:
                    async with self._host.given_back_on_failure(INBOX, *deliveries):
                        await self._process(run, owned, received, deliveries)
                finally:
                    for delivery in deliveries:
                        self._held.drop(delivery)
        finally:
            owned.mailboxes.pop(run, None)
            left = [delivery for _, delivery in mailbox.waiting]
            for delivery in left:
                self._held.drop(delivery)
            if left:
                await self._host.give_back(*left)

    async def _process(
        self,
        run: str,
        owned: _Partition,
        received: Sequence[Received[InboxMessage]],
        deliveries: Sequence[Delivery],
    ) -> None:
        try:
            for _ in range(RACES_MAX):
                loaded = owned.runs.get(run) or await self._load(run, owned)
                if await self._step(loaded, received, deliveries):
                    if loaded.is_due and owned.runs.get(run) is loaded:
                        self._saver.save(loaded.snapshot())
                    return
                owned.runs.pop(run, None)
        except BaseException as error:
            # What this process believes of the run may be ahead of the log or behind it: load it anew.
            owned.runs.pop(run, None)
            ours = isinstance(error, Exception) and not isinstance(error, WorldError)
            if ours and any(delivery.delivered >= DELIVERIES_MAX for delivery in deliveries):
                await self._fail(run, error)
            raise
        raise RaceLost(f"another supervisor keeps committing to {run}")

    async def _fail(self, run: str, error: BaseException) -> None:
        """End a run one of whose messages is about to be given up: nothing else would ever go on with it."""
        loaded = await load_run(self._host.bus, self._snapshots, run, self._host.log)
        if loaded.state.status is Status.NEW or loaded.state.status in ENDED:
            return
        step = Step(loaded.state)
        what = f"a message of the run could not be handled: {fault(error)}"
        step.add(
            [RunFailed(where="supervisor", what=what, do="it is among the dead letters; please report it")]
        )
        commit = self._commit(loaded, step, ())
        if commit is not None:
            await append(self._host.bus, commit, traceparent=loaded.state.traceparent)

    async def _load(self, run: str, owned: _Partition) -> LoadedRun:
        loaded = await load_run(self._host.bus, self._snapshots, run, self._host.log)
        if len(owned.runs) >= self._runs_max:
            owned.runs.pop(next(iter(owned.runs)))
        owned.runs[run] = loaded
        return loaded

    def _forget(self, run: str) -> None:
        for owned in self._owned.values():
            owned.runs.pop(run, None)

    async def _step(
        self, loaded: LoadedRun, received: Sequence[Received[InboxMessage]], deliveries: Sequence[Delivery]
    ) -> bool:
        """Take one step and settle its messages; False if another owner's commit came first."""
        tracing, crash = self._host.tracing, self._host.crash
        parent = loaded.state.traceparent or received[0].traceparent
        with tracing.span(conventions.TURN, parent=parent, kind=SpanKind.CONSUMER) as span:
            span.set_attribute(conventions.RUN_ID, loaded.run)
            step = await self._steps.take(loaded, received)
            crash.reached("supervisor.decided")
            commit = self._commit(loaded, step, received) if step.facts else None
            if commit is None:
                if not await is_last(self._host.bus, loaded.run, loaded.sequence):
                    return False
            else:
                span.set_attribute(conventions.COMMIT_NUMBER, commit.number)
                traceparent = tracing.traceparent()
                sequence = await append(self._host.bus, commit, traceparent=traceparent)
                if sequence is None:
                    return False
                crash.reached("supervisor.committed")
                loaded.advance(StoredCommit(sequence, commit))
                await publish_outgoing(self._host.bus, commit, traceparent=traceparent)
                crash.reached("supervisor.published")
        await self._settle(step, received, deliveries)
        crash.reached("supervisor.acked")
        return True

    def _commit(
        self, loaded: LoadedRun, step: Step, received: Sequence[Received[InboxMessage]]
    ) -> Commit | None:
        """Return the commit of a step, or None for a start that no commit can hold."""
        commit = identified(
            Commit(
                id="",
                run=loaded.run,
                number=loaded.state.number + 1,
                predecessor=loaded.sequence,
                at=self._host.clock.now().isoformat(),
                facts=tuple(step.facts),
                outgoing=tuple(step.outgoing),
                causes=tuple(message.id for message in received),
                generation=loaded.state.generation,
            )
        )
        size = len(encode(commit))
        starts = loaded.state.status is Status.NEW
        if size <= (START_BYTES_MAX if starts else COMMIT_BYTES_MAX):
            return commit
        if starts:
            detail = f"the start takes {size} bytes; a first commit holds at most {START_BYTES_MAX}"
            step.refused.update((message.id, Refusal("too_large", detail)) for message in received)
            return None
        failed = RunFailed(
            where="commit",
            what=f"one step of the run takes {size} bytes; a commit holds at most {COMMIT_BYTES_MAX}",
            do="ask the model for shorter replies or fewer calls at a time",
        )
        step.facts[:], step.outgoing[:] = [failed], []
        return identified(msgspec.structs.replace(commit, facts=(failed,), outgoing=()))

    async def _settle(
        self, step: Step, received: Sequence[Received[InboxMessage]], deliveries: Sequence[Delivery]
    ) -> None:
        for message, delivery in zip(received, deliveries, strict=True):
            refusal = step.refused.get(message.id)
            if refusal is None:
                await delivery.ack()
            else:
                await self._host.bury(INBOX, delivery, reason=refusal.reason, detail=refusal.detail)

    def _note_reconnect(self) -> None:
        self._reconnected.set()

    async def _republish_after_reconnects(self) -> None:
        """Publish again what the runs' last commits owe, each time the connection is back."""
        while True:
            await self._reconnected.wait()
            self._reconnected = anyio.Event()
            for loaded in [run for owned in self._owned.values() for run in owned.runs.values()]:
                if loaded.last is None or loaded.state.status in ENDED:
                    continue
                try:
                    await publish_outgoing(self._host.bus, loaded.last, traceparent=loaded.state.traceparent)
                except BusError as error:
                    self._host.log.warning("not republished: %s", type(error).__name__)


def _take_batch(mailbox: _Mailbox) -> tuple[list[Received[InboxMessage]], list[Delivery]]:
    received: list[Received[InboxMessage]] = []
    deliveries: list[Delivery] = []
    size = 0
    while mailbox.waiting and len(received) < BATCH_MESSAGES_MAX:
        message, delivery = mailbox.waiting[0]
        size += len(delivery.payload)
        if received and (size > BATCH_BYTES_MAX or delivery.delivered > ALONE_FROM):
            break
        mailbox.waiting.popleft()
        received.append(message)
        deliveries.append(delivery)
        if delivery.delivered > ALONE_FROM:
            break
    return received, deliveries
