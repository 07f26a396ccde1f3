"""The transcript as Anthropic messages.

The format knows two roles that alternate: everything between two model replies is one user message, with the
results of the calls first and text after them (A39). It has an error flag, so a failure is marked as well as
worded. Rendering is per transcript, not per message, as neighbours merge; still a longer transcript begins
with the content blocks of the shorter one, which is what its prompt cache compares (A38).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from temporality.actors.model.render.words import (
    arguments_object,
    history_id,
    history_name,
    reply_text,
    visible,
)
from temporality.protocol.tool import ToolAccepted, ToolDefinition, ToolSucceeded, content_of
from temporality.protocol.transcript import (
    AssistantReply,
    CallReply,
    MemoryBlock,
    SystemText,
    TranscriptMessage,
    UserText,
)

NO_CONTENTS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class AnthropicPrompt:
    """The instructions, which stand outside the messages, and the messages."""

    system: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)


def render_anthropic(
    messages: Iterable[TranscriptMessage], contents: Mapping[str, str] = NO_CONTENTS
) -> AnthropicPrompt:
    """Return the prompt; `contents` maps a call to its text where that is kept in a blob."""
    system = ""
    rendered: list[dict[str, Any]] = []
    for message in messages:
        match message:
            case SystemText(text=text):
                system = text.strip() and text
            case UserText(text=text) | MemoryBlock(text=text):
                _append(rendered, "user", [_text(visible(text))])
            case AssistantReply():
                _append(rendered, "assistant", _assistant(message))
            case CallReply():
                _append(rendered, "user", [_result(message, contents)])
    return AnthropicPrompt(system=system, messages=rendered)


def render_tools(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """Return the tool list of a request, in its given order."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.parameters or {"type": "object", "properties": {}},
        }
        for tool in tools
    ]


def _append(rendered: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    if not blocks:
        return
    if rendered and rendered[-1]["role"] == role:
        rendered[-1]["content"].extend(blocks)
    else:
        rendered.append({"role": role, "content": blocks})


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _assistant(reply: AssistantReply) -> list[dict[str, Any]]:
    spoken = [_text(reply.content)] if reply.content.strip() else []
    calls = [
        {
            "type": "tool_use",
            "id": history_id(call.provider_call_id),
            "name": history_name(call.name),
            "input": arguments_object(call.arguments),
        }
        for call in reply.calls
    ]
    return [*spoken, *calls]


def _result(reply: CallReply, contents: Mapping[str, str]) -> dict[str, Any]:
    outcome = reply.outcome
    content = contents[reply.call] if reply.call in contents else content_of(outcome)
    result = {
        "type": "tool_result",
        "tool_use_id": history_id(reply.provider_call_id),
        "content": reply_text(outcome, content),
    }
    return result if isinstance(outcome, ToolSucceeded | ToolAccepted) else {**result, "is_error": True}
