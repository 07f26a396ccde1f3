"""A whole supervisor on the in-memory bus; model, executor and time are in the hand of the test.

Nothing here happens by itself: the test takes the calls that the supervisor makes and answers them, and the
clock moves on only while the test waits for something and everybody else waits, too.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

from temporality.actors.bus.memory import MemoryBus, MemoryServer
from temporality.actors.bus.port import Bucket, Bus, Delivery, Stored
from temporality.actors.clock import VirtualClock
from temporality.actors.crash import CrashPoints
from temporality.actors.host import Host
from temporality.actors.supervisor.actor import SupervisorActor, SupervisorSettings
from temporality.actors.supervisor.state import RunState, evolve
from temporality.actors.tracing import Tracing
from temporality.actors.triggers.actor import TriggersActor
from temporality.protocol import subjects
from temporality.protocol.agent import AgentSpec
from temporality.protocol.codec import decode, encode
from temporality.protocol.hint import Hint, HintBatch, HintBatchAnswer
from temporality.protocol.identity import RunIdentity
from temporality.protocol.message import ID_HEADER, Message
from temporality.protocol.model import ModelCall, ModelCompleted, ProviderCall
from temporality.protocol.run import Commit, RunFact, StartRun
from temporality.protocol.streams import DEAD, INBOX, RUNS, WORK, stream_specs
from temporality.protocol.tool import ListTools, ToolCall, ToolFinished, ToolOutcome, ToolsListed
from temporality.protocol.transcript import TranscriptMessage, fold
from temporality.storage.snapshots import MemorySnapshots, Snapshots

from .scenes import TABLE, agent, answer

T = TypeVar("T")

PARTITIONS = 2
TTL_S = 5.0


class OwnLeases(MemoryBus):
    """A bus on which leases bind nobody else: each process believes to hold every partition."""

    async def bucket(self, name: str, *, ttl_s: float, replicas: int = 1) -> Bucket:
        """Open a bucket that no other process opens."""
        return await super().bucket(f"{name}_{self.name}", ttl_s=ttl_s, replicas=replicas)


class KillAt(CrashPoints):
    """Kills a supervisor of this process at the `count`-th time that a point is reached."""

    def __init__(self, point: str, count: int = 1) -> None:
        super().__init__()
        self._left = {point: count}
        self.kill: Callable[[], None] = lambda: None

    def reached(self, point: str) -> None:
        """As a real kill: from here on nothing reaches the bus any more."""
        if point in self._left:
            self._left[point] -= 1
            if self._left[point] == 0:
                self.kill()


@dataclass
class Supervisor:
    """One supervisor process; `up` is set once it serves, or has died before."""

    name: str
    bus: MemoryBus
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    up: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    killed: bool = False

    def started(self, value: None = None) -> None:  # noqa: ARG002
        """Be told that it serves."""
        self.up.set()

    def kill(self) -> None:
        """End it as by `kill -9`: what it holds is not given back."""
        self.killed = True
        self.bus.connection.close()
        self.scope.cancel()

    async def stop(self) -> None:
        """End it as by SIGTERM, and wait for the end."""
        self.scope.cancel()
        await self.ended.wait()


class System:
    """What a test acts on: a server, its clock, supervisors, and a connection that plays everybody else."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.clock = VirtualClock()
        self.server = MemoryServer(self.clock)
        self.faults = self.server.faults
        self.bus = MemoryBus(self.server, "test")
        self.snapshots: Snapshots = MemorySnapshots()
        self.supervisors: list[Supervisor] = []
        self.taken: list[Delivery] = []
        self.tasks = tasks
        self._calls: dict[type[Message], AsyncIterator[Delivery]] = {}
        self._ids = 0

    def host(self, bus: Bus, actor: str, name: str, crash: CrashPoints | None = None) -> Host:
        """A host on this system's clock, without telemetry."""
        return Host(
            bus,
            actor=actor,
            name=name,
            clock=self.clock,
            tracing=Tracing(),
            crash=crash,
            ack_wait_s=TTL_S,
        )

    async def supervisor(
        self,
        *,
        kill_at: KillAt | None = None,
        leases: bool = True,
        snapshots: Snapshots | None = None,
        bus_type: type[MemoryBus] = MemoryBus,
    ) -> Supervisor:
        """Start another supervisor; `leases=False` lets it serve every partition, whoever else does."""
        name = f"s{len(self.supervisors) + 1}"
        bus = bus_type(self.server, name) if leases else OwnLeases(self.server, name)
        supervisor = Supervisor(name, bus)
        if kill_at is not None:
            kill_at.kill = supervisor.kill
        actor = SupervisorActor(
            self.host(bus, "supervisor", name, kill_at),
            SupervisorSettings(partitions=PARTITIONS, lease_ttl_s=TTL_S),
            snapshots or self.snapshots,
        )
        self.supervisors.append(supervisor)
        self.tasks.start_soon(self._live, actor, supervisor)
        await self.soon(supervisor.up.wait())
        return supervisor

    async def _live(self, actor: SupervisorActor, supervisor: Supervisor) -> None:
        try:
            with supervisor.scope:
                await actor.run(task_status=supervisor)
        except BaseException:
            if not supervisor.killed:
                raise
        finally:
            supervisor.up.set()
            supervisor.ended.set()
            await supervisor.bus.aclose()

    async def executor(self) -> None:
        """Start what answers which tools there are; their calls are the test's to answer."""

        async def tools(_asked: Any) -> ToolsListed:
            return ToolsListed(tools=TABLE.definitions)

        await self.answering(subjects.ask("executor", "tools"), ListTools, tools)

    async def triggers(self) -> None:
        """Start the built-in triggers."""
        bus = MemoryBus(self.server, "triggers")
        await self.soon(self.tasks.start(TriggersActor(self.host(bus, "triggers", "t")).run))

    async def retriever(self, *knowledge: Hint) -> None:
        """Start a retriever that finds all this knowledge in every situation."""

        async def find(asked: Any) -> HintBatchAnswer:
            requests = asked.message.resolved()
            return HintBatchAnswer(results=tuple(answer(request, knowledge) for request in requests))

        await self.answering(subjects.all_hints_find(), HintBatch, find)

    async def answering(self, subject: str, kind: Any, handle: Callable[[Any], Awaitable[Any]]) -> None:
        """Answer questions for the rest of the test."""
        host = self.host(self.bus, "peer", "peer")

        async def serve(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            await host.answer(subject=subject, queue="q", kind=kind, handle=handle, task_status=task_status)

        await self.soon(self.tasks.start(serve))

    # --- time ------------------------------------------------------------------------------------------
    async def soon(self, wanted: Awaitable[T], *, within_s: float = 60.0) -> T:
        """Wait for `wanted`; time passes only while everybody waits, and at most `within_s` of it."""
        task: asyncio.Future[T] = asyncio.ensure_future(wanted)
        end = self.clock.monotonic() + within_s
        try:
            while not task.done():
                await self._settle(task)
                due = self.clock.next_due()
                if task.done():
                    break
                if due is None or due > end:
                    raise TimeoutError("nothing that comes in time brings it about")
                self.clock.advance(due - self.clock.monotonic())
        finally:
            if not task.done():
                task.cancel()
        return task.result()

    async def quiet(self, seconds: float = 0.0) -> None:
        """Let everything happen that happens now, and then `seconds` pass."""
        end = self.clock.monotonic() + seconds
        await self._settle(None)
        while (due := self.clock.next_due()) is not None and due <= end:
            self.clock.advance(due - self.clock.monotonic())
            await self._settle(None)
        self.clock.advance(end - self.clock.monotonic())
        await self._settle(None)

    @staticmethod
    async def _settle(task: "asyncio.Future[Any] | None") -> None:
        """Let everybody go on until nobody has anything to do; asyncio has no public way to ask for that."""
        ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]  # noqa: SLF001
        await asyncio.sleep(0)
        while ready and not (task is not None and task.done()):  # noqa: ASYNC110
            await asyncio.sleep(0)

    # --- what peers say --------------------------------------------------------------------------------
    async def tell(
        self, run: str, kind: str, message: Message | bytes, *, message_id: str | None = None
    ) -> str:
        """Put a message into a run's inbox; return its id."""
        return await self.soon(self.publish(run, kind, message, message_id))

    async def publish(
        self, run: str, kind: str, message: Message | bytes, message_id: str | None = None
    ) -> str:
        """As `tell`, for a peer that is a task of its own and lets others pass the time."""
        self._ids += 1
        message_id = message_id or f"told-{self._ids}"
        payload = message if isinstance(message, bytes) else encode(message)
        headers = {ID_HEADER: message_id}
        await self.bus.publish(subjects.inbox(run, kind), payload, message_id=message_id, headers=headers)
        return message_id

    async def start(self, run: str = "r1", spec: AgentSpec | None = None, task: str = "the task") -> str:
        """Start a run."""
        start = StartRun(identity=RunIdentity(run=run), agent=spec or agent(), task=task)
        await self.tell(run, "command", start, message_id=f"{run}.start")
        return run

    async def model_asks(
        self, call: ModelCall, *calls: tuple[str, str], content: str = "", message_id: str | None = None
    ) -> None:
        """Answer a model call: with tool calls (name, JSON arguments), or with the final `content`."""
        await self.tell(call.run, "reply", model_reply(call, *calls, content=content), message_id=message_id)

    async def finish(self, call: ToolCall, outcome: ToolOutcome, *, message_id: str | None = None) -> None:
        """Report one outcome."""
        await self.tell(
            call.run, "outcome", ToolFinished(call=call.call, outcome=outcome), message_id=message_id
        )

    async def finish_together(self, outcomes: Sequence[tuple[ToolCall, ToolOutcome]]) -> None:
        """Report several outcomes in the same moment."""
        reports = [
            self.publish(call.run, "outcome", ToolFinished(call=call.call, outcome=outcome))
            for call, outcome in outcomes
        ]
        await self.soon(asyncio.gather(*reports))

    # --- what the supervisor says ----------------------------------------------------------------------
    async def model_call(self, *, within_s: float = 60.0) -> ModelCall:
        """Take the next model call."""
        return await self.soon(self._take(ModelCall), within_s=within_s)

    async def tool_call(self) -> ToolCall:
        """Take the next tool call."""
        return await self.soon(self._take(ToolCall))

    def calls_of(self, kind: type[Message]) -> AsyncIterator[Delivery]:
        """The queue of model or tool calls, for a peer that is a task of its own."""
        return self._calls[kind]

    async def _take(self, kind: type[Any]) -> Any:
        delivery = await anext(self._calls[kind])
        await delivery.ack()
        self.taken.append(delivery)
        return decode(delivery.payload, kind)

    async def until(self, kind: type[RunFact], *runs: str, within_s: float = 120.0) -> None:
        """Wait until each of these runs has a fact of this kind."""

        async def wait() -> None:
            left = set(runs)
            async with self.bus.follow(RUNS, subjects.all_commits()) as commits:
                while left:
                    commit = decode((await anext(commits)).payload, Commit)
                    if any(isinstance(fact, kind) for fact in commit.facts):
                        left.discard(commit.run)

        await self.soon(wait(), within_s=within_s)

    async def commits(self, run: str = "r1") -> list[Stored]:
        """All commits of a run, as stored."""
        return await self.bus.read(RUNS, subjects.commit(run), count_max=10_000)

    async def facts(self, run: str = "r1") -> list[RunFact]:
        """All facts of a run."""
        return [f for stored in await self.commits(run) for f in decode(stored.payload, Commit).facts]

    async def of(self, kind: type[T], run: str = "r1") -> list[T]:
        """The facts of one kind, in order."""
        return [fact for fact in await self.facts(run) if isinstance(fact, kind)]

    async def state(self, run: str = "r1") -> RunState:
        """The fold of all facts, as far as facts say it."""
        state = RunState()
        for fact in await self.facts(run):
            state = evolve(state, fact)
        return state

    async def transcript(self, run: str = "r1") -> list[TranscriptMessage]:
        """What the model sees."""
        state, messages = RunState(), list[TranscriptMessage]()
        for fact in await self.facts(run):
            messages.extend(fold(state.open, fact)[1])
            state = evolve(state, fact)
        return messages

    async def dead_letters(self) -> list[tuple[str, str]]:
        """Reason and detail of every dead letter."""
        letters = await self.bus.read(DEAD, "temporality.dead.>")
        return [(m.headers["Temporality-Reason"], m.headers["Temporality-Detail"]) for m in letters]

    async def waiting(self) -> int:
        """How many inbox messages are not settled yet."""
        counts = [await self.bus.pending(INBOX, f"inbox-{n}") for n in range(PARTITIONS)]
        return sum(sum(pair) for pair in counts)

    async def served(self) -> None:
        """Wait until every inbox message is settled."""
        while await self.waiting():
            await self.quiet(0.5)

    async def open(self, stack: AsyncExitStack) -> None:
        """Declare the streams and take the peers' places."""
        await self.bus.declare(stream_specs(PARTITIONS))
        for kind, durable, subject in (
            (ModelCall, "model-default", subjects.model_pool("default")),
            (ToolCall, "tool-default", subjects.tool_pool("default")),
        ):
            calls = self.bus.consume(WORK, durable=durable, subject=subject, ack_wait_s=3_600.0)
            self._calls[kind] = await stack.enter_async_context(calls)


def model_reply(call: ModelCall, *calls: tuple[str, str], content: str = "") -> ModelCompleted:
    """What a model caller reports."""
    return ModelCompleted(
        call=call.call,
        transcript_digest=call.transcript_digest,
        content=content,
        tool_calls=tuple(
            ProviderCall(id=f"p{index}", name=name, arguments=arguments)
            for index, (name, arguments) in enumerate(calls)
        ),
    )


@asynccontextmanager
async def system(*, executor: bool = True) -> AsyncIterator[System]:
    """Open a system without a supervisor."""
    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        on = System(tasks)
        await on.open(stack)
        if executor:
            await on.executor()
        yield on
        tasks.cancel_scope.cancel()
