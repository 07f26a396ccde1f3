"""The one retrieval engine (A15): a batch of requests in, a result for each out.

Four steps: the request becomes terms (`query.py`); the index gives the visible items that share the rarest of
them (`storage/knowledge_search.py`); each is weighed (`ranking.py`) and what is worth offering is chosen
(`selection.py`); the chosen ones become hints, with their cautions. A superseded item takes part in all of
it, and at the end its successor stands in its place (A22). All requests of a batch are answered from one
snapshot of the index, in one piece of work off the event loop (A12).
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from temporality.actors.retriever.query import Query, analyse
from temporality.actors.retriever.ranking import MATCHER_VERSION, Statistics, Weigher
from temporality.actors.retriever.selection import HONEST_ZERO, Cut, Weighed, is_covered, select
from temporality.protocol.editorial import KnowledgeItem, KnowledgeState
from temporality.protocol.hint import (
    Hint,
    HintBatch,
    HintBatchAnswer,
    HintRequest,
    HintResult,
    hint_id,
    is_withheld,
)
from temporality.storage.knowledge import KnowledgeIndex
from temporality.storage.knowledge_search import CANDIDATES_MAX, Found, Snapshot, Viewer

VALIDITY_ENDING = timedelta(days=14)
"""An item whose validity ends within this time says so (A24)."""
CANDIDATES_WITHOUT_CUT_MAX = 10 * CANDIDATES_MAX
"""Items weighed to show a ranking, where depth matters more than time."""


async def find_hints(
    index: KnowledgeIndex, batch: HintBatch, *, now: datetime, threshold: bool = True
) -> HintBatchAnswer:
    """Answer each request of `batch`, in order, from one snapshot of the index (A12, A15).

    `now` is an aware wall time, for validity. Without `threshold` the ranking is shown without the
    honest-zero cut and without caps. Reads only; may be cancelled at any time, and waits then for the work
    under way.
    """
    cut = HONEST_ZERO if threshold else None
    return await index.look_up(partial(_answer_batch, batch=batch, now=now, cut=cut))


def _answer_batch(snapshot: Snapshot, *, batch: HintBatch, now: datetime, cut: Cut | None) -> HintBatchAnswer:
    requests = batch.resolved()
    return HintBatchAnswer(results=tuple(answer(snapshot, request, now=now, cut=cut) for request in requests))


def answer(
    snapshot: Snapshot, request: HintRequest, *, now: datetime, cut: Cut | None = HONEST_ZERO
) -> HintResult:
    """Answer one request from `snapshot`; blocking. Without a `cut` the ranking is shown whole."""
    query = analyse(request)
    viewer = Viewer(project=request.project, team=request.team, user=request.user_id, now=now)
    excluded = {*request.issued_knowledge_ids, *request.suppressed_knowledge_ids}
    statistics = Statistics(
        snapshot.items, snapshot.length_mean, snapshot.frequencies({*query.weights, *query.keys})
    )
    found = snapshot.candidates(
        {term: weight * statistics.weights[term] for term, weight in query.weights.items()},
        {key: 1.0 + statistics.weights[key] for key in query.keys},
        statistics.frequencies,
        viewer,
        excluded=excluded,
        count_max=CANDIDATES_MAX if cut else CANDIDATES_WITHOUT_CUT_MAX,
    )
    statistics = _with_terms_of(found, snapshot, statistics)
    weigher = Weigher(query, statistics)
    offers = _offers(snapshot, found, query, weigher, viewer, excluded)
    chosen = select((weighed for weighed, _, _ in offers.values()), query, request.trigger, cut=cut)
    hints = _hints(snapshot, [offers[each.knowledge_id] for each in chosen], weigher, request, viewer)
    return HintResult(
        activation_id=request.activation_id,
        result="success" if hints else "empty",
        matcher_version=MATCHER_VERSION,
        hints=hints,
        candidates_count=len(found),
    )


Offer = tuple[Weighed, Found, str | None]
"""What was weighed, the item to offer, and the id of the superseded item in whose place it stands."""


def _with_terms_of(found: list[Found], snapshot: Snapshot, statistics: Statistics) -> Statistics:
    """Add the frequencies of the terms that only the items hold: coverage and likeness need them."""
    missing = {term for each in found for term in each.profile.indexed()} - statistics.frequencies.keys()
    return statistics.with_frequencies(snapshot.frequencies(missing))


def _offers(
    snapshot: Snapshot,
    found: list[Found],
    query: Query,
    weigher: Weigher,
    viewer: Viewer,
    excluded: set[str],
) -> Mapping[str, Offer]:
    """Weigh what was found; what is superseded lends its evidence to its successor (A22)."""
    successors = snapshot.successors([each.knowledge_id for each in found], viewer)
    offers: dict[str, Offer] = {}
    for each in found:
        offered = successors.get(each.knowledge_id, each)
        if not offered.is_offerable or is_withheld(offered.knowledge_id, offered.item_key, excluded):
            continue
        weighed = Weighed(
            knowledge_id=offered.knowledge_id,
            evidence=weigher.weigh(each.profile),
            profile=offered.profile,
            by_person=offered.by_person,
            topic=offered.topic,
            is_covered_by_skill=is_covered(offered.profile, query.skills),
        )
        replaced = None if offered is each else each.knowledge_id
        other = offers.get(offered.knowledge_id)
        if other is None:
            offers[offered.knowledge_id] = (weighed, offered, replaced)
        else:
            stronger = max(weighed, other[0], key=lambda one: one.evidence.score)
            offers[offered.knowledge_id] = (stronger, offered, replaced or other[2])
    return offers


def _hints(
    snapshot: Snapshot, chosen: list[Offer], weigher: Weigher, request: HintRequest, viewer: Viewer
) -> tuple[Hint, ...]:
    items = snapshot.contents([found.item_key for _, found, _ in chosen])
    states = snapshot.states({needed for item in items.values() for needed in item.depends_on}, viewer)
    hints = []
    for weighed, found, replaced in chosen:
        item = items[found.item_key]
        hints.append(
            Hint(
                hint_id=hint_id(request.activation_id, item.knowledge_id, found.item_key),
                knowledge_id=item.knowledge_id,
                revision=found.item_key,
                proposition=item.proposition,
                tier=weighed.evidence.tier,
                matched=weigher.reasons(weighed.evidence),
                score=round(weighed.evidence.score, 3),
                state=item.state,
                scope=item.scope,
                cautions=_cautions(item, states, viewer.now),
                successor_of=replaced,
            )
        )
    return tuple(hints)


def _cautions(item: KnowledgeItem, states: Mapping[str, KnowledgeState], now: datetime) -> tuple[str, ...]:
    """Return what a reader should know before relying on the item (A24)."""
    cautions = list(item.cautions)
    if item.reviewed_by == "policy":
        cautions.append("unconfirmed")
    if item.state is KnowledgeState.CHALLENGED:
        cautions.append("challenged")
    for needed in item.depends_on:
        state = states.get(needed)
        if state is not None and not state.is_offerable and state is not KnowledgeState.CANDIDATE:
            cautions.append(f"depends on {needed}, which is {state}")
    _, ends = item.validity()
    if ends is not None and ends - now <= VALIDITY_ENDING:
        cautions.append(f"validity ends {item.valid_until}")
    return tuple(cautions)
