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
from itertools import pairwise

from temporality.actors.retriever.query import Pair, Query
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


class Statistics:
    """The whole base: how many items, their mean length in terms, and in how many each term stands.

    `weights` maps each term of a known frequency to what it tells, from 1 (one item has it) towards 0 (all
    have it); any other term weighs 1. They are worked out at once: an answer reads them thousands of times.
    """

    def __init__(self, items: int, length_mean: float, frequencies: Mapping[str, int]) -> None:
        self.length_mean = length_mean
        self.frequencies = frequencies
        self.weights = _Weights(_weights(items, frequencies))
        self._items = items

    def with_frequencies(self, more: Mapping[str, int]) -> "Statistics":
        """Return the same base with the frequencies of more terms known."""
        extended = Statistics(self._items, self.length_mean, more)
        extended.weights.update(self.weights)
        extended.frequencies = {**more, **self.frequencies}
        return extended


class _Weights(dict[str, float]):
    def __missing__(self, term: str) -> float:
        return 1.0


def _weights(items: int, frequencies: Mapping[str, int]) -> dict[str, float]:
    counted = max(items, ITEMS_ASSUMED_MIN)
    log = math.log
    rarest = log(1.0 + (counted - 0.5) / 1.5)
    return {
        term: log(1.0 + max(counted - frequency + 0.5, 0.5) / (frequency + 0.5)) / rarest
        for term, frequency in frequencies.items()
    }


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why an item was found, and how strongly.

    `coverage` is the share of what the item says that the situation says too, `likeness` that of its best
    example error, both from 0 to 1. `from_input` and `from_result` are the weights of the terms it shares
    with either; None for an input without a word that any item knows, and for no result. `shared` are the
    terms and `exact` the exact facts that matched, `kinds` the kinds of these.
    """

    tier: Tier
    score: float
    coverage: float
    likeness: float
    from_input: float | None
    from_result: float | None
    shared: tuple[str, ...]
    exact: frozenset[str]
    kinds: frozenset[str]


class Weigher:
    """Weighs items against one query.

    Sums over sets are exact (`fsum`), so that they do not depend on the order of a set, which differs from
    one process to the next: replicas agree to the last bit.
    """

    def __init__(self, query: Query, statistics: Statistics) -> None:
        self._query = query
        self._length_mean = statistics.length_mean
        self._weight = statistics.weights.__getitem__
        self._situation_mass = self._mass(query.situation) + self._pair_mass(query.situation_pairs)
        self._input_is_known = any(statistics.frequencies.get(term) for term in query.given)

    def weigh(self, profile: Profile) -> Evidence:
        """Return the evidence for one item."""
        query = self._query
        counts = Counter(profile.text)
        counts.update(profile.names)
        shared = [term for term in counts if term in query.weights]
        said = self._bm25(counts, shared, profile.length)
        said += PAIR_WEIGHT * self._pair_mass(query.pairs.intersection(pairwise(profile.text)))
        likeness = self._likeness(profile.examples) if query.is_failure else 0.0
        exact = query.keys.intersection(profile.keys)
        about_another_tool = _is_about_another_tool(profile, query)
        if about_another_tool:
            # An item that names its tools speaks of them, not of all that their server does.
            exact = frozenset(each for each in exact if not each.startswith("server:"))
        kinds = frozenset(each.partition(":")[0] for each in exact)
        score = said + EXAMPLE_WEIGHT * likeness + KEY_WEIGHT * self._mass(exact)
        if about_another_tool:
            score *= OTHER_TOOL_FACTOR
        mass = min(self._mass(counts), COVERED_MASS_MAX)
        return Evidence(
            tier=_tier(kinds),
            score=score,
            coverage=min(self._mass(shared) / mass, 1.0) if mass else 0.0,
            likeness=likeness,
            from_input=self._mass(query.given.intersection(shared)) if self._input_is_known else None,
            from_result=self._mass(query.result.intersection(shared)) if query.has_result else None,
            shared=tuple(shared),
            exact=exact,
            kinds=kinds,
        )

    def reasons(self, evidence: Evidence) -> tuple[str, ...]:
        """Return what matched: exact facts, then the terms that weigh most (A21)."""
        strongest = sorted(
            evidence.shared, key=lambda term: (-self._weight(term) * self._query.weights[term], term)
        )
        return (*sorted(evidence.exact), *(f"term:{term}" for term in strongest[:MATCHED_TERMS_MAX]))

    def _bm25(self, counts: Counter[str], shared: Iterable[str], length: int) -> float:
        norm = BM25_SATURATION * (1 - BM25_LENGTH + BM25_LENGTH * length / self._length_mean)
        return sum(
            self._query.weights[term] * self._weight(term) * count * (BM25_SATURATION + 1) / (count + norm)
            for term, count in ((term, counts[term]) for term in shared)
        )

    def _likeness(self, examples: Iterable[tuple[str, ...]]) -> float:
        best = 0.0
        for example in examples:
            seen, seen_pairs = frozenset(example), frozenset(pairwise(example))
            common = self._mass(seen & self._query.situation) + self._pair_mass(
                seen_pairs & self._query.situation_pairs
            )
            whole = self._situation_mass + self._mass(seen) + self._pair_mass(seen_pairs) - common
            best = max(best, common / whole if whole else 0.0)
        return best

    def _mass(self, terms: Iterable[str]) -> float:
        return math.fsum(map(self._weight, terms))

    def _pair_mass(self, neighbours: Iterable[Pair]) -> float:
        weight = self._weight
        return math.fsum([min(weight(first), weight(second)) for first, second in neighbours])


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
