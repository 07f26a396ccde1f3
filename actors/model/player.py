"""Plays a script: finds the rule that a request meets and says what it answers. Pure.

The ids of a reply's calls hold the rule's name and the turn (`call_3_look_0`), so that the next request shows
which rules have replied before: that is all the memory a script has.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from temporality.actors.model.conversation import Conversation
from temporality.actors.model.provider import ModelReply
from temporality.actors.model.script import (
    Failure,
    Number,
    Range,
    Reply,
    Rule,
    Scope,
    Script,
    Test,
    TextTest,
    When,
)
from temporality.actors.model.template import TURN, filled
from temporality.protocol.model import ProviderCall, Usage

SCOPES: tuple[Scope, ...] = ("system", "user", "replies", "last_reply", "block", "blocks", "request")

CHARACTERS_A_TOKEN = 4
"""A scripted model counts tokens by this rule of thumb, so that usage is never simply 0."""


@dataclass(frozen=True, slots=True)
class Played:
    """What a script answers: a reply or a failure, which rule gave it, and after which delay."""

    rule: str
    answer: ModelReply | Failure
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class NoRule:
    """No rule's conditions hold; `message` says what the request was like."""

    message: str


def play(script: Script, conversation: Conversation, failed: Mapping[str, int]) -> Played | NoRule:
    """Return the answer of the first rule that applies.

    `failed` says how often each rule has already failed a request with these messages. Raises `ValueError`
    if a captured text that should be a number isn't one.
    """
    for index, rule in enumerate(script.replies):
        name = script.name_of(index)
        if not _holds(rule.when, conversation) or _used_up(rule, name, conversation, failed):
            continue
        values = _captured(rule, conversation)
        if values is None:
            continue
        answer = rule.fail or _reply(rule.reply or Reply(), name, conversation, values)
        return Played(rule=name, answer=answer, delay_s=rule.delay_s)
    return NoRule(
        f"no rule of the script applies: turn {conversation.turn}, ends with a {conversation.last} message, "
        f"{len(conversation.replies)} new replies, {len(conversation.failed)} of them failures"
    )


def _holds(when: When, conversation: Conversation) -> bool:
    """Tell whether all conditions hold; the cheap ones are asked first."""
    offered = (when.offers,) if isinstance(when.offers, str) else when.offers
    return (
        (when.model is None or when.model == conversation.model)
        and (when.last is None or when.last == conversation.last)
        and (when.new_replies is None or _in_range(len(conversation.replies), when.new_replies))
        and (when.called is None or any(_names(call) == when.called for call in conversation.last_calls))
        and (when.failed is None or _failed_as(when.failed, conversation.failed))
        and all(name in conversation.tools for name in offered)
        and (when.turn is None or _in_range(conversation.turn, when.turn))
        and all(_in_range(conversation.calls_of(tool), number) for tool, number in when.calls.items())
        and all(_passes(getattr(when, scope), conversation, scope) for scope in SCOPES)
    )


def _names(call: Mapping[str, Mapping[str, str]]) -> str:
    return call["function"]["name"]


def _in_range(value: int, number: Number) -> bool:
    if isinstance(number, Range):
        return number.min <= value and (number.max is None or value <= number.max)
    return value == number


def _failed_as(wanted: bool | str, classes: list[str]) -> bool:
    return wanted in classes if isinstance(wanted, str) else wanted == bool(classes)


def _passes(test: Test | None, conversation: Conversation, scope: Scope) -> bool:
    if test is None:
        return True
    text = conversation.part(scope)
    if isinstance(test, bool):
        return test == (text is not None)
    if not isinstance(test, TextTest):
        test = TextTest(contains=test)
    if test.present is not None and test.present != (text is not None):
        return False
    text = text or ""
    return (
        all(part in text for part in _listed(test.contains))
        and not any(part in text for part in _listed(test.not_contains))
        and (test.matches is None or re.search(test.matches, text) is not None)
    )


def _listed(parts: str | tuple[str, ...]) -> tuple[str, ...]:
    return (parts,) if isinstance(parts, str) else parts


def _used_up(rule: Rule, name: str, conversation: Conversation, failed: Mapping[str, int]) -> bool:
    if rule.fail is not None and rule.fail.times is not None:
        return failed.get(name, 0) >= rule.fail.times
    if rule.times is None:
        return False
    replied = {call.split("_")[1] for call in conversation.call_ids() if _rule_of(call) == name}
    return len(replied) >= rule.times


def _rule_of(call_id: str) -> str | None:
    parts = call_id.split("_")
    return parts[2] if len(parts) == 4 and parts[0] == "call" else None


def _captured(rule: Rule, conversation: Conversation) -> dict[str, str] | None:
    values = {TURN: str(conversation.turn)}
    for name, capture in rule.capture.items():
        matches = list(re.finditer(capture.matches, conversation.part(capture.scope) or ""))
        if not matches:
            return None
        last = matches[-1]
        values[name] = (last.group(1) if last.re.groups else last.group(0)) or ""
    return values


def _reply(reply: Reply, rule: str, conversation: Conversation, values: Mapping[str, str]) -> ModelReply:
    content = str(filled(reply.content, values))
    named: list[tuple[str, str]] = []
    for call in reply.tool_calls:
        if call.raw_arguments is not None:
            arguments = str(filled(call.raw_arguments, values))
        else:
            arguments = msgspec.json.encode(filled(call.arguments or {}, values)).decode()
        named += [(str(filled(call.name, values)), arguments)] * call.repeat
    calls = tuple(
        ProviderCall(id=f"call_{conversation.turn}_{rule}_{index}", name=name, arguments=arguments)
        for index, (name, arguments) in enumerate(named)
    )
    characters = len(content) + sum(len(call.name) + len(call.arguments) for call in calls)
    return ModelReply(
        content=content,
        tool_calls=calls,
        finish_reason=reply.finish_reason or ("tool_calls" if calls else "stop"),
        usage=Usage(output_tokens=max(1, characters // CHARACTERS_A_TOKEN)),
    )
