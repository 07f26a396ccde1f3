"""Publishes the public facts of every commit: the commit log is their outbox.

A durable consumer of RUNS remembers how far this actor has come, so facts wait for it and nothing else does
(A43). A commit is acknowledged after all its facts are stored; killed in between, it comes again, and its
facts are recognised by their ids. Commits are taken one after another and their publishes sent at once, so
facts reach the stream in order unless a publish fails, and the server is never waited for twice.
"""

from collections import OrderedDict
from collections.abc import Sequence

import anyio
from anyio.abc import TaskStatus
from opentelemetry.trace import SpanKind

from temporality.actors import conventions
from temporality.actors.bus.port import BusError, Delivery
from temporality.actors.host import Held, Host, Received
from temporality.actors.telemetry.decider import project, project_of
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.fact import PublicFact
from temporality.protocol.message import TRACE_HEADER
from temporality.protocol.run import Commit
from temporality.protocol.streams import FACTS, RUNS

DURABLE = "telemetry"
"""Name of the consumer whose position says which commits have become facts; a purge of commits heeds it."""

COMMITS_HELD_MAX = 64
"""Commits whose facts are on their way at once: some hundred publishes, far from the server's limits."""

RUNS_REMEMBERED_MAX = 10_000
"""Runs whose project is remembered; one more read of the stream for any other."""


class UnknownRun(Exception):
    """Nothing that is left says which project a run belongs to."""


class CommitNotReadable(BusError):
    """The reader that was asked lags behind: the run's first commit will be there."""


class FactPublisher:
    """Turn commits into public facts, at least once each."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._held = Held(host.ack_wait_s, host.clock)
        self._projects: OrderedDict[str, str] = OrderedDict()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Publish until cancelled; what is under way is given back then. Started once it takes commits."""
        async with (
            self._host.bus.consume(
                RUNS,
                durable=DURABLE,
                subject=subjects.all_commits(),
                ack_wait_s=self._host.ack_wait_s,
                in_flight_max=COMMITS_HELD_MAX,
            ) as deliveries,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._held.keep_alive)
            task_status.started()
            async for delivery in deliveries:
                received = await self._host.receive(RUNS, delivery, Commit)
                if received is None:
                    continue
                async with self._host.given_back_on_failure(RUNS, delivery):
                    facts = await self._facts_of(received, delivery)
                    if facts is not None:
                        tasks.start_soon(self._publish, delivery, received, facts)

    async def _facts_of(
        self, received: Received[Commit], delivery: Delivery
    ) -> tuple[PublicFact, ...] | None:
        commit = received.message
        try:
            return project(commit, project=await self._project_of(commit))
        except UnknownRun:
            await self._host.bury(RUNS, delivery, reason="unknown_run", detail=f"commit {commit.number}")
            return None

    async def _publish(
        self, delivery: Delivery, received: Received[Commit], facts: Sequence[PublicFact]
    ) -> None:
        commit = received.message
        with (
            self._held.holding(delivery),
            self._host.tracing.span(
                conventions.spanned(conventions.SEND, subjects.facts()),
                parent=received.traceparent,
                kind=SpanKind.PRODUCER,
                attributes={
                    conventions.RUN_ID: commit.run,
                    conventions.COMMIT_NUMBER: commit.number,
                    conventions.MESSAGING_BATCH_MESSAGE_COUNT: len(facts),
                },
            ),
        ):
            async with self._host.given_back_on_failure(RUNS, delivery):
                await self._publish_all(facts, received.traceparent)
                self._host.crash.reached("telemetry.published")
                await delivery.ack()
                self._host.crash.reached("telemetry.acked")

    async def _publish_all(self, facts: Sequence[PublicFact], traceparent: str | None) -> None:
        """Store the facts, all under way at once; raises the first error after every one has its answer."""
        # Id, cause and schema version stand in a fact's body; repeated in headers they'd be a third of it.
        headers = {TRACE_HEADER: traceparent} if traceparent else {}
        errors: list[Exception] = []

        async def publish(fact: PublicFact) -> None:
            subject = subjects.fact(fact.project, fact.run, fact.kind)
            try:
                await self._host.bus.publish(subject, encode(fact), message_id=fact.id, headers=headers)
            except Exception as error:  # noqa: BLE001 - raised below, by itself instead of in a group
                errors.append(error)

        async with anyio.create_task_group() as publishing:
            for fact in facts:
                publishing.start_soon(publish, fact)
        if errors:
            raise errors[0]

    async def _project_of(self, commit: Commit) -> str:
        """Return the run's project, which its first commit names; raises `UnknownRun` if nothing does."""
        run = commit.run
        found = project_of(commit) or self._projects.get(run) or await self._read_project(commit)
        self._projects[run] = found
        self._projects.move_to_end(run)
        if len(self._projects) > RUNS_REMEMBERED_MAX:
            self._projects.popitem(last=False)
        return found

    async def _read_project(self, commit: Commit) -> str:
        """Read the project from the run's first commit, or from a fact of a run whose first is gone."""
        first = await self._host.bus.read(RUNS, subjects.commit(commit.run), count_max=1)
        if not first:
            raise CommitNotReadable(commit.run)
        found = project_of(decode(first[0].payload, Commit))
        if found is None:
            fact = await self._host.bus.last(FACTS, subjects.facts(commit.run))
            found = decode(fact.payload, PublicFact).project if fact else None
        if found is None:
            raise UnknownRun(commit.run)
        return found
