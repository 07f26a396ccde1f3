"""A deployment for one test: real nats-server, real actors, a scripted model, a ledger of effects outside.

Actors run as tasks of the test's process unless the test is about a process of theirs.
"""

import json
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import msgspec

from temporality.actors.bus.port import Bus, Message
from temporality.actors.model.script_file import parse_script
from temporality.actors.model.scripted_server import serve_scripted
from temporality.deploy.assembly import ACTORS, open_bus
from temporality.deploy.config import Config, EmbeddedNats, Environment, NatsSettings, OtelSettings
from temporality.deploy.knowledge import import_items
from temporality.deploy.local import Deployment, deployment
from temporality.deploy.watching import RunResult, run_to_end
from temporality.protocol import subjects
from temporality.protocol.agent import AgentSpec, ModelSpec
from temporality.protocol.codec import decode
from temporality.protocol.editorial import KnowledgeItem
from temporality.protocol.fact import PublicFact
from temporality.protocol.identity import RunIdentity, new_run_id
from temporality.protocol.run import Commit, RunFact, StartRun
from temporality.protocol.streams import FACTS, RUNS
from temporality.protocol.trigger import TRIGGER_SERVICE

from .recorded import Recorded, recorded

REPOSITORY = Path(__file__).parents[2]
RUN_S = 40.0
"""A run that has not ended by then has lost something."""

LEASE_TTL_S = 1.0
"""Short, so that a test that kills a process doesn't wait long for somebody else to take over."""

UNHURRIED_LEASE_S = 5.0
"""The default of the product: on a busy machine nothing is delivered twice that was not lost."""

ENDED = frozenset({"run.finished", "run.failed", "run.cancelled"})


@dataclass
class Stage:
    """What a test acts on: the deployment, a bus of its own, and what the model was asked."""

    folder: Path
    running: Deployment
    bus: Bus
    model: ModelSpec
    results: list[RunResult] = field(default_factory=list)

    @property
    def requests(self) -> list[dict[str, object]]:
        """The bodies of all requests, as the model's HTTP server received them."""
        lines = (self.folder / "requests.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["body"] for line in lines]

    @property
    def recorded(self) -> list[Recorded]:
        """The same requests to the byte."""
        return recorded(self.folder / "requests.jsonl")

    async def run(self, agent: AgentSpec, task: str = "Do the task.", *, run: str | None = None) -> RunResult:
        """Run an agent to its end, under a given id or a new one."""
        identity = RunIdentity(run=run or new_run_id(), project="test")
        start = StartRun(identity=identity, agent=agent, task=task)
        with anyio.fail_after(RUN_S):
            result = await run_to_end(self.bus, start)
        self.results.append(result)
        return result

    def agent(self, **settings: object) -> AgentSpec:
        """An agent that asks this stage's scripted model."""
        return msgspec.convert(
            {"name": "tester", "model": msgspec.to_builtins(self.model), **settings}, AgentSpec
        )

    async def commits(self, run: str) -> list[Commit]:
        """All commits of a run, as stored."""
        stored = await self.bus.read(RUNS, subjects.commit(run), count_max=10_000)
        return [decode(message.payload, Commit) for message in stored]

    async def facts_of(self, run: str, kind: type) -> list[RunFact]:
        """The private facts of one kind, in order."""
        return [f for commit in await self.commits(run) for f in commit.facts if isinstance(f, kind)]

    async def public_facts(self, run: str) -> list[PublicFact]:
        """All public facts of a run that has ended, once the last of them is published."""
        facts: list[PublicFact] = []
        with anyio.fail_after(RUN_S):
            async with self.bus.follow(FACTS, subjects.facts(run)) as messages:
                async for message in messages:
                    facts.append(decode(message.payload, PublicFact))
                    if facts[-1].kind in ENDED:
                        return facts
        raise AssertionError("unreachable")


@asynccontextmanager
async def listening(bus: Bus, subject: str, heard: Callable[[Message], object]) -> AsyncIterator[None]:
    """Hand every core message on a subject to `heard` while the context lasts."""

    async def listen(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with bus.subscribe(subject) as messages:
            task_status.started()
            async for message in messages:
                heard(message)

    async with anyio.create_task_group() as tasks:
        await tasks.start(listen)
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def stage(
    folder: Path,
    script: str,
    *,
    processes: Collection[str] = (),
    actors: Collection[str] = tuple(ACTORS),
    first_environment: Mapping[str, Mapping[str, str]] | None = None,
    environment: Mapping[str, str] | None = None,
    knowledge: tuple[KnowledgeItem, ...] = (),
    lease_ttl_s: float = LEASE_TTL_S,
    otel: str | None = None,
) -> AsyncIterator[Stage]:
    """Set a stage; `processes` names the actors that get a process of their own."""
    async with anyio.create_task_group() as tasks:

        async def serve(*, task_status: anyio.abc.TaskStatus[int]) -> None:
            await serve_scripted(
                parse_script(script, where="script"),
                record=folder / "requests.jsonl",
                task_status=task_status,
            )

        port = await tasks.start(serve)
        variables = {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "PYTHONPATH": str(REPOSITORY),
            "LEDGER": str(folder / "ledger"),
            "MODEL_KEY": "scripted",
            **(environment or {}),
        }
        settings = Config(
            data_dir=str(folder / "data"),
            nats=NatsSettings(embedded=EmbeddedNats(sync="default")),
            lease_ttl_s=lease_ttl_s,
            otel=OtelSettings(endpoint=otel),
            partitions=4,
        )
        async with (
            deployment(
                settings,
                Environment(variables),
                actors=actors,
                in_process=[kind for kind in actors if kind not in processes],
                first_environment=first_environment,
            ) as running,
            open_bus(running.url, name="test") as bus,
        ):
            if knowledge:
                await import_items(bus, knowledge, decided_by="tester")
            model = ModelSpec(name="scripted", base_url=f"http://127.0.0.1:{port}/v1", api_key="${MODEL_KEY}")
            yield Stage(folder, running, bus, model)
        tasks.cancel_scope.cancel()


async def until(bus: Bus, run: str, is_it: Callable[[object], bool]) -> None:
    """Wait until a fact of the run is committed."""
    async with bus.follow(RUNS, subjects.commit(run)) as commits:
        async for stored in commits:
            if any(is_it(fact) for fact in decode(stored.payload, Commit).facts):
                return


async def roster_renewed(bus: Bus) -> None:
    """Wait until the supervisor has asked who is alive, and has read the answers: it then asks again."""
    asked = anyio.Semaphore(0)
    async with listening(bus, f"$SRV.INFO.{TRIGGER_SERVICE}", lambda _: asked.release()):
        with anyio.fail_after(RUN_S):
            for _ in range(2):
                await asked.acquire()


def data_of(facts: Iterable[PublicFact], kind: str) -> list[dict[str, Any]]:
    """The fields of all facts of a kind."""
    return [fact.data for fact in facts if fact.kind == kind]
