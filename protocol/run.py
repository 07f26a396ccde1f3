"""A run: its commands, its facts, and the commit that makes facts true and owes messages to the bus.

A run is a sequence of commits on one subject. Everything that is known of it (state, transcript, public
facts, timelines) is a fold of them, so this file is the vocabulary of the whole system.
"""

from msgspec import field

from temporality.protocol.activation import BarrierFact
from temporality.protocol.agent import AgentSpec, Effect
from temporality.protocol.codec import encode_canonical
from temporality.protocol.identity import RunIdentity, derived_id
from temporality.protocol.message import Message, Outgoing, Record
from temporality.protocol.model import ModelReport, Usage
from temporality.protocol.tool import ToolFinished, ToolOutcome
from temporality.protocol.trigger import CandidateProposed

COMMIT_BYTES_MAX = 262_144
"""A commit stays far below the server's 1 MiB payload, so that any commit can be read in one request."""

TASK_CHARACTERS_MAX = 65_536


# --- what a run's inbox may hold ------------------------------------------------------------------------


class StartRun(Message, frozen=True, kw_only=True, tag="run.start"):
    """Start a run (kind `command`); a start of a known run is a repeat."""

    identity: RunIdentity
    agent: AgentSpec
    task: str

    def __post_init__(self) -> None:
        if not 0 < len(self.task) <= TASK_CHARACTERS_MAX:
            raise ValueError(f"a task has 1 to {TASK_CHARACTERS_MAX} characters")


class CancelRun(Message, frozen=True, kw_only=True, tag="run.cancel"):
    """End a run at once (kind `command`); outstanding calls are answered as cancelled."""

    reason: str = ""


class TimerFired(Message, frozen=True, kw_only=True, tag="timer.fired"):
    """A timer of the run is due (kind `timer`, at least once); `name` says which."""

    name: str


InboxMessage = StartRun | CancelRun | ModelReport | ToolFinished | CandidateProposed | TimerFired

INBOX_KIND_TYPES: dict[str, tuple[type[Message], ...]] = {
    "command": (StartRun, CancelRun),
    "reply": ModelReport.__args__,
    "outcome": (ToolFinished,),
    "candidate": (CandidateProposed,),
    "timer": (TimerFired,),
}
"""Which messages each inbox kind may carry: a sender's rights are per kind, so a kind must not smuggle."""


# --- facts ----------------------------------------------------------------------------------------------


class RequestedCall(Record, frozen=True, kw_only=True):
    """A tool call of a model reply: our `call` id beside the provider's, and the raw arguments."""

    call: str
    provider_call_id: str
    name: str
    arguments: str


class RunStarted(Message, frozen=True, kw_only=True, tag="run.started"):
    """The run exists, with its whole specification; `traceparent` is the root of its trace."""

    identity: RunIdentity
    agent: AgentSpec
    task: str
    traceparent: str | None = None


class ToolsFrozen(Message, frozen=True, kw_only=True, tag="tools.frozen"):
    """The tool list is fixed from here on; `digest` names its blob (None: the agent has no tools)."""

    digest: str | None
    count: int = 0


class ModelCalled(Message, frozen=True, kw_only=True, tag="model.called"):
    """The next request to the model was decided: nothing is injected before it any more."""

    call: str
    turn: int
    attempt: int
    model: str
    transcript_digest: str
    tools: str | None = None


class ModelReplied(Message, frozen=True, kw_only=True, tag="model.replied"):
    """The model answered and, with calls, opened turn `turn`."""

    call: str
    turn: int
    content: str = ""
    calls: tuple[RequestedCall, ...] = ()
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    transcript_digest: str = ""
    duration_ms: int = 0


class ModelCallFailed(Message, frozen=True, kw_only=True, tag="model.failed"):
    """The provider gave no usable reply; `retry_after_s` says when the call is made again, if at all."""

    call: str
    turn: int
    attempt: int
    error_class: str
    message: str
    retry_after_s: float | None = None
    duration_ms: int = 0


class ToolCalled(Message, frozen=True, kw_only=True, tag="tool.called"):
    """A call of the turn was accepted or rejected for execution; its arguments stand in the model's reply."""

    call: str
    turn: int
    tool: str
    argument_digest: str
    effect: Effect
    mcp_server: str | None = None


class ToolReplied(Message, frozen=True, kw_only=True, tag="tool.replied"):
    """A call has its outcome; the only one it will ever have."""

    call: str
    turn: int
    outcome: ToolOutcome
    duration_ms: int = 0


class TurnClosed(Message, frozen=True, kw_only=True, tag="turn.closed"):
    """All calls of the turn have replies and its barrier has closed; `evaluators` lists who answered."""

    turn: int
    evaluators: tuple[str, ...] = ()
    barrier_ms: int = 0


class RunFinished(Message, frozen=True, kw_only=True, tag="run.finished"):
    """The run ended with the model's answer."""

    answer: str
    turns: int = 0


class RunFailed(Message, frozen=True, kw_only=True, tag="run.failed"):
    """The run ended without an answer: `where`, `what` is wrong, what to `do`."""

    where: str
    what: str
    do: str = ""


class RunCancelled(Message, frozen=True, kw_only=True, tag="run.cancelled"):
    """Somebody ended the run."""

    reason: str = ""


RunFact = (
    RunStarted
    | ToolsFrozen
    | ModelCalled
    | ModelReplied
    | ModelCallFailed
    | ToolCalled
    | ToolReplied
    | TurnClosed
    | BarrierFact
    | RunFinished
    | RunFailed
    | RunCancelled
)


class Commit(Message, frozen=True, kw_only=True, tag="commit"):
    """One step of a run: the facts that became true together, and the messages they owe.

    `number` counts the run's commits from 1; `predecessor` is the one before's stream sequence (0: none);
    `causes` are the ids of the messages it answers; `at` is the wall time of the decision (RFC 3339, UTC).
    """

    id: str
    run: str
    number: int
    predecessor: int
    at: str
    facts: tuple[RunFact, ...]
    outgoing: tuple[Outgoing, ...] = ()
    causes: tuple[str, ...] = ()
    generation: int = 1


def commit_id(commit: Commit) -> str:
    """Derive a commit's own id from its content, the trace root in a run's first fact included.

    The traces of its own handling are in headers and no part of it. Two owners of one message may hold
    different barrier results, so the message's id is not enough to tell after a lost acknowledgement whose
    commit was stored.
    """
    content = encode_canonical(
        (
            commit.run,
            commit.number,
            commit.predecessor,
            commit.at,
            commit.facts,
            commit.outgoing,
            commit.causes,
        )
    )
    return derived_id("c", content.decode())


def outgoing_id(commit: str, index: int) -> str:
    """Derive the message id of a commit's outgoing message: the same at every repeat."""
    return f"{commit}.{index}"
