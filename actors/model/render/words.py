"""What a model reads of an outcome: one wording for every provider.

A success is its content, and a failure keeps its own words verbatim, since they are what a model (and later a
look-up) goes by. Only the verdict is added, on a line of its own and always: OpenAI's format has no flag for
errors, and whether a failure's text already sounds like one is nothing that code should guess (A7). An
outcome without words of its own becomes one plain sentence that says what happened and nothing more: no
advice, no order (A5).
"""

import re
from typing import Final

import msgspec

from temporality.protocol.identity import derived_id
from temporality.protocol.tool import (
    EffectKnown,
    ToolAccepted,
    ToolBlocked,
    ToolCancelled,
    ToolDenied,
    ToolFailed,
    ToolOutcome,
    ToolSucceeded,
)

BLANK: Final = "(blank)"
"""Stands for a person's message without a visible character: providers refuse blank text."""

NO_OUTPUT: Final = "The call succeeded and returned no output."

TOOL_NAME_LENGTH_MAX: Final = 64
"""Longest tool name that providers take back in a history."""

EFFECTS: Final[dict[EffectKnown, str]] = {
    "none": "",
    "done": "The call took effect all the same.",
    "uncertain": "It is not known whether the call took effect.",
}
_FAILED: Final = re.compile(r"Error \(([^)\n]*)\)")
_OUTSIDE_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_PROVIDER_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def reply_text(outcome: ToolOutcome, content: str) -> str:
    """Return what the model reads of an outcome whose text, inline or from its blob, is `content`."""
    match outcome:
        case ToolSucceeded():
            return content if content.strip() else NO_OUTPUT
        case ToolFailed(error_class=error_class, effect=effect):
            own = content if content.strip() else "The call failed without a message."
            return _lines(f"Error ({_one_line(error_class)}):", own, EFFECTS[effect])
        case ToolBlocked(reason=reason):
            return _because("The call was not executed: a policy forbids it", reason)
        case ToolDenied(reason=reason):
            return _because("The call was not executed: it was not approved", reason)
        case ToolCancelled(effect=effect):
            return _lines("The call was cancelled.", EFFECTS[effect])
        case ToolAccepted(operation_id=operation):
            return f"The work goes on in the background as operation {operation}; its result comes later."


def failed_class(text: str) -> str | None:
    """Return the error class of a rendered failure, None if `text` isn't one (scripted models read this)."""
    match = _FAILED.match(text)
    return match.group(1) if match else None


def visible(text: str) -> str:
    """Return `text`, or a placeholder if it holds nothing that a provider would accept."""
    return text if text.strip() else BLANK


def history_name(name: str) -> str:
    """Return a tool's name as a provider takes it back.

    A model may invent a name that its own provider then refuses in the history; the supervisor has answered
    that call as `unknown_tool` under the invented name, so nothing depends on its spelling here.
    """
    return _OUTSIDE_A_NAME.sub("_", name)[:TOOL_NAME_LENGTH_MAX] or "unnamed"


def history_id(provider_call_id: str) -> str:
    """Return a call's id in the alphabet that every provider takes; the same id gives the same one."""
    return provider_call_id if _PROVIDER_ID.match(provider_call_id) else derived_id("call", provider_call_id)


def arguments_object(arguments: str) -> dict[str, object]:
    """Return raw arguments as the object that some providers demand; what isn't one is quoted in one."""
    if not arguments.strip():
        return {}
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return {"invalid_arguments": arguments}
    return value if isinstance(value, dict) else {"invalid_arguments": arguments}


def _because(sentence: str, reason: str) -> str:
    return f"{sentence} ({_one_line(reason)})." if reason.strip() else f"{sentence}."


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)
