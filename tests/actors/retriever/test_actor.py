"""The retriever's process: it folds what comes together at once, and outlives a disk without room."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from temporality.actors.bus.memory import MemoryServer
from temporality.actors.bus.port import Bus
from temporality.actors.clock import VirtualClock
from temporality.actors.host import Host
from temporality.actors.retriever.actor import RETRY_INTERVAL_S, RetrieverActor
from temporality.actors.retriever.query import ItemAnalyser
from temporality.actors.tracing import Tracing
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.editorial import ItemDecided, KnowledgeItem
from temporality.protocol.hint import HintBatch, HintBatchAnswer, HintRequest
from temporality.protocol.streams import stream_specs
from temporality.storage import knowledge_fold
from temporality.storage.database import connect
from temporality.storage.knowledge import KnowledgeIndex
from temporality.storage.knowledge_schema import SCHEMA

DEADLINE_S = 20.0


class Watched(sqlite3.Connection):
    """A connection that counts the transactions it began."""

    began = 0

    def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:  # type: ignore[override]
        if sql.startswith("BEGIN"):
            self.began += 1
        return super().execute(sql, *parameters)  # type: ignore[arg-type]


class Retriever:
    """One retriever on a bus in memory, and the connection that its index writes with."""

    def __init__(self, bus: Bus, clock: VirtualClock, index: KnowledgeIndex, writer: Watched) -> None:
        self.bus = bus
        self.clock = clock
        self.index = index
        self.writer = writer
        self.stored = 0

    async def decide(self, *propositions: str) -> None:
        for proposition in propositions:
            self.stored += 1
            item = KnowledgeItem(knowledge_id=f"item-{self.stored}", proposition=proposition)
            record = ItemDecided(item=item, decided_by="ann", decided_at="2026-12-01")
            await self.bus.publish(
                subjects.knowledge(None, item.knowledge_id), encode(record), expected_last=0
            )

    async def folded(self) -> None:
        """Wait until all that was stored is folded; virtual time passes."""
        with anyio.fail_after(DEADLINE_S):
            while self.index.position < self.stored:
                await anyio.lowlevel.checkpoint()
                self.clock.advance(RETRY_INTERVAL_S)

    async def find(self, query: str) -> Sequence[str]:
        batch = HintBatch(requests=(HintRequest(query=query, activation_id="a"),))
        answer = await self.bus.request(subjects.hints_find("any"), encode(batch), timeout_s=DEADLINE_S)
        found = decode(answer.payload, HintBatchAnswer).results[0].hints
        return [hint.knowledge_id for hint in found]


@pytest.fixture
async def retriever(tmp_path: Path) -> AsyncIterator[Retriever]:
    clock = VirtualClock()
    path = tmp_path / "knowledge.db"
    connect(path, schema=SCHEMA).close()
    writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Watched)
    analyser = ItemAnalyser()
    knowledge_fold.prepare(writer, analyser.version)
    index = KnowledgeIndex(path, analyser, writer)
    async with MemoryServer(clock).connect() as bus:
        await bus.declare(stream_specs(1))
        async with serving(bus, clock, index):
            yield Retriever(bus, clock, index, writer)
    index.close()


@asynccontextmanager
async def serving(bus: Bus, clock: VirtualClock, index: KnowledgeIndex) -> AsyncIterator[None]:
    host = Host(bus, actor="retriever", name="retriever-1", clock=clock, tracing=Tracing())
    async with anyio.create_task_group() as tasks:
        await tasks.start(partial(RetrieverActor(host, index).run))
        yield
        tasks.cancel_scope.cancel()


async def test_records_that_come_together_are_folded_in_few_transactions(retriever: Retriever) -> None:
    before = retriever.writer.began
    await retriever.decide(*(f"fact {number} about ports" for number in range(200)))
    await retriever.folded()
    assert retriever.writer.began - before < 20


async def test_full_disk_delays_new_items_while_look_ups_go_on(retriever: Retriever) -> None:
    await retriever.decide("A port in use is freed by stopping its process.")
    await retriever.folded()
    (pages,) = retriever.writer.execute("PRAGMA page_count").fetchone()
    retriever.writer.execute(f"PRAGMA max_page_count = {pages}")
    long = " ".join(f"word{number}" for number in range(1_000))
    await retriever.decide(*(f"{number} {long}" for number in range(20)))
    await retriever.decide("A branch without upstream is pushed with --set-upstream.")
    with anyio.fail_after(DEADLINE_S):
        while not retriever.clock.next_due():
            await anyio.lowlevel.checkpoint()
    assert await retriever.find("which process is on the port in use?") == ["item-1"]
    assert retriever.index.position < retriever.stored
    retriever.writer.execute("PRAGMA max_page_count = 1000000")
    await retriever.folded()
    assert await retriever.find("how is a branch without upstream pushed?") == ["item-22"]
