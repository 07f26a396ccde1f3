"""What a look-up of knowledge asks, and what it answers.

One request serves every asker: a turn barrier, priming, an HTTP caller, a look-up tool (A15). The requests of
one barrier travel as a batch (A12): what they share (who asks, what was issued before, the task) is said once
in the context, and `HintBatch.resolved` gives each request its full form again.

Texts are bounded by their sender and once more here, since a retriever is reachable by any process (A16). An
empty answer is a result like any other, never an error (A23). Everything found in a request or in an item is
data: nothing in it selects code, a query or a file (A18).
"""

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from temporality.protocol.bounds import (
    QUERY_LENGTH_MAX,
    SKILL_LENGTH_MAX,
    TOOL_INPUT_LENGTH_MAX,
    TOOL_RESULT_LENGTH_MAX,
    Name,
    Names,
    bounded,
)
from temporality.protocol.editorial import KnowledgeState, Scope
from temporality.protocol.identity import derived_id
from temporality.protocol.message import Record
from temporality.protocol.trigger import MCP_FIRST_CALL, PRIMING, TOOL_FAILED

SKILLS_MAX = 32
"""Skills of one agent: bounds a request to a fraction of a bus message."""
EXCLUDED_IDS_MAX = 4_096
"""Issued or suppressed ids of one request: far above the fuse of activations a run (A32)."""
REQUESTS_MAX = 32
"""Requests of one batch: ten times the activations a turn that the limits allow by default (A32)."""

ExcludedIds = Annotated[tuple[Name, ...], msgspec.Meta(max_length=EXCLUDED_IDS_MAX)]
QueryText = Annotated[str, msgspec.Meta(max_length=QUERY_LENGTH_MAX)]
InputText = Annotated[str, msgspec.Meta(max_length=TOOL_INPUT_LENGTH_MAX)]
ResultText = Annotated[str, msgspec.Meta(max_length=TOOL_RESULT_LENGTH_MAX)]


class Skill(Record, frozen=True, kw_only=True):
    """Name a text that the agent already has; without its text it covers no item (A14)."""

    name: Name
    text: Annotated[str, msgspec.Meta(max_length=SKILL_LENGTH_MAX)] = ""

    def __post_init__(self) -> None:
        bounded("text", self.text, SKILL_LENGTH_MAX)


Skills = Annotated[tuple[Skill, ...], msgspec.Meta(max_length=SKILLS_MAX)]


class HintContext(Record, frozen=True, kw_only=True):
    """Carry what all requests of one barrier share; a request's own value goes before it."""

    query: QueryText = ""
    active_skills: Skills = ()
    issued_knowledge_ids: ExcludedIds = ()
    suppressed_knowledge_ids: ExcludedIds = ()
    project: Name | None = None
    run_id: Name | None = None
    task_id: Name | None = None
    actor_id: Name | None = None
    user_id: Name | None = None
    team: Name | None = None
    team_root: Name | None = None

    def __post_init__(self) -> None:
        bounded("query", self.query, QUERY_LENGTH_MAX)


class HintRequest(HintContext, frozen=True, kw_only=True):
    """Ask for the knowledge that fits one situation (A14).

    `tool_input` and `tool_result` are bounded and redacted by the sender. At least one field must give
    something to search by; scope, ids and skills alone do not.
    """

    trigger: Name = ""
    tool: Name = ""
    mcp_server: Name = ""
    tool_input: InputText = ""
    tool_result: ResultText = ""
    error_class: Name = ""
    situation_key: Name = ""
    entities: Names = ()
    topics: Names = ()
    activation_id: Name = ""
    activation_source_id: Name = ""

    def __post_init__(self) -> None:
        bounded("query", self.query, QUERY_LENGTH_MAX)
        bounded("tool_input", self.tool_input, TOOL_INPUT_LENGTH_MAX)
        bounded("tool_result", self.tool_result, TOOL_RESULT_LENGTH_MAX)
        if not self._has_search_content():
            raise ValueError("nothing to search by: give `query` or `tool_result`")

    @property
    def is_failure(self) -> bool:
        """Tell whether a failed call is looked up, so that example errors weigh like propositions (A20)."""
        if self.trigger in (PRIMING, MCP_FIRST_CALL):
            return False
        return self.trigger == TOOL_FAILED or bool(self.error_class or self.tool_result)

    def correlation(self) -> dict[str, str]:
        """Return the ids that join this look-up to its cause, for spans and facts (A45, A46)."""
        ids = {
            "activation_id": self.activation_id,
            "activation_source_id": self.activation_source_id,
            "trigger": self.trigger,
            "project": self.project,
            "run_id": self.run_id,
            "task_id": self.task_id,
            "actor_id": self.actor_id,
            "team_root": self.team_root,
        }
        return {name: value for name, value in ids.items() if value}

    def _has_search_content(self) -> bool:
        return any(
            text.strip()
            for text in (
                self.query,
                self.tool_result,
                self.tool_input,
                self.tool,
                self.mcp_server,
                self.error_class,
                self.situation_key,
                *self.entities,
                *self.topics,
            )
        )


