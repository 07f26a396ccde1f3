"""What the model caller needs of a provider, and how a provider's failures are told apart.

A provider makes *one* attempt. It returns the reply or raises `CallFailed`, which says what kind of
failure it was and whether trying again can help. Waiting and trying again is the same for all of them, and
is in `retry.py`; the caller turns what is left into `ModelFailed`, a message like any other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from temporality.actors.redaction import clean
from temporality.protocol.agent import ModelSpec
from temporality.protocol.errors import WorldError
from temporality.protocol.model import ProviderCall, Usage

ErrorClass = Literal[
    "unauthorized",
    "rate_limited",
    "provider_error",
    "malformed_reply",
    "timeout",
    "connection",
    "refused",
    "transcript_mismatch",
]

FAILURE_CHARACTERS_MAX = 500
"""Longest message of a failure: a provider's error page must not fill a run's commits."""

REPLY_BYTES_MAX = 98_304
"""Largest reply: a commit of 256 KiB holds arguments twice, in the reply's fact and in the tool's message."""

Retry = Literal["never", "once", "backoff", "later"]
"""What helps: nothing; one more try; tries with growing pauses; a try after a longer time, by a timer."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request, rendered: `messages` as OpenAI chat messages, and the same messages as JSON.

    Both lists are only ever appended to between the requests of a run, so nothing in them is encoded twice.
    `tools` is the JSON of the tool list.
    """

    call: str
    spec: ModelSpec
    messages: Sequence[Mapping[str, Any]]
    encoded: Sequence[bytes]
    tools: bytes | None = None


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What the model said."""

    content: str = ""
    tool_calls: tuple[ProviderCall, ...] = ()
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)


class CallFailed(WorldError):
    """A call, or one attempt at it, gave no usable reply: the class, what helps, what a person can `do`."""

    def __init__(
        self,
        error_class: ErrorClass,
        message: str,
        *,
        retry: Retry = "never",
        retry_after_s: float | None = None,
        do: str = "",
    ) -> None:
        super().__init__(message)
        self.error_class: ErrorClass = error_class
        # A provider quotes what it refuses, and half of a key at a cut can't be known as one later (A17).
        self.message = clean(message, characters_max=FAILURE_CHARACTERS_MAX).text
        self.retry: Retry = retry
        self.retry_after_s = retry_after_s
        self.do = do


class Provider(Protocol):
    """One way to reach models."""

    async def attempt(self, request: ModelRequest) -> ModelReply:
        """Ask once. Raises `CallFailed`; ends within the model's `request_timeout_s`."""
        ...

    async def aclose(self) -> None:
        """Close connections. Idempotent."""
        ...


def require_committable(reply: ModelReply) -> ModelReply:
    """Return the reply if a commit can hold it; raises `CallFailed` otherwise."""
    texts = [reply.content, *(call.arguments for call in reply.tool_calls)]
    size = sum(len(text.encode()) for text in texts)
    if size > REPLY_BYTES_MAX:
        raise CallFailed(
            "malformed_reply",
            f"the reply has {size} bytes; a run can keep {REPLY_BYTES_MAX}",
            do="limit the model's output, for example with `model.params: {max_tokens: 16000}`",
        )
    return reply
