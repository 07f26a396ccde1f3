"""Knowledge into and out of the stream: an import is a decision of the person who runs it.

Each item's record is stored with the expected sequence of the item's subject, so that of two importers at
once one sees the other's decision instead of overwriting it unseen.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

import anyio

from temporality.actors.bus.port import AnswerTimeout, Bus, NoResponders, WrongLastSequence
from temporality.actors.host import headers_of
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode, encode_canonical
from temporality.protocol.editorial import ItemDecided, KnowledgeItem, KnowledgeRecord
from temporality.protocol.errors import UserError
from temporality.protocol.folding import AskPosition, FoldPosition
from temporality.protocol.identity import derived_id
from temporality.protocol.streams import KNOWLEDGE

FOLD_WAIT_S = 30.0
"""A retriever that starts folds 100,000 items within this time."""
FOLD_ASK_INTERVAL_S = 0.02
QUESTION_TIMEOUT_S = 2.0
STORE_TRIES_MAX = 5
STORES_AT_ONCE = 64


async def import_items(
    bus: Bus,
    items: Iterable[KnowledgeItem],
    *,
    decided_by: str,
    reason: str = "",
    fold_wait_s: float = FOLD_WAIT_S,
) -> int:
    """Store items that are new or changed and wait until a live retriever offers them; return how many.

    Raises `UserError` if none has folded them within `fold_wait_s`: they are stored, and are offered once a
    retriever is alive.
    """
    decided_at = datetime.now(UTC).isoformat()
    limiter = anyio.Semaphore(STORES_AT_ONCE)
    stored: list[int] = []

    async def store(item: KnowledgeItem) -> None:
        async with limiter:
            sequence = await _store(bus, item, decided_by, decided_at, reason)
            if sequence is not None:
                stored.append(sequence)

    async with anyio.create_task_group() as tasks:
        for item in items:
            tasks.start_soon(store, item.identified())
    if stored:
        await _wait_until_folded(bus, max(stored), fold_wait_s)
    return len(stored)


async def current_items(bus: Bus) -> tuple[KnowledgeItem, ...]:
    """Return every item as it stands now, forgotten ones apart, sorted by id and project.

    One id may be used in several projects, and in none: those are items of their own.
    """
    subject = subjects.all_knowledge()
    last = await bus.last(KNOWLEDGE, subject)
    items: dict[tuple[str, str], KnowledgeItem] = {}
    after = 0
    while last is not None and after < last.sequence:
        messages = await bus.read(KNOWLEDGE, subject, after=after)
        for message in messages:
            record: KnowledgeRecord = decode(message.payload, KnowledgeRecord)
            if isinstance(record, ItemDecided):
                items[record.knowledge_id, record.item.scope.project or ""] = record.item
            else:
                items.pop((record.knowledge_id, record.project or ""), None)
        after = messages[-1].sequence if messages else last.sequence
    return tuple(item for _, item in sorted(items.items()))


async def _store(bus: Bus, item: KnowledgeItem, decided_by: str, decided_at: str, reason: str) -> int | None:
    """Store one item's record; None if the item stands there just so already."""
    subject = subjects.knowledge(item.scope.project, item.knowledge_id)
    record = ItemDecided(item=item, decided_by=decided_by, decided_at=decided_at, reason=reason)
    for _ in range(STORE_TRIES_MAX):
        last = await bus.last(KNOWLEDGE, subject)
        if last is not None and _same(last.payload, item):
            return None
        expected = last.sequence if last else 0
        message_id = derived_id("k", subject, expected, encode_canonical(record).decode())
        try:
            published = await bus.publish(
                subject,
                encode(record),
                message_id=message_id,
                headers=headers_of(message_id, None, None),
                expected_last=expected,
            )
        except WrongLastSequence:
            continue
        return published.sequence
    raise UserError(
        item.knowledge_id, "somebody else keeps changing this item", "look at it, then import again"
    )


def _same(payload: bytes, item: KnowledgeItem) -> bool:
    record: KnowledgeRecord = decode(payload, KnowledgeRecord)
    return isinstance(record, ItemDecided) and record.item == item


async def _wait_until_folded(bus: Bus, sequence: int, wait_s: float) -> None:
    subject = subjects.ask("retriever", "position")
    with anyio.move_on_after(wait_s):
        while True:
            try:
                answer = await bus.request(subject, encode(AskPosition()), timeout_s=QUESTION_TIMEOUT_S)
                if decode(answer.payload, FoldPosition).sequence >= sequence:
                    return
            except (NoResponders, AnswerTimeout):
                pass
            await anyio.sleep(FOLD_ASK_INTERVAL_S)
    raise UserError(
        "retriever",
        "the items are stored, but no retriever has folded them yet",
        "start one: temporality actor retriever (temporality up starts all actors)",
    )
