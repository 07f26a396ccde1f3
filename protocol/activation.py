"""Facts of the barrier: from "something asked for a look-up" to "these lines stand in the next request".

Every fact names the activation it belongs to, so that the chain trigger event → activation → candidates →
selected → injected can be read from one id (A45, A46).
"""

from typing import Literal

from temporality.protocol.message import Message

SkipReason = Literal[
    "duplicate",
    "run_ended",
    "limit_turn",
    "limit_run",
    "limit_tool",
    "limit_trigger",
    "breaker",
    "disabled",
    "empty_diagnostic",
]
"""Why a candidate got no look-up."""

LookUpResult = Literal["success", "empty", "timeout", "error"]

DeliveryReason = Literal["budget", "duplicate", "suppressed", "late", "disabled", "limit"]
"""Why an offered hint was not injected."""

MissReason = Literal["late", "no_answer", "invalid", "unknown"]


class EvaluatorMissed(Message, frozen=True, kw_only=True, tag="evaluator.missed"):
    """An evaluator gave no usable answer at this barrier (A11)."""

    kind: str
    reason: MissReason
    detail: str = ""


class CandidateReceived(Message, frozen=True, kw_only=True, tag="candidate.received"):
    """A candidate came outside a barrier and waits for the next one (A10)."""

    id: str
    kind: str
    situation: str
    call: str | None = None
    query: str | None = None
    error_class: str | None = None
    entities: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()


class ActivationRequested(Message, frozen=True, kw_only=True, tag="activation.requested"):
    """A candidate passed the limits and is looked up; `source_id` is the call or message that caused it."""

    activation_id: str
    trigger: str
    source_id: str
    turn: int
    situation_key: str
    tool: str | None = None
    mcp_server: str | None = None
    error_class: str | None = None


class ActivationSkipped(Message, frozen=True, kw_only=True, tag="activation.skipped"):
    """A candidate was not looked up, and why."""

    activation_id: str
    trigger: str
    source_id: str
    turn: int
    reason: SkipReason
    situation_key: str | None = None
    tool: str | None = None
    mcp_server: str | None = None


class HintsQueried(Message, frozen=True, kw_only=True, tag="hint.query"):
    """The look-up of one activation: digest and shape of the query (A47), never its text.

    `found` counts the hints offered; `candidates` how many items the retriever considered.
    """

    activation_id: str
    result: LookUpResult
    query_digest: str
    query_shape: dict[str, int]
    found: int = 0
    candidates: int = 0
    retrieval_ms: int = 0
    matcher_version: str | None = None
    detail: str = ""


class HintOffered(Message, frozen=True, kw_only=True, tag="hint.offered"):
    """The retriever offered one item for one activation."""

    hint_id: str
    activation_id: str
    knowledge_id: str
    revision: int
    trigger: str
    source_id: str
    tier: str = ""
    matched: tuple[str, ...] = ()
    score: float = 0.0


class HintDelivered(Message, frozen=True, kw_only=True, tag="hint.delivery"):
    """What became of one offered hint: injected, or not and why (A41, A45).

    `too_large` says that this revision could not fit even alone, so that it need not be fetched again (A33).
    """

    hint_id: str
    activation_id: str
    knowledge_id: str
    revision: int
    injected: bool
    reason: DeliveryReason | None = None
    too_large: bool = False

    def __post_init__(self) -> None:
        if self.injected == (self.reason is not None):
            raise ValueError("a hint is either injected, or not injected for a reason")
        if self.too_large and self.reason != "budget":
            raise ValueError("only a hint that the budget refuses is too large")


class ActivationSettled(Message, frozen=True, kw_only=True, tag="activation.settled"):
    """The whole of one activation in numbers (A46)."""

    activation_id: str
    trigger: str
    result: LookUpResult
    found: int = 0
    selected: int = 0
    injected: int = 0
    tokens: int = 0
    retrieval_ms: int = 0


class BlockInjected(Message, frozen=True, kw_only=True, tag="block.injected"):
    """The one block of this barrier as the model will see it, and what it holds (A34)."""

    text: str
    tokens: int
    activation_ids: tuple[str, ...]
    knowledge_ids: tuple[str, ...]


BarrierFact = (
    EvaluatorMissed
    | CandidateReceived
    | ActivationRequested
    | ActivationSkipped
    | HintsQueried
    | HintOffered
    | HintDelivered
    | ActivationSettled
    | BlockInjected
)
