"""What is searched for, and what is searched: requests and items as terms.

A failed call says what happened in three places. The input names the program and what it was asked to do:
few words, each a choice of the caller, so they weigh double. The result says what went wrong, in as many
words as the tool likes. The run's task is background: it decides between items that fit, and hardly finds one
by itself when there is a failure to look up. A tool's name is a word with a weight of its own; exact facts
(tool, server, error class, situation key) are matched as keys besides.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from temporality.actors.language import ANALYSIS_VERSION, terms
from temporality.protocol.editorial import KnowledgeItem
from temporality.protocol.hint import HintRequest
from temporality.storage.knowledge_profile import Profile

INPUT_WEIGHT = 2.0
RESULT_WEIGHT = 1.0
NAME_WEIGHT = 0.5
TASK_WEIGHT = 1.0
TASK_WEIGHT_BESIDE_A_CALL = 0.25
EXAMPLE_TERMS_MAX = 256
"""Terms kept of one example error, two thirds from its head: bounds the index and the ranking of an item."""
PROFILE_VERSION = f"1.{ANALYSIS_VERSION}"

GENERIC_ERRORS = frozenset({"tool_error"})
"""Classes that every failure of a kind of tool has: sharing one is no more than having failed."""

_FOLDERS = re.compile(r"(?<![\w.])(?:~|[A-Za-z]:)?[/\\](?:[^\s/\\\"'`]+[/\\])+")
"""The folders of an absolute path in a task: where somebody keeps his files says nothing of what he wants."""

Pair = tuple[str, str]
BREAK = ""
"""Stands between texts in a sequence of terms: no pair reaches across it."""


@dataclass(frozen=True, slots=True)
class Query:
    """One request as terms: `weights` of each, the pairs that stood together, exact `keys`, skills' terms.

    `situation` and `situation_pairs` come from the call alone, and are compared with example errors; `given`
    holds the terms of its input, `result` those that only its result said.
    """

    weights: Mapping[str, float]
    pairs: frozenset[Pair]
    situation: frozenset[str]
    situation_pairs: frozenset[Pair]
    given: frozenset[str]
    result: frozenset[str]
    keys: frozenset[str]
    skills: tuple[frozenset[str], ...]
    has_result: bool
    is_failure: bool

    @property
    def has_call(self) -> bool:
        """Tell whether a call's input or result is part of the search, besides names and the task."""
        return bool(self.situation)


def analyse(request: HintRequest) -> Query:
    """Return `request` as terms; linear in its bounded texts."""
    given, result = terms(request.tool_input), terms(request.tool_result)
    task = terms(_FOLDERS.sub("", request.query))
    names = _terms_of(
        (request.tool, request.mcp_server, request.error_class, *request.entities, *request.topics)
    )
    has_call = bool(given or result)
    weights: dict[str, float] = {}
    for part, weight in (
        (result, RESULT_WEIGHT),
        (given, INPUT_WEIGHT),
        (names, NAME_WEIGHT),
        (task, TASK_WEIGHT_BESIDE_A_CALL if has_call else TASK_WEIGHT),
    ):
        for term in dict.fromkeys(part):
            weights[term] = weights.get(term, 0.0) + weight
    weights.pop(BREAK, None)
    situation_pairs = pairs((*given, BREAK, *result))
    return Query(
        weights=weights,
        pairs=situation_pairs | (pairs(task) if not has_call else frozenset()),
        situation=frozenset((*given, *result)),
        situation_pairs=situation_pairs,
        given=frozenset(given),
        result=frozenset(result) - frozenset(given),
        keys=frozenset(_request_keys(request)),
        skills=tuple(frozenset(terms(skill.text)) for skill in request.active_skills if skill.text),
        has_result=bool(request.tool_result.strip()),
        is_failure=request.is_failure,
    )


def pairs(sequence: Iterable[str]) -> frozenset[Pair]:
    """Return the pairs of neighbouring terms."""
    return frozenset(pair for pair in pairwise(sequence) if BREAK not in pair)


class ItemAnalyser:
    """Turns items into profiles with the same analysis that requests get."""

    version = PROFILE_VERSION

    def profile(self, item: KnowledgeItem) -> Profile:
        """Return the terms of `item`; a derived id says nothing and gives none."""
        text = terms(item.proposition)
        id_words = () if item.has_derived_id else terms(item.knowledge_id)
        said = (item.subject, item.relation, item.value)
        names = _terms_of((*item.entities, *item.topics, *(part for part in said if part)))
        return Profile(
            keys=tuple(_item_keys(item)),
            text=text,
            names=(*dict.fromkeys(id_words), *dict.fromkeys(term for term in names if term != BREAK)),
            examples=tuple(_both_ends(terms(example)) for example in item.example_errors),
        )


def key(kind: str, value: str) -> str:
    """Return the term for an exact fact; white space would split it in the index."""
    return f"{kind}:{'_'.join(value.lower().split())}"


def _terms_of(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(term for text in texts if text for term in (*terms(text), BREAK))


def _request_keys(request: HintRequest) -> Iterable[str]:
    facts = (
        ("situation", (request.situation_key,)),
        ("tool", (request.tool,)),
        ("server", (request.mcp_server,)),
        ("error", () if request.error_class in GENERIC_ERRORS else (request.error_class,)),
        ("entity", request.entities),
        ("topic", request.topics),
    )
    return (key(kind, value) for kind, values in facts for value in values if value.strip())


def _item_keys(item: KnowledgeItem) -> Iterable[str]:
    facts = (
        ("situation", item.situation_keys),
        ("tool", item.tools),
        ("server", item.mcp_servers),
        ("error", item.error_classes),
        ("entity", item.entities),
        ("topic", item.topics),
    )
    return (key(kind, value) for kind, values in facts for value in values if value.strip())


def _both_ends(sequence: tuple[str, ...]) -> tuple[str, ...]:
    if len(sequence) <= EXAMPLE_TERMS_MAX:
        return sequence
    tail = EXAMPLE_TERMS_MAX // 3
    return (*sequence[: EXAMPLE_TERMS_MAX - tail], *sequence[-tail:])
