"""`probe hints`: the engine on a file's items, in memory, so that anybody can try what would be found."""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from temporality.actors.retriever.find_hints import answer
from temporality.actors.retriever.query import ItemAnalyser
from temporality.actors.retriever.selection import HONEST_ZERO
from temporality.protocol.editorial import KnowledgeItem, KnowledgeState, Scope
from temporality.protocol.hint import HintRequest
from temporality.storage.knowledge import in_memory


class ProbedHint(msgspec.Struct, frozen=True, kw_only=True):
    """One hint as `probe hints` prints it: every field, whether it holds its default or not."""

    hint_id: str
    knowledge_id: str
    revision: int
    proposition: str
    tier: str
    matched: tuple[str, ...]
    score: float
    state: KnowledgeState
    scope: Scope
    cautions: tuple[str, ...]
    successor_of: str | None = None


class HintAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one line of `probe hints`, best hint first."""

    result: str
    matcher_version: str
    hints: tuple[ProbedHint, ...]


class HintProbe:
    """Answers requests from `items`; without `threshold` the whole ranking is shown.

    `now` is the time for which validity is judged: by default the time of opening.
    """

    def __init__(
        self, items: Iterable[KnowledgeItem], *, threshold: bool = True, now: datetime | None = None
    ) -> None:
        self._snapshot = in_memory(items, ItemAnalyser())
        self._cut = HONEST_ZERO if threshold else None
        self._now = now or datetime.now(UTC)

    def answer(self, request: HintRequest) -> HintAnswer:
        """Answer one request; blocking."""
        result = answer(self._snapshot, request, now=self._now, cut=self._cut)
        hints = tuple(
            ProbedHint(**{name: getattr(hint, name) for name in ProbedHint.__struct_fields__})
            for hint in result.hints
        )
        return HintAnswer(result=result.result, matcher_version=result.matcher_version, hints=hints)
