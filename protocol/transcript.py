"""The transcript: what a model has seen and said, in no provider's format, as a fold of a run's facts.

The supervisor folds it to know the digest of what the next request must hold; the model caller folds it to
build that request. Both use this one function, so a digest that differs means lost or foreign commits and
never two opinions about order. The order is decided here and nowhere else (A1, A2, A38):

    turn barrier      replies in the order of the calls · user messages · block
    message barrier   block (priming) · user's message

Replies wait in the open turn until the next model call flushes them, so neither the order in which they
arrive nor the number of commits they arrive in changes a byte of the transcript. Messages are only ever
appended: earlier ones keep their bytes, and a provider's prompt cache stays warm.
"""

import hashlib

import msgspec
from msgspec import field

from temporality.protocol.activation import BlockInjected
from temporality.protocol.codec import encode_canonical
from temporality.protocol.message import Message, Record
from temporality.protocol.run import (
    ModelCalled,
    ModelReplied,
    RequestedCall,
    RunFact,
    RunStarted,
    ToolReplied,
)
from temporality.protocol.tool import ToolFailed, ToolOutcome

EMPTY_DIGEST = hashlib.sha256(b"").hexdigest()
"""Digest of the transcript before its first message."""


class SystemText(Message, frozen=True, kw_only=True, tag="system"):
    """The agent's instructions; only ever the first message."""

    text: str


class UserText(Message, frozen=True, kw_only=True, tag="user"):
    """What a person (or the caller's program) said."""

    text: str


class MemoryBlock(Message, frozen=True, kw_only=True, tag="memory"):
    """One `temporality.memory` block, exactly as rendered (A34)."""

    text: str


class AssistantReply(Message, frozen=True, kw_only=True, tag="assistant"):
    """A model reply; its calls are answered by the replies that follow."""

    content: str = ""
    calls: tuple[RequestedCall, ...] = ()


class CallReply(Message, frozen=True, kw_only=True, tag="reply"):
    """The outcome of one call, with the provider's id of the call it answers."""

    call: str
    provider_call_id: str
    outcome: ToolOutcome


TranscriptMessage = SystemText | UserText | MemoryBlock | AssistantReply | CallReply


class OpenTurn(Record, frozen=True, kw_only=True):
    """What has happened since the last flush and is not yet part of the transcript."""

    calls: tuple[RequestedCall, ...] = ()
    replies: dict[str, ToolOutcome] = field(default_factory=dict)
    users: tuple[str, ...] = ()
    block: str | None = None

    def missing(self) -> tuple[RequestedCall, ...]:
        """Return the calls that have no reply yet, in order."""
        return tuple(call for call in self.calls if call.call not in self.replies)


INTERRUPTED = ToolFailed(
    error_class="interrupted",
    content="The call was interrupted before it answered; whether it took effect is not known.",
    effect="uncertain",
)
"""The reply of a call that a crash orphaned, so that no history is ever invalid for its provider."""


def fold(turn: OpenTurn, fact: RunFact) -> tuple[OpenTurn, tuple[TranscriptMessage, ...]]:
    """Apply one fact: return the open turn after it and the messages that it appends to the transcript."""
    match fact:
        case RunStarted(agent=agent, task=task):
            system = (SystemText(text=agent.instructions),) if agent.instructions else ()
            return OpenTurn(users=(task,)), system
        case ToolReplied(call=call, outcome=outcome) if call not in turn.replies:
            return msgspec.structs.replace(turn, replies={**turn.replies, call: outcome}), ()
        case BlockInjected(text=text):
            return msgspec.structs.replace(turn, block=text), ()
        case ModelCalled():
            return OpenTurn(), flush(turn)
        case ModelReplied(content=content, calls=calls):
            return OpenTurn(calls=calls), (AssistantReply(content=content, calls=calls),)
        case _:
            return turn, ()


def flush(turn: OpenTurn) -> tuple[TranscriptMessage, ...]:
    """Return the messages that an open turn becomes when the next model call is made."""
    replies = tuple(
        CallReply(
            call=call.call,
            provider_call_id=call.provider_call_id,
            outcome=turn.replies.get(call.call, INTERRUPTED),
        )
        for call in turn.calls
    )
    users = tuple(UserText(text=text) for text in turn.users)
    block = (MemoryBlock(text=turn.block),) if turn.block else ()
    return (*replies, *users, *block) if turn.calls else (*block, *users)


def extend_digest(digest: str, messages: tuple[TranscriptMessage, ...]) -> str:
    """Return the digest of a transcript after `messages` were appended to the one with `digest`."""
    for message in messages:
        digest = hashlib.sha256(digest.encode() + encode_canonical(message)).hexdigest()
    return digest
