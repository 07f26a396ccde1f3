"""An OpenAI-compatible server's reply, read tolerantly: what isn't one is `malformed_reply`, no traceback.

Compatible servers differ: no id or the same id for two calls, arguments as an object, content in parts, an
error in a body with status 200. What can be understood is; the ids of one reply always come out distinct,
since replies are matched to calls by them.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from temporality.actors.model.provider import CallFailed, ModelReply
from temporality.protocol.model import ProviderCall, Usage


class _Function(msgspec.Struct):
    name: str
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Part(msgspec.Struct):
    text: str = ""


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


class ErrorBody(msgspec.Struct):
    """The error object that servers send with a failure, and some with status 200."""

    message: str = ""
    code: str | int | None = None


class _Errored(msgspec.Struct):
    error: ErrorBody | str


def read_reply(body: bytes) -> ModelReply:
    """Return the reply that a response body holds; raises `CallFailed` (malformed_reply, retried once)."""
    try:
        completion = msgspec.json.decode(body, type=_Completion)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CallFailed(
            "malformed_reply",
            f"the answer is no chat completion: {error}; it begins with {_beginning(body)}",
            retry="once",
            do="check that `model.base_url` is the root of an OpenAI-compatible API, such as http://host/v1",
        ) from error
    if not completion.choices:
        raise CallFailed("malformed_reply", "the chat completion has no choices", retry="once")
    choice = completion.choices[0]
    return ModelReply(
        content=_content(choice.message),
        tool_calls=_calls(choice.message.tool_calls or []),
        finish_reason=choice.finish_reason or "",
        usage=_usage(completion.usage or _Usage()),
    )


def read_error(body: bytes) -> ErrorBody | None:
    """Return the error object of a response body, None if it holds none."""
    try:
        error = msgspec.json.decode(body, type=_Errored).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return error if isinstance(error, ErrorBody) else ErrorBody(message=error)


def _content(message: _Message) -> str:
    if isinstance(message.content, list):
        return "".join(part.text for part in message.content)
    return message.content or message.refusal or ""


def _calls(calls: Sequence[_Call]) -> tuple[ProviderCall, ...]:
    given = [call.id or "" for call in calls]
    distinct = all(given) and len(set(given)) == len(given)
    return tuple(
        ProviderCall(
            id=given[index] if distinct else f"call_{index}",
            name=call.function.name,
            arguments=_arguments(call.function.arguments),
        )
        for index, call in enumerate(calls)
    )


def _arguments(arguments: str | dict[str, Any] | None) -> str:
    if isinstance(arguments, dict):
        return msgspec.json.encode(arguments).decode()
    return arguments or ""


def _usage(usage: _Usage) -> Usage:
    details = usage.prompt_tokens_details or _PromptDetails()
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cached_tokens=details.cached_tokens or 0,
    )


def _beginning(body: bytes, bytes_max: int = 80) -> str:
    return repr(body[:bytes_max].decode("utf-8", "replace"))