class HintBatch(Record, frozen=True, kw_only=True):
    """Ask all that one barrier needs to know, in one message (A12)."""

    context: HintContext = HintContext()
    requests: Annotated[tuple[HintRequest, ...], msgspec.Meta(min_length=1, max_length=REQUESTS_MAX)]

    def __post_init__(self) -> None:
        if not 1 <= len(self.requests) <= REQUESTS_MAX:
            raise ValueError(f"a batch holds 1 to {REQUESTS_MAX} requests, not {len(self.requests)}")

    def resolved(self) -> tuple[HintRequest, ...]:
        """Return the requests, in order, with the context's values where a request has none of its own."""
        shared = {name: getattr(self.context, name) for name in HintContext.__struct_fields__}
        return tuple(
            msgspec.structs.replace(
                request,
                **{name: value for name, value in shared.items() if value and not getattr(request, name)},
            )
            for request in self.requests
        )


class Tier(StrEnum):
    """Name the strongest reason for which an item was found, strongest first."""

    SITUATION = "situation"
    TOOL_AND_ERROR = "tool+error"
    TOOL = "tool"
    TERMS = "terms"


class Hint(Record, frozen=True, kw_only=True):
    """Offer one knowledge item for one activation, with the reasons and the doubts (A21, A24, A36).

    `matched` lists what matched as `kind:value`; `score` compares hints of one answer only; `successor_of` is
    the id of the superseded or retired item that matched in this one's place (A22).
    """

    hint_id: str
    knowledge_id: str
    revision: int
    proposition: str
    tier: Tier
    matched: tuple[str, ...]
    score: float
    state: KnowledgeState
    scope: Scope
    cautions: tuple[str, ...]
    successor_of: str | None = None


class HintResult(msgspec.Struct, frozen=True, kw_only=True):
    """Answer one request: the hints, best first, and how many items were weighed to find them."""

    activation_id: str
    result: Literal["success", "empty"]
    matcher_version: str
    hints: tuple[Hint, ...] = ()
    candidates_count: int = 0

    def __post_init__(self) -> None:
        if (self.result == "success") != bool(self.hints):
            raise ValueError("`success` has hints and `empty` has none")


class HintBatchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer a batch: one result a request, in the order of the requests."""

    results: tuple[HintResult, ...]


def revised_id(knowledge_id: str, revision: int) -> str:
    """Name one revision of an item; among suppressed ids it withholds that revision and older ones (A33)."""
    return f"{knowledge_id}@{revision}"


def is_withheld(knowledge_id: str, revision: int, withheld: Collection[str]) -> bool:
    """Tell whether an item's id, or this or a newer revision of it, is among `withheld` ones (A29, A33)."""
    if knowledge_id in withheld:
        return True
    prefix = f"{knowledge_id}@"
    return any(
        entry.startswith(prefix)
        and entry[len(prefix) :].isdecimal()
        and int(entry[len(prefix) :]) >= revision
        for entry in withheld
    )


def hint_id(activation_id: str, knowledge_id: str, revision: int) -> str:
    """Derive the id of a hint from its cause, so that a repeated look-up gives the same id (A49)."""
    return derived_id("hint", activation_id, knowledge_id, revision)
