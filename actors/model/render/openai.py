"""The transcript as OpenAI chat messages.

Each transcript message becomes one chat message, or none, whatever stands around it. So the rendering of a
longer transcript begins with the bytes of the shorter one (A38), and a caller that keeps the rendered
messages of a run renders only what is new.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from temporality.actors.model.render.words import history_name, reply_text, visible
from temporality.protocol.tool import ToolDefinition, content_of
from temporality.protocol.transcript import (
    AssistantReply,
    CallReply,
    MemoryBlock,
    SystemText,
    TranscriptMessage,
    UserText,
)

ChatMessage = dict[str, Any]
NO_CONTENTS: Mapping[str, str] = {}


def render_openai(
    messages: Iterable[TranscriptMessage], contents: Mapping[str, str] = NO_CONTENTS
) -> list[ChatMessage]:
    """Return the chat messages; `contents` maps a call to its text where that is kept in a blob."""
    rendered = (render_message(message, contents) for message in messages)
    return [message for message in rendered if message is not None]


def render_message(
    message: TranscriptMessage, contents: Mapping[str, str] = NO_CONTENTS
) -> ChatMessage | None:
    """Return one transcript message as a chat message, None if it holds nothing to say."""
    match message:
        case SystemText(text=text):
            return {"role": "system", "content": text} if text.strip() else None
        case UserText(text=text) | MemoryBlock(text=text):
            return {"role": "user", "content": visible(text)}
        case AssistantReply():
            return _assistant(message)
        case CallReply(call=call, provider_call_id=answered, outcome=outcome):
            content = contents[call] if call in contents else content_of(outcome)
            return {"role": "tool", "tool_call_id": answered, "content": reply_text(outcome, content)}


def _assistant(reply: AssistantReply) -> ChatMessage | None:
    spoken = reply.content if reply.content.strip() else None
    if not reply.calls:
        return None if spoken is None else {"role": "assistant", "content": spoken}
    calls = [
        {
            "id": call.provider_call_id,
            "type": "function",
            "function": {"name": history_name(call.name), "arguments": call.arguments.strip() or "{}"},
        }
        for call in reply.calls
    ]
    return {"role": "assistant", "content": spoken, "tool_calls": calls}


def render_tools(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """Return the tool list of a request, in its given order."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters or {"type": "object", "properties": {}},
            },
        }
        for tool in tools
    ]
