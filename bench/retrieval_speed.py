"""Time the retriever on a base of generated items, in a file, as a process of its own runs it.

Words are drawn by Zipf's law from a made-up vocabulary of English-like syllables, so that a few are in most
items and most in a few; a third of the items carries an example error. Wall time, event loop and worker
thread included; CPU time beside it, since a machine that does other work meanwhile stretches the first only.
"""

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

from temporality.actors.retriever.find_hints import find_hints
from temporality.actors.retriever.query import ItemAnalyser
from temporality.protocol.editorial import ItemDecided, KnowledgeItem, Scope
from temporality.protocol.hint import HintBatch, HintRequest
from temporality.storage.knowledge import KnowledgeIndex, open_knowledge
from temporality.storage.knowledge_fold import StoredRecord

SEED = 20_270_101
VOCABULARY = 40_000
BATCH = 500
LOOK_UPS = 300
SYLLABLES = "ka lo mi ter son pre dis al ven gro sti qua be ru ping dex for tal".split()


class Text:
    """Draws words; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.vocabulary = [
            "".join(self.random.choice(SYLLABLES) for _ in range(self.random.randint(2, 4)))
            for _ in range(VOCABULARY)
        ]
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))

    def words(self, count: int) -> str:
        """Return `count` words, common ones more often."""
        return " ".join(self.random.choices(self.vocabulary, cum_weights=self._weights, k=count))

    def item(self, number: int) -> KnowledgeItem:
        """Return a made-up item."""
        return KnowledgeItem(
            knowledge_id=f"item-{number}",
            proposition=self.words(25),
            tools=(f"tool_{number % 500}",),
            topics=(f"topic{number % 100}",),
            example_errors=(f"{self.words(8)}\n{self.words(20)}",) if number % 3 == 0 else (),
            scope=Scope(project="p" if number % 2 else None),
        )


def requests(text: Text) -> dict[str, Callable[[], HintRequest]]:
    """Return the kinds of request that are timed."""
    return {
        "typical": lambda: HintRequest(
            trigger="tool.failed",
            tool=f"tool_{text.random.randrange(500)}",
            error_class="tool_error",
            tool_input=text.words(10),
            tool_result=text.words(60),
            query=text.words(20),
            project="p",
        ),
        "longest": lambda: HintRequest(
            trigger="tool.failed",
            tool="tool_1",
            tool_input=text.words(1_000)[:4_096],
            tool_result=text.words(2_000)[:8_192],
            query=text.words(1_000)[:4_096],
            project="p",
        ),
        "rare words": lambda: HintRequest(
            query=" ".join(text.random.choices(text.vocabulary[5_000:], k=10)), project="p"
        ),
        "common words": lambda: HintRequest(query=" ".join(text.vocabulary[:30]), project="p"),
    }


async def measure_speed(items: int) -> dict[str, Any]:
    """Fold `items` generated items, then time look-ups of each kind, in milliseconds."""
    text = Text(SEED)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        async with open_knowledge(path / "knowledge.db", ItemAnalyser()) as index:
            started = time.perf_counter()
            for batch in _records(text, items):
                await index.fold(batch)
            fold_s = time.perf_counter() - started
            size = _size(path)
            return {
                "items": items,
                "fold_items_per_s": round(items / fold_s),
                "index_bytes_per_item": round(size / items),
                "find_hints": {kind: await _timed(index, make) for kind, make in requests(text).items()},
            }


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _records(text: Text, items: int) -> Iterator[list[StoredRecord]]:
    for first in range(0, items, BATCH):
        yield [
            StoredRecord(
                sequence=number + 1,
                record=ItemDecided(item=text.item(number), decided_by="bench", decided_at="2027-01-01"),
            )
            for number in range(first, min(first + BATCH, items))
        ]


async def _timed(index: KnowledgeIndex, make: Callable[[], HintRequest]) -> dict[str, float]:
    now = datetime.now(UTC)
    walls: list[float] = []
    cpu = time.process_time()
    for _ in range(LOOK_UPS):
        batch = HintBatch(requests=(make(),))
        started = time.perf_counter()
        await find_hints(index, batch, now=now)
        walls.append((time.perf_counter() - started) * 1_000)
    cpu = time.process_time() - cpu
    walls.sort()
    return {
        "p50_ms": round(walls[LOOK_UPS // 2], 2),
        "p99_ms": round(walls[LOOK_UPS * 99 // 100], 2),
        "cpu_ms": round(cpu / LOOK_UPS * 1_000, 2),
    }
