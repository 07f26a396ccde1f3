"""Folds the knowledge stream into the index, and answers questions from it."""

from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskStatus
from opentelemetry.trace import SpanKind

from temporality.actors import conventions
from temporality.actors.bus.batches import follow_in_batches
from temporality.actors.bus.port import Stored
from temporality.actors.host import Asked, Host
from temporality.actors.retriever.find_hints import find_hints
from temporality.protocol import subjects
from temporality.protocol.codec import decode
from temporality.protocol.editorial import KnowledgeRecord
from temporality.protocol.errors import InvalidMessage
from temporality.protocol.folding import AskPosition, FoldPosition
from temporality.protocol.hint import HintBatch, HintBatchAnswer
from temporality.protocol.streams import KNOWLEDGE
from temporality.storage.knowledge import KnowledgeIndex, KnowledgeUnwritable
from temporality.storage.knowledge_fold import StoredRecord

QUEUE = "retriever"
FOLD_BATCH_MAX = 500
"""Records folded in one transaction: a fresh index of 100,000 items takes seconds instead of minutes."""
RETRY_INTERVAL_S = 2.0
"""How long a disk that is full is left alone; look-ups go on from what is folded."""


class RetrieverActor:
    """One replica: an index of its own, any number beside it."""

    def __init__(self, host: Host, index: KnowledgeIndex) -> None:
        self._host = host
        self._index = index

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; started once all stored before is folded, and questions are heard."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._fold)
            await tasks.start(self._answer_hints)
            await tasks.start(self._answer_position)
            task_status.started()

    async def _fold(self, *, task_status: TaskStatus[None]) -> None:
        """Follow the stream for ever; started when what is there now has been folded."""
        subject = subjects.all_knowledge()
        bus = self._host.bus
        last = await bus.last(KNOWLEDGE, subject)
        newest = last.sequence if last else 0
        if newest < self._index.position:
            # The stream was made anew, and its sequences count from 1 again.
            await self._until_written(self._index.restart)
        position = self._index.position
        while position < newest and (
            messages := await bus.read(KNOWLEDGE, subject, after=position, count_max=FOLD_BATCH_MAX)
        ):
            await self._fold_all(messages)
            position = messages[-1].sequence
        task_status.started()
        async with follow_in_batches(
            bus, KNOWLEDGE, subject, after=position, count_max=FOLD_BATCH_MAX
        ) as batches:
            while True:
                await self._fold_all(await batches.next())

    async def _fold_all(self, messages: list[Stored]) -> None:
        records: list[StoredRecord] = []
        for message in messages:
            try:
                record: KnowledgeRecord = decode(message.payload, KnowledgeRecord)
                records.append(StoredRecord(sequence=message.sequence, record=record))
            except InvalidMessage:
                self._host.log.warning("record %d is malformed and is passed over", message.sequence)
        await self._until_written(lambda: self._index.fold(records))

    async def _until_written(self, write: Callable[[], Awaitable[object]]) -> None:
        """Write to the index, again and again while its disk is full; questions are answered meanwhile."""
        clock = self._host.clock
        while True:
            try:
                await write()
            except KnowledgeUnwritable as error:
                self._host.log.warning("the index can't be written: %s", error)
                await clock.sleep_until(clock.monotonic() + RETRY_INTERVAL_S)
            else:
                return

    async def _answer_hints(self, *, task_status: TaskStatus[None]) -> None:
        await self._host.answer(
            subject=subjects.all_hints_find(),
            queue=QUEUE,
            kind=HintBatch,
            handle=self._find,
            task_status=task_status,
        )

    async def _answer_position(self, *, task_status: TaskStatus[None]) -> None:
        await self._host.answer(
            subject=subjects.ask("retriever", "position"),
            queue=QUEUE,
            kind=AskPosition,
            handle=self._position,
            task_status=task_status,
        )

    async def _position(self, _: Asked[AskPosition]) -> FoldPosition:
        return FoldPosition(sequence=self._index.position)

    async def _find(self, asked: Asked[HintBatch]) -> HintBatchAnswer:
        batch = asked.message
        with self._host.tracing.span(
            conventions.FIND_HINTS,
            parent=asked.traceparent,
            kind=SpanKind.SERVER,
            attributes={conventions.ACTIVATIONS: len(batch.requests)},
        ) as span:
            answer = await find_hints(self._index, batch, now=self._host.clock.now())
            span.set_attribute(conventions.HINTS_FOUND, sum(len(r.hints) for r in answer.results))
            return answer
