"""What trigger evaluators say: candidates, never injections (A4).

A candidate is a claim that "this situation may deserve a look-up". The supervisor stamps the trigger's kind
from the roster of live evaluators and computes the situation key, so that an evaluator can't speak for
another, nor dodge the suppression of repeats.
"""

import re
from typing import Annotated

from msgspec import Meta

from temporality.protocol.bounds import QUERY_LENGTH_MAX, TOOL_RESULT_LENGTH_MAX, Name, Names
from temporality.protocol.message import Message, Record

TRIGGER_SERVICE = "temporality-trigger"
"""Name under which every evaluator registers as a NATS micro service; its metadata holds `kind`."""

SITUATION_CHARACTERS_MAX = TOOL_RESULT_LENGTH_MAX
"""A situation is a call's result, or the part of it that tells one from another."""
CANDIDATES_MAX = 64
"""Candidates in one answer: more is a broken evaluator, and the answer is invalid."""

TOOL_FAILED = "tool.failed"
MCP_FIRST_CALL = "mcp.first_call"
PRIMING = "task.priming"

KIND_LENGTH_MAX = 64
"""Longest kind: it is a queue group, a metadata value and a column of every report."""

_KIND = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*\Z")


def is_kind(text: str) -> bool:
    """Tell whether an evaluator may have this kind: words of a-z 0-9 joined by . _ or -; priming is ours."""
    return len(text) <= KIND_LENGTH_MAX and _KIND.match(text) is not None and text != PRIMING


class Candidate(Record, frozen=True, kw_only=True):
    """Propose a look-up: `call` is the call it is about (None: the turn as a whole).

    `situation` is the text that identifies the situation (normalised and digested by the supervisor);
    `query` replaces the run's task as search text.
    """

    situation: Annotated[str, Meta(max_length=SITUATION_CHARACTERS_MAX)]
    call: str | None = None
    query: Annotated[str, Meta(max_length=QUERY_LENGTH_MAX)] | None = None
    error_class: Name | None = None
    entities: Names = ()
    topics: Names = ()


class EmptyDiagnostic(Record, frozen=True, kw_only=True):
    """A call that would have fired, had its failure said anything to search by (A7)."""

    call: str


class TurnEvaluated(Message, frozen=True, kw_only=True, tag="turn.evaluated"):
    """Answer `turn.settled`; `instance` is the micro-service id by which the roster knows the kind."""

    instance: str
    candidates: Annotated[tuple[Candidate, ...], Meta(max_length=CANDIDATES_MAX)] = ()
    empty: Annotated[tuple[EmptyDiagnostic, ...], Meta(max_length=CANDIDATES_MAX)] = ()


class CandidateProposed(Message, frozen=True, kw_only=True, tag="candidate.proposed"):
    """Propose a candidate outside a barrier (stream INBOX, kind `candidate`); it waits for the next one."""

    instance: str
    candidate: Candidate
