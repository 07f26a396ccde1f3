"""Tools: what a model may call, how a call is executed, and the six ways in which it can come back.

The outcome's type is the verdict (A7): nothing ever looks into its text to find out whether a call worked.
`effect` says what is known about the world afterwards; `uncertain` means that the call may or may not have
acted, and is told to the model and the user instead of being tried again.
"""

from typing import Any, Literal

from msgspec import field

from temporality.protocol.agent import Effect, McpServerSpec
from temporality.protocol.message import Message, Record

CONTENT_INLINE_BYTES_MAX = 16_384
"""Longer content goes to a blob before the commit, so that a commit stays small (0-architecture)."""

EffectKnown = Literal["none", "done", "uncertain"]
"""What a failed call did to the world: surely nothing, surely something, or nobody knows."""

REJECTED_CLASSES = frozenset({"unknown_tool", "invalid_arguments"})
"""Error classes of calls that were refused before execution."""


class ToolDefinition(Record, frozen=True, kw_only=True):
    """One tool of the frozen list: `name` is what the model says, `tool` and `mcp_server` what it means.

    `parameters` is a JSON Schema of an object; `python` names the function of a Python tool.
    """

    name: str
    tool: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    effect: Effect = "once"
    mcp_server: str | None = None
    python: str | None = None


class BlobRef(Record, frozen=True, kw_only=True):
    """Text kept as a blob: the SHA-256 of its UTF-8 bytes, and how many there are."""

    digest: str
    bytes: int


class ToolSucceeded(Message, frozen=True, kw_only=True, tag="succeeded"):
    """The call did what it should; `content` is for the model, `data` for programs, `visual` for people.

    Long content is in `content_blob`, and `content` is then empty.
    """

    content: str = ""
    content_blob: BlobRef | None = None
    data: Any = None
    visual: Any = None


class ToolFailed(Message, frozen=True, kw_only=True, tag="failed"):
    """The call failed: `error_class` is a class of 0-architecture ("Tools") or the exception's name."""

    error_class: str
    content: str = ""
    content_blob: BlobRef | None = None
    effect: EffectKnown = "none"


class ToolBlocked(Message, frozen=True, kw_only=True, tag="blocked"):
    """Policy forbade the call; it was not executed."""

    reason: str


class ToolDenied(Message, frozen=True, kw_only=True, tag="denied"):
    """A person refused the call, or the question expired; it was not executed."""

    reason: str


class ToolCancelled(Message, frozen=True, kw_only=True, tag="cancelled"):
    """The caller cancelled the call."""

    effect: EffectKnown = "none"


class ToolAccepted(Message, frozen=True, kw_only=True, tag="accepted"):
    """The work goes on in the background under `operation_id`; its result comes later."""

    operation_id: str


ToolOutcome = ToolSucceeded | ToolFailed | ToolBlocked | ToolDenied | ToolCancelled | ToolAccepted


class ToolCall(Message, frozen=True, kw_only=True, tag="tool.call"):
    """Ask an executor to run one call (stream WORK, at least once; `call` makes a repeat recognisable).

    `arguments` is the JSON object that the supervisor checked against the tool's schema. `mcp` or `python`
    says how to reach the tool; secrets in it are `${NAME}` references.
    """

    run: str
    call: str
    turn: int
    tool: str
    arguments: dict[str, Any]
    effect: Effect
    reply_bytes_max: int
    mcp_server: str | None = None
    mcp: McpServerSpec | None = None
    python: str | None = None

    def __post_init__(self) -> None:
        if (self.mcp is None) == (self.python is None):
            raise ValueError("a tool call is bound to exactly one of an MCP server and a Python function")
        if (self.mcp is None) != (self.mcp_server is None):
            raise ValueError("an MCP call names both its server and how to reach it")


class ToolFinished(Message, frozen=True, kw_only=True, tag="tool.finished"):
    """Report a call's outcome to its run (stream INBOX, kind `outcome`); repeats are dropped by call."""

    call: str
    outcome: ToolOutcome
    duration_ms: int = 0


class OperationClaimed(Message, frozen=True, kw_only=True, tag="operation.claimed"):
    """An executor is about to act for this call (first message on the operation's subject)."""

    executor: str
    effect: Effect


class OperationRecorded(Message, frozen=True, kw_only=True, tag="operation.recorded"):
    """The call's outcome as first seen; a redelivered call is answered from it instead of acting again."""

    executor: str
    outcome: ToolOutcome
    duration_ms: int = 0


OperationRecord = OperationClaimed | OperationRecorded


class ListTools(Message, frozen=True, kw_only=True, tag="tools.list"):
    """Ask an executor which tools these servers and functions offer (`ask.executor.tools`)."""

    mcp: dict[str, McpServerSpec] = field(default_factory=dict)
    python: tuple[str, ...] = ()


class ToolsListed(Message, frozen=True, kw_only=True, tag="tools.listed"):
    """The tools, sorted by name; names are unique."""

    tools: tuple[ToolDefinition, ...]


class ToolsUnavailable(Message, frozen=True, kw_only=True, tag="tools.unavailable"):
    """The tools can't be listed: `where` (the server or function), `what` is wrong, what to `do`."""

    where: str
    what: str
    do: str = ""


ToolsAnswer = ToolsListed | ToolsUnavailable


def content_of(outcome: ToolOutcome) -> str:
    """Return the text that an outcome carries inline, "" if it has none or keeps it in a blob."""
    return outcome.content if isinstance(outcome, ToolSucceeded | ToolFailed) else ""


def blob_of(outcome: ToolOutcome) -> BlobRef | None:
    """Return the blob that holds an outcome's text, if it was too long to be inline."""
    return outcome.content_blob if isinstance(outcome, ToolSucceeded | ToolFailed) else None


def outcome_name(outcome: ToolOutcome) -> str:
    """Return the outcome's name as messages carry it: succeeded, failed, blocked, denied, …"""
    return str(type(outcome).__struct_config__.tag)
