"""How well an item fits a situation, and what follows from that. Pure.

An item is scored by what it says (BM25 over its terms, plus a bonus for neighbours that stand together in
both texts) and by what it was seen with (the likeness of its best example error to this failure: weighted
Jaccard over terms and neighbours). Each term weighs what it tells: 1 if one item has it, near 0 if all have.
These weights are relative to the rarest possible term, so a score means the same in a base of ten items and
of a hundred thousand: a score of 5 is about five rare words in common.

The tier names the strongest reason. It orders the answer before the score does, and a person's word goes
before a policy's within a tier (A21).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from temporality.actors.retriever.query import Pair, Query, pairs
from temporality.protocol.hint import Tier
from temporality.storage.knowledge_profile import Profile

MATCHER_VERSION = "lexical-1"

BM25_SATURATION = 1.2
BM25_LENGTH = 0.75
PAIR_WEIGHT = 1.0
EXAMPLE_WEIGHT = 20.0
"""Score of an example error that is exactly this failure: that of a long proposition that matches whole."""
KEY_WEIGHT = 2.0
OTHER_TOOL_FACTOR = 0.5
"""An item about other tools than the one called keeps half of its score."""
ITEMS_ASSUMED_MIN = 100
"""Smaller bases count as this large, so that a word is not common because two of three items have it."""
COVERED_MASS_MAX = 8.0
"""Rare words of an item that a situation can be asked to repeat: a long proposition need not come whole."""
MATCHED_TERMS_MAX = 8
"""Terms named in `matched`: enough to see why, few enough to read."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """The whole base: how many items, their mean length in terms, and in how many each term stands."""

    items: int
    length_mean: float
    frequencies: Mapping[str, int]

    def weight(self, term: str) -> float:
        """Return what `term` tells, from 1 (one item has it) towards 0 (all have it)."""
        items = max(self.items, ITEMS_ASSUMED_MIN)
        return _rarity(items, self.frequencies.get(term, 0)) / _rarity(items, 1)


def _rarity(items: int, frequency: int) -> float:
    bounded = min(max(frequency, 1), items)
    return math.log(1.0 + (items - bounded + 0.5) / (bounded + 0.5))


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why an item was found, and how strongly.

    `coverage` is the share of what the item says that the situation says too, `likeness` that of its best
    example error, both from 0 to 1. `from_input` and `from_result` are the weights of the terms it shares
    with either; None for an input without a word that any item knows, and for no result. `matched` names
    exact facts, then the terms that weigh most; `kinds` the kinds of the exact facts.
    """

    tier: Tier
    score: float
    coverage: float
    likeness: float
    from_input: float | None
    from_result: float | None
    terms_shared: int
    matched: tuple[str, ...]
    kinds: frozenset[str]


class Weigher:
    """Weighs items against one query; keeps the weight of each term, so that it is worked out once."""

    def __init__(self, query: Query, statistics: Statistics) -> None:
        self._query = query
        self._statistics = statistics
        self._weights: dict[str, float] = {}
        self._situation_mass = self._mass(query.situation) + self._pair_mass(query.situation_pairs)
        self._input_is_known = any(statistics.frequencies.get(term) for term in query.given)

    def weigh(self, profile: Profile) -> Evidence:
        """Return the evidence for one item."""
        query = self._query
        counts = Counter(profile.text)
        counts.update(profile.names)
        shared = [term for term in counts if term in query.weights]
        said = self._bm25(counts, shared, profile.length)
        said += PAIR_WEIGHT * self._pair_mass(pairs(profile.text) & query.pairs)
        likeness = self._likeness(profile.examples) if query.is_failure else 0.0
        exact = query.keys.intersection(profile.keys)
        kinds = frozenset(each.partition(":")[0] for each in exact)
        score = said + EXAMPLE_WEIGHT * likeness + KEY_WEIGHT * sum(map(self._weight, exact))
        if _is_about_another_tool(profile, query):
            score *= OTHER_TOOL_FACTOR
        mass = min(self._mass(counts), COVERED_MASS_MAX)
        return Evidence(
            tier=_tier(kinds),
            score=score,
            coverage=min(self._mass(shared) / mass, 1.0) if mass else 0.0,
            likeness=likeness,
            from_input=self._mass(query.given.intersection(shared)) if self._input_is_known else None,
            from_result=self._mass(query.result.intersection(shared)) if query.has_result else None,
            terms_shared=len(shared),
            matched=self._reasons(exact, shared),
            kinds=kinds,
        )

    def _bm25(self, counts: Counter[str], shared: Iterable[str], length: int) -> float:
        norm = BM25_SATURATION * (1 - BM25_LENGTH + BM25_LENGTH * length / self._statistics.length_mean)
        return sum(
            self._query.weights[term] * self._weight(term) * count * (BM25_SATURATION + 1) / (count + norm)
            for term, count in ((term, counts[term]) for term in shared)
        )

    def _likeness(self, examples: Iterable[tuple[str, ...]]) -> float:
        best = 0.0
        for example in examples:
            seen, seen_pairs = frozenset(example), pairs(example)
            common = self._mass(seen & self._query.situation) + self._pair_mass(
                seen_pairs & self._query.situation_pairs
            )
            whole = self._situation_mass + self._mass(seen) + self._pair_mass(seen_pairs) - common
            best = max(best, common / whole if whole else 0.0)
        return best

    def _reasons(self, exact: Iterable[str], shared: Iterable[str]) -> tuple[str, ...]:
        strongest = sorted(shared, key=lambda term: (-self._weight(term) * self._query.weights[term], term))
        return (*sorted(exact), *(f"term:{term}" for term in strongest[:MATCHED_TERMS_MAX]))

    def _weight(self, term: str) -> float:
        weight = self._weights.get(term)
        if weight is None:
            weight = self._weights[term] = self._statistics.weight(term)
        return weight

    def _mass(self, terms: Iterable[str]) -> float:
        return sum(map(self._weight, terms))

    def _pair_mass(self, neighbours: Iterable[Pair]) -> float:
        return sum(min(self._weight(first), self._weight(second)) for first, second in neighbours)


def _tier(kinds: frozenset[str]) -> Tier:
    if "situation" in kinds:
        return Tier.SITUATION
    if kinds & {"tool", "server"}:
        return Tier.TOOL_AND_ERROR if "error" in kinds else Tier.TOOL
    return Tier.TERMS


def _is_about_another_tool(profile: Profile, query: Query) -> bool:
    for kind in ("tool:", "server:"):
        of_item = {each for each in profile.keys if each.startswith(kind)}
        of_query = {each for each in query.keys if each.startswith(kind)}
        if of_item and of_query and not of_item & of_query:
            return True
    return False
