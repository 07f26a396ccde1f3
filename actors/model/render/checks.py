"""The providers' rules for a history, checked before a request is sent: one that breaks them never is.

A provider answers a broken history with a refusal, and since a history only grows, every later request of the
run would be refused too. So each rule is stated here once, the renderings are tested against it over all
histories, and the model caller checks what it is about to send (A1, A2, A39).

OpenAI's rules are checked as a fold, message by message: a run's next request is checked by its new messages
alone. Anthropic's are checked on the whole list, as its messages merge.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from temporality.protocol.errors import ProtocolError

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_ANTHROPIC_ID: Final = re.compile(r"[A-Za-z0-9_-]+\Z")


class RuleBroken(ProtocolError):
    """A history that the provider would refuse: where, and which rule it breaks."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")


@dataclass(frozen=True, slots=True)
class OpenAIHistory:
    """What must be known of the messages so far to judge the next one."""

    count: int = 0
    awaited: tuple[str, ...] = ()
    asked: bool = False
    last_role: str = ""

    def after(self, message: Mapping[str, Any]) -> "OpenAIHistory":
        """Return the history with one more message; raises `RuleBroken` if it can't follow."""
        where, role = f"messages[{self.count}]", message.get("role")
        if self.awaited and role != "tool":
            raise RuleBroken(where, f"{role} message before the reply to call {self.awaited[0]!r}")
        awaited = self.awaited
        match role:
            case "system":
                _require(self.count == 0, where, "a system message can only be the first")
                _require_text(message, where)
            case "user":
                _require_text(message, where)
            case "assistant":
                awaited = _calls(message, where)
            case "tool":
                _require(bool(awaited), where, "a reply to no call")
                answered = message.get("tool_call_id")
                _require(answered == awaited[0], where, f"reply to {answered!r}, expected {awaited[0]!r}")
                _require_text(message, where)
                awaited = awaited[1:]
            case _:
                raise RuleBroken(where, f"unknown role {role!r}")
        return OpenAIHistory(self.count + 1, awaited, self.asked or role == "user", role)

    def require_sendable(self) -> None:
        """Raise `RuleBroken` unless a request may end here."""
        where = f"messages[{self.count}]"
        _require(not self.awaited, where, f"no reply to calls {', '.join(self.awaited)}")
        _require(self.asked, where, "nobody has said anything yet")
        _require(self.last_role != "assistant", where, "nothing follows the model's own reply")


def require_valid_openai(messages: Iterable[Mapping[str, Any]]) -> None:
    """Raise `RuleBroken` unless the whole list may be sent to an OpenAI-compatible server."""
    history = OpenAIHistory()
    for message in messages:
        history = history.after(message)
    history.require_sendable()


def require_valid_anthropic(messages: Sequence[Mapping[str, Any]]) -> None:
    """Raise `RuleBroken` unless the whole list may be sent to Anthropic."""
    awaited: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role, expected = message["role"], "assistant" if index % 2 else "user"
        _require(role == expected, where, f"a {role} message where {expected}'s is due")
        blocks = message["content"]
        _require(bool(blocks), where, "no content")
        if role == "user":
            _require_results(blocks, awaited, where)
            awaited = []
        else:
            awaited = _uses(blocks, where)
    where = f"messages[{len(messages)}]"
    _require(bool(messages), where, "nobody has said anything yet")
    _require(messages[-1]["role"] == "user", where, "nothing follows the model's own reply")


def _require(holds: bool, where: str, what: str) -> None:
    if not holds:
        raise RuleBroken(where, what)


def _require_text(message: Mapping[str, Any], where: str) -> None:
    content = message.get("content")
    _require(isinstance(content, str) and bool(content.strip()), where, "no content")


def _calls(message: Mapping[str, Any], where: str) -> tuple[str, ...]:
    calls = message.get("tool_calls", ())
    if not calls or message.get("content") is not None:
        _require_text(message, where)
    for call in calls:
        _require_name(call["function"]["name"], where)
    return _distinct([call["id"] for call in calls], where)


def _uses(blocks: Sequence[Mapping[str, Any]], where: str) -> list[str]:
    uses = [block for block in blocks if block["type"] == "tool_use"]
    for block in blocks:
        if block["type"] == "text":
            _require(bool(block["text"].strip()), where, "a blank text block")
    for use in uses:
        _require_name(use["name"], where)
        _require(isinstance(use["input"], dict), where, f"the input of {use['id']!r} is no object")
        _require(bool(_ANTHROPIC_ID.match(use["id"])), where, f"call id {use['id']!r}")
    return list(_distinct([use["id"] for use in uses], where))


def _require_results(blocks: Sequence[Mapping[str, Any]], awaited: Sequence[str], where: str) -> None:
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    kinds = [block["type"] for block in blocks]
    _require(results == list(awaited), where, f"results of {results}, expected {list(awaited)}")
    _require(
        kinds == ["tool_result"] * len(results) + ["text"] * (len(kinds) - len(results)),
        where,
        "a result after text",
    )
    for block in blocks:
        text = block["content"] if block["type"] == "tool_result" else block["text"]
        _require(bool(text.strip()), where, f"a blank {block['type']}")


def _require_name(name: str, where: str) -> None:
    _require(bool(_NAME.match(name)), where, f"tool name {name!r}")


def _distinct(ids: Sequence[str], where: str) -> tuple[str, ...]:
    _require(all(ids) and len(set(ids)) == len(ids), where, f"call ids {list(ids)} are not distinct")
    return tuple(ids)
