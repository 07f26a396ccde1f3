"""Knowledge: what an item is, what was decided about it, and where it holds.

An item is one proposition with what is needed to find it again (tools, servers, error classes, example
errors), to judge it (evidence, reviewer, validity) and to place it (scope, area). Only the proposition is
required. An item is never edited in place: each decision about it is a new record of the KNOWLEDGE stream,
whose sequence is the item's revision; forgetting leaves a tombstone without content (E13).

An item without an id of its own is known by its content, so reading the same text twice gives one item. The
decision (state, reviewer) is not part of that content: a challenged claim is still the same claim.
"""

import re
from datetime import UTC, date, datetime, time
from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from temporality.protocol.bounds import (
    TOOL_INPUT_LENGTH_MAX,
    TOOL_RESULT_LENGTH_MAX,
    Name,
    Names,
    bounded,
)
from temporality.protocol.codec import encode_canonical
from temporality.protocol.errors import InvalidSubject
from temporality.protocol.identity import derived_id
from temporality.protocol.message import Message, Record
from temporality.protocol.subjects import subject_token

PROPOSITION_LENGTH_MAX = 8_192
"""Characters of a proposition: far above a hint's tokens (A40), for what is read with a look-up tool; bounds
the work of weighing an item."""
EXAMPLE_LENGTH_MAX = TOOL_INPUT_LENGTH_MAX + 1 + TOOL_RESULT_LENGTH_MAX
"""Characters of an example error: an input, a newline and a result at their bounds in a request."""
EXAMPLES_MAX = 16
"""Example errors of one item: keeps its record below a quarter of the server's 1 MiB payload."""
CAUTION_LENGTH_MAX = 300
"""Characters of a caution: it shares a line of the block with its proposition (A36)."""
CAUTIONS_MAX = 8
"""Cautions of one item: each one costs tokens in every block."""
EXCERPT_LENGTH_MAX = 500
"""Characters of an evidence excerpt: the least that suffices, never a conversation (E2)."""
EVIDENCE_MAX = 32
"""Evidence links of one item."""
REASON_LENGTH_MAX = 2_000
"""Characters of the reason for a decision, kept for the next reviewer (E6)."""

_DERIVED_ID = re.compile(r"k-[0-9a-f]{24}\Z")


class KnowledgeState(StrEnum):
    """Where an item stands in its life; only `reviewed` and `challenged` ones are ever offered (A21)."""

    CANDIDATE = "candidate"
    REVIEWED = "reviewed"
    CHALLENGED = "challenged"
    SUPERSEDED = "superseded"
    RETIRED = "retired"
    REJECTED = "rejected"
    DELETED = "deleted"

    @property
    def is_offerable(self) -> bool:
        """Tell whether items in this state may reach an agent."""
        return self in (KnowledgeState.REVIEWED, KnowledgeState.CHALLENGED)


class Scope(Record, frozen=True, kw_only=True):
    """Say where an item holds; None holds everywhere, several parts hold together."""

    project: Name | None = None
    team: Name | None = None
    user: Name | None = None

    def __post_init__(self) -> None:
        if self.project is not None:
            _subject_safe("scope.project", self.project)
        if "" in (self.team, self.user):
            raise ValueError("a scope's team or user is a name or null, never empty")


class Evidence(Record, frozen=True, kw_only=True):
    """Point at what a claim came from; a pointer is not a confirmation (E2)."""

    kind: Name
    ref: Name
    author: Name | None = None
    said_at: Name | None = None
    area: Name | None = None
    excerpt: Annotated[str, msgspec.Meta(max_length=EXCERPT_LENGTH_MAX)] = ""
    access: Name | None = None

    def __post_init__(self) -> None:
        bounded("evidence.excerpt", self.excerpt, EXCERPT_LENGTH_MAX)
        if self.said_at is not None:
            moment("evidence.said_at", self.said_at)


