"""A base of knowledge in memory, and questions to it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from temporality.actors.retriever.find_hints import answer
from temporality.actors.retriever.query import ItemAnalyser
from temporality.actors.retriever.selection import HONEST_ZERO
from temporality.protocol.editorial import KnowledgeItem
from temporality.protocol.hint import HintRequest, HintResult
from temporality.storage.knowledge import in_memory

NOW = datetime(2027, 1, 1, 12, tzinfo=UTC)

Find = Callable[..., HintResult]


@pytest.fixture
def find() -> Find:
    """Return the answer that a base of `items` (as in a file) gives to a request of these fields."""

    def find_in(items: list[dict[str, Any]], *, threshold: bool = True, **request: Any) -> HintResult:
        snapshot = in_memory((msgspec.convert(item, KnowledgeItem) for item in items), ItemAnalyser())
        cut = HONEST_ZERO if threshold else None
        return answer(snapshot, msgspec.convert(request, HintRequest), now=NOW, cut=cut)

    return find_in
