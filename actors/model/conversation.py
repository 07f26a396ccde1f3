"""What a scripted model sees of a request: its parts by name, read from the end, and only if a rule asks.

| part | text |
|---|---|
| system | the instructions |
| user | what the person said last (blocks apart) |
| replies | the tool replies since the model's last reply, joined by newlines |
| last_reply | the last of them |
| block | the memory block since the model's last reply |
| blocks | all memory blocks so far |
| request | everything in the messages, arguments of calls included |
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from temporality.actors.model.render.words import failed_class
from temporality.actors.model.script import Scope
from temporality.protocol.block import OPENING

Chat = Mapping[str, Any]


class Conversation:
    """One request as a script sees it; the messages must be OpenAI chat messages."""

    def __init__(
        self, messages: Sequence[Chat], *, model: str = "", tools: Callable[[], Sequence[str]] = tuple
    ) -> None:
        self.messages = messages
        self.model = model
        self._tools = tools

    @cached_property
    def tools(self) -> Sequence[str]:
        """The names of the tools that the request offers."""
        return self._tools()

    @cached_property
    def new(self) -> Sequence[Chat]:
        """What follows the model's last reply (everything, if it has given none)."""
        start = len(self.messages)
        while start and self.messages[start - 1].get("role") != "assistant":
            start -= 1
        return self.messages[start:]

    @cached_property
    def last_calls(self) -> Sequence[Chat]:
        """The calls of the model's last reply."""
        index = len(self.messages) - len(self.new) - 1
        calls: Sequence[Chat] | None = self.messages[index].get("tool_calls") if index >= 0 else None
        return calls or ()

    @cached_property
    def turn(self) -> int:
        """Number of the reply that is due, from 1."""
        return 1 + sum(1 for message in self.messages if message.get("role") == "assistant")

    @cached_property
    def replies(self) -> list[str]:
        """The texts of the new tool replies."""
        return [text_of(message) for message in self.new if message.get("role") == "tool"]

    @cached_property
    def failed(self) -> list[str]:
        """The error classes of the new tool replies that are failures."""
        return [found for found in map(failed_class, self.replies) if found is not None]

    @property
    def last(self) -> str:
        """What the request ends with: user, reply or block."""
        message = self.messages[-1] if self.messages else {}
        if message.get("role") == "tool":
            return "reply"
        return "block" if is_block(message) else "user"

    def calls_of(self, tool: str) -> int:
        """Return how often the model has called a tool so far."""
        return sum(1 for call in self._calls() if call["function"]["name"] == tool)

    def call_ids(self) -> list[str]:
        """Return the ids of all calls so far."""
        return [call["id"] for call in self._calls()]

    def part(self, scope: Scope) -> str | None:
        """Return the text of a part of the request, None if there is no such part."""
        match scope:
            case "system":
                found = [text_of(message) for message in self.messages[:1] if message.get("role") == "system"]
            case "user":
                said = (message for message in reversed(self.messages) if is_user(message))
                found = [text_of(message) for message in said][:1]
            case "replies":
                found = self.replies
            case "last_reply":
                found = self.replies[-1:]
            case "block":
                found = [text_of(message) for message in self.new if is_block(message)]
            case "blocks":
                found = [text_of(message) for message in self.messages if is_block(message)]
            case "request":
                found = [*map(text_of, self.messages), *map(_arguments, self._calls())]
        return "\n".join(found) if found else None

    def _calls(self) -> list[Chat]:
        return [call for message in self.messages for call in message.get("tool_calls") or ()]


def text_of(message: Chat) -> str:
    """Return the text of a chat message; content in parts is joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def is_block(message: Chat) -> bool:
    """Tell whether a chat message is a memory block."""
    return message.get("role") == "user" and text_of(message).startswith(OPENING)


def is_user(message: Chat) -> bool:
    """Tell whether a chat message is what a person said."""
    return message.get("role") == "user" and not is_block(message)


def _arguments(call: Chat) -> str:
    return str(call["function"].get("arguments", ""))


def tool_names(tools: Sequence[Chat]) -> Sequence[str]:
    """Return the names in a request's tool list."""
    return tuple(str(tool["function"]["name"]) for tool in tools)