class KnowledgeItem(Record, frozen=True, kw_only=True):
    """Hold one proposition and what is needed to find, judge and place it.

    Dates are ISO 8601; without a time, `valid_from` means the start of the day and `valid_until` its end;
    without an offset, UTC. Lists of names are sets in meaning, kept in the writer's order.
    """

    proposition: Annotated[str, msgspec.Meta(min_length=1, max_length=PROPOSITION_LENGTH_MAX)]
    knowledge_id: Name = ""
    kind: Name = "claim"
    tools: Names = ()
    mcp_servers: Names = ()
    error_classes: Names = ()
    situation_keys: Names = ()
    entities: Names = ()
    topics: Names = ()
    example_errors: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=EXAMPLE_LENGTH_MAX)], ...],
        msgspec.Meta(max_length=EXAMPLES_MAX),
    ] = ()
    cautions: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=CAUTION_LENGTH_MAX)], ...],
        msgspec.Meta(max_length=CAUTIONS_MAX),
    ] = ()
    scope: Scope = Scope()
    area: Name | None = None
    state: KnowledgeState = KnowledgeState.REVIEWED
    valid_from: Name | None = None
    valid_until: Name | None = None
    supersedes: Names = ()
    depends_on: Names = ()
    reviewed_by: Literal["person", "policy"] = "person"
    subject: Name | None = None
    relation: Name | None = None
    value: Name | None = None
    evidence: Annotated[tuple[Evidence, ...], msgspec.Meta(max_length=EVIDENCE_MAX)] = ()

    def __post_init__(self) -> None:
        bounded("proposition", self.proposition, PROPOSITION_LENGTH_MAX)
        if not self.proposition.strip():
            raise ValueError("`proposition` is empty")
        if self.knowledge_id:
            _subject_safe("knowledge_id", self.knowledge_id)
        for example in self.example_errors:
            bounded("example_errors", example, EXAMPLE_LENGTH_MAX)
        for caution in self.cautions:
            bounded("cautions", caution, CAUTION_LENGTH_MAX)
        begins, ends = self.validity()
        if begins and ends and begins > ends:
            raise ValueError("`valid_until` lies before `valid_from`")

    def validity(self) -> tuple[datetime | None, datetime | None]:
        """Return the first and the last moment at which the item holds; None is open."""
        begins = moment("valid_from", self.valid_from) if self.valid_from else None
        ends = moment("valid_until", self.valid_until, end_of_day=True) if self.valid_until else None
        return begins, ends

    @property
    def has_derived_id(self) -> bool:
        """Tell whether the id comes from the content, and so says nothing to a reader."""
        return not self.knowledge_id or bool(_DERIVED_ID.match(self.knowledge_id))

    def identified(self) -> "KnowledgeItem":
        """Return the item with an id: its own, or the one derived from its content."""
        return self if self.knowledge_id else msgspec.structs.replace(self, knowledge_id=content_id(self))


class ItemDecided(Message, frozen=True, kw_only=True, tag="knowledge.decided"):
    """Record that somebody put the item, as it stands here, into its state; `decided_at` is ISO 8601."""

    item: KnowledgeItem
    decided_by: Name
    decided_at: Name
    reason: Annotated[str, msgspec.Meta(max_length=REASON_LENGTH_MAX)] = ""

    def __post_init__(self) -> None:
        if not self.item.knowledge_id:
            raise ValueError("a stored item has an id: use `identified()`")
        bounded("reason", self.reason, REASON_LENGTH_MAX)
        moment("decided_at", self.decided_at)

    @property
    def knowledge_id(self) -> str:
        """Name the item."""
        return self.item.knowledge_id


class ItemForgotten(Message, frozen=True, kw_only=True, tag="knowledge.forgotten"):
    """Record that an item was deleted, with nothing of its content or of the reason (E13).

    `project` is that of the item's subject, None for an item of every project: one id may be used in several.
    """

    knowledge_id: Name
    project: Name | None = None
    decided_by: Name
    decided_at: Name

    def __post_init__(self) -> None:
        _subject_safe("knowledge_id", self.knowledge_id)
        moment("decided_at", self.decided_at)


KnowledgeRecord = ItemDecided | ItemForgotten
"""What the KNOWLEDGE stream keeps; an item's last record is its present, the sequence its revision."""


def content_id(item: KnowledgeItem) -> str:
    """Derive an id from what the item says, whatever the order of keys, names or evidence.

    State, reviewer and the id itself are left out; defaults count as absent, so that a later field with a
    default does not change the ids of older items.
    """
    content = msgspec.to_builtins(item)
    for decision in ("knowledge_id", "state", "reviewed_by"):
        content.pop(decision, None)
    for name, value in content.items():
        if isinstance(value, list | tuple):
            content[name] = sorted(encode_canonical(entry).decode() for entry in value)
    return derived_id("k", encode_canonical(content).decode())


def moment(field: str, text: str, *, end_of_day: bool = False) -> datetime:
    """Return the aware moment that an ISO 8601 date or time names; a `ValueError` names the field."""
    try:
        if "T" not in text and " " not in text.strip():
            day = date.fromisoformat(text)
            return datetime.combine(day, time.max if end_of_day else time.min, UTC)
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"`{field}` is not an ISO 8601 date or time: {text[:40]!r}") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _subject_safe(field: str, text: str) -> None:
    try:
        subject_token(text)
    except InvalidSubject as refused:
        raise ValueError(f"`{field}`: {refused}") from None
