"""Which of the weighed items are offered, and in which order. Pure.

Honest zero (A23): an item found by words must speak of what was called *and* of what went wrong. Sharing the
program's name is no reason to offer advice about a call that failed otherwise, and a message that any program
may print is no reason to offer advice about another one. An input without a word that any item knows can't
be asked for that. Apart from it, an item must be covered to a fair share, and what is far weaker than the
best is not offered to fill the space. Exact facts and a like example error are reasons of their own.

Order: items that an active skill covers come last (they are demoted, not dropped), then the tier, a person's
word before a policy's, the score, and the id, so that equal items always stand in one order.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from temporality.actors.retriever.query import Query
from temporality.actors.retriever.ranking import Evidence
from temporality.protocol.hint import Tier
from temporality.protocol.trigger import MCP_FIRST_CALL
from temporality.storage.knowledge_profile import Profile

SKILL_COVERAGE = 0.75
"""Share of an item's terms that a skill must hold to cover it (A14)."""
NEAR_DUPLICATE = 0.8
TOPIC_HINTS_MAX = 2
HINTS_MAX = 8
"""Hints of one answer: what a block may hold at most by default (A40)."""
RANKING_MAX = 100
"""Hints of an answer without the honest-zero cut, which is for looking at the ranking."""

_TIERS = list(Tier)


@dataclass(frozen=True, slots=True)
class Cut:
    """How much evidence is a reason to speak; the defaults are what ships, measured in `bench/retrieval.py`.

    `support_min` is the weight of the words shared with the input, and with the result: a fifth of a rare
    word, or a rarer one. `coverage_min` is the share of an item that the situation must say too,
    `task_coverage_min` the same when only a task is known, which says less of what will go wrong, and
    `task_terms_min` the words shared with it: one is a coincidence. `likeness_min` is the likeness of an
    example error that is a reason by itself, `relative_score_min` the share of the best score below which an
    item only fills the space.
    """

    support_min: float = 0.2
    coverage_min: float = 0.2
    task_coverage_min: float = 0.25
    task_terms_min: int = 2
    likeness_min: float = 0.35
    relative_score_min: float = 0.3


HONEST_ZERO = Cut()


@dataclass(frozen=True, slots=True)
class Weighed:
    """One item with the evidence for it, as far as choosing between items needs to know it."""

    knowledge_id: str
    evidence: Evidence
    profile: Profile
    by_person: bool
    topic: str | None
    is_covered_by_skill: bool


def is_covered(profile: Profile, skills: Iterable[frozenset[str]]) -> bool:
    """Tell whether one of the skills says three quarters of what the item says (A14)."""
    said = frozenset(profile.text) or frozenset(profile.names)
    return any(len(said & skill) >= SKILL_COVERAGE * len(said) for skill in skills if said)


def select(weighed: Iterable[Weighed], query: Query, trigger: str, *, cut: Cut | None) -> list[Weighed]:
    """Return what is offered, best first: weak ones cut, near-duplicates collapsed, topics capped (A21, A23).

    Without a `cut` only the order is applied, to show the ranking.
    """
    ordered = sorted((each for each in weighed if each.evidence.score > 0), key=_order)
    if cut is None:
        return ordered[:RANKING_MAX]
    worth = [each for each in ordered if is_worth_offering(each.evidence, query, trigger, cut)]
    return _varied(_near_the_best(worth, cut))[:HINTS_MAX]


def is_worth_offering(evidence: Evidence, query: Query, trigger: str, cut: Cut) -> bool:
    """Tell whether the evidence is a reason to speak (A23)."""
    kinds = evidence.kinds
    if "situation" in kinds or evidence.likeness >= cut.likeness_min or evidence.tier is Tier.TOOL_AND_ERROR:
        return True
    if trigger == MCP_FIRST_CALL and kinds & {"server", "tool"}:
        return True
    if not query.has_call:
        return bool(kinds - {"error"}) or (
            len(evidence.shared) >= cut.task_terms_min and evidence.coverage >= cut.task_coverage_min
        )
    if kinds & {"tool", "server"} and evidence.from_result:
        return True
    of_the_call = bool(kinds) or evidence.from_input is None or evidence.from_input >= cut.support_min
    of_the_result = evidence.from_result is None or evidence.from_result >= cut.support_min
    return of_the_call and of_the_result and evidence.coverage >= cut.coverage_min


def _order(each: Weighed) -> tuple[bool, int, bool, float, str]:
    evidence = each.evidence
    return (
        each.is_covered_by_skill,
        _TIERS.index(evidence.tier),
        not each.by_person,
        -evidence.score,
        each.knowledge_id,
    )


def _near_the_best(worth: Sequence[Weighed], cut: Cut) -> list[Weighed]:
    """Drop what is far weaker than the best of those that no skill covers."""
    free = [each.evidence.score for each in worth if not each.is_covered_by_skill]
    floor = cut.relative_score_min * max(free, default=0.0)
    return [each for each in worth if each.evidence.score >= floor or each.evidence.tier is not Tier.TERMS]


def _varied(ordered: Iterable[Weighed]) -> list[Weighed]:
    kept: list[Weighed] = []
    said: list[frozenset[str]] = []
    topics: Counter[str] = Counter()
    for each in ordered:
        text = frozenset(each.profile.text)
        if any(_jaccard(text, earlier) >= NEAR_DUPLICATE for earlier in said):
            continue
        if each.topic is not None and topics[each.topic] >= TOPIC_HINTS_MAX:
            continue
        kept.append(each)
        said.append(text)
        if each.topic is not None:
            topics[each.topic] += 1
    return kept


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    together = len(one | other)
    return len(one & other) / together if together else 1.0
