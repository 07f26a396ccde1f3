"""Rendering keeps the providers' rules and its own bytes over all histories (A1, A2, A38, A39)."""

from typing import Any

import pytest
from hypothesis import given

from temporality.actors.model.render.anthropic import render_anthropic
from temporality.actors.model.render.checks import (
    RuleBroken,
    require_valid_anthropic,
    require_valid_openai,
)
from temporality.actors.model.render.openai import render_message, render_openai
from temporality.actors.model.render.words import failed_class, reply_text
from temporality.protocol.codec import encode
from temporality.protocol.run import RequestedCall, RunFact
from temporality.protocol.tool import (
    ToolAccepted,
    ToolBlocked,
    ToolCancelled,
    ToolDenied,
    ToolFailed,
    ToolOutcome,
    ToolSucceeded,
)
from temporality.protocol.transcript import AssistantReply, CallReply, MemoryBlock, SystemText, UserText

from .histories import fold_all, histories, requests_of
from .servers import assistant, tool, user


@given(histories())
def test_every_request_of_every_history_keeps_openai_rules(facts: list[RunFact]) -> None:
    """A39, A2."""
    for messages in requests_of(facts):
        require_valid_openai(render_openai(messages))


@given(histories())
def test_every_request_of_every_history_keeps_anthropic_rules(facts: list[RunFact]) -> None:
    """A39, A2."""
    for messages in requests_of(facts):
        require_valid_anthropic(render_anthropic(messages).messages)


@given(histories())
def test_replies_follow_their_calls_in_the_order_of_the_calls_whatever_order_they_came_in(
    facts: list[RunFact],
) -> None:
    """A1: read from the rendered messages alone, without the checks under test elsewhere."""
    rendered = render_openai(fold_all(facts))
    for index, message in enumerate(rendered):
        asked = [call["id"] for call in message.get("tool_calls", ())]
        following = rendered[index + 1 : index + 1 + len(asked)]
        assert [reply.get("tool_call_id") for reply in following] == asked
    replies = [message for message in rendered if message["role"] == "tool"]
    assert len(replies) == sum(len(message.get("tool_calls", ())) for message in rendered)


@given(histories())
def test_block_stands_after_the_last_reply_and_before_the_next_model_reply(facts: list[RunFact]) -> None:
    """A1, A39: and the priming block before the user's text."""
    rendered = render_openai(fold_all(facts))
    for index, message in enumerate(rendered):
        if not str(message["content"]).startswith("<temporality.memory>\n"):
            continue
        before = rendered[index - 1]["role"] if index else "system"
        after = rendered[index + 1]["role"] if index + 1 < len(rendered) else "assistant"
        assert (before, after) in {("tool", "assistant"), ("system", "user")}


@given(histories())
def test_earlier_messages_keep_their_bytes_in_every_later_openai_request(facts: list[RunFact]) -> None:
    """A38."""
    earlier: list[bytes] = []
    for messages in requests_of(facts):
        rendered = [encode(message) for message in render_openai(messages)]
        assert rendered[: len(earlier)] == earlier
        earlier = rendered


@given(histories())
def test_earlier_blocks_keep_their_bytes_in_every_later_anthropic_request(facts: list[RunFact]) -> None:
    """A38: content blocks are what Anthropic's cache compares."""
    earlier: list[bytes] = []
    for messages in requests_of(facts):
        prompt = render_anthropic(messages)
        blocks = [encode((m["role"], b)) for m in prompt.messages for b in m["content"]]
        assert blocks[: len(earlier)] == earlier
        earlier = blocks


@given(histories())
def test_rendering_message_by_message_is_rendering_the_whole(facts: list[RunFact]) -> None:
    """The model caller's cache depends on it."""
    messages = fold_all(facts)
    one_by_one = [rendered for message in messages if (rendered := render_message(message)) is not None]
    assert one_by_one == render_openai(messages)


def call(index: int, arguments: str = "{}", name: str = "look") -> RequestedCall:
    return RequestedCall(call=f"c-{index}", provider_call_id=f"p{index}", name=name, arguments=arguments)


def reply(index: int, outcome: ToolOutcome) -> CallReply:
    return CallReply(call=f"c-{index}", provider_call_id=f"p{index}", outcome=outcome)


TURN = (
    SystemText(text="be brief"),
    MemoryBlock(text="<temporality.memory>prime"),
    UserText(text="go"),
    AssistantReply(content="on it", calls=(call(1), call(2, "{oops", "bad name!"))),
    reply(1, ToolFailed(error_class="timeout", content="took too long", effect="uncertain")),
    reply(2, ToolSucceeded(content="fine")),
    MemoryBlock(text="<temporality.memory>note"),
)


def test_openai_turn_with_a_block() -> None:
    """A39, to the letter."""
    uncertain = "Error (timeout):\ntook too long\nIt is not known whether the call took effect."
    assert render_openai(TURN) == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "<temporality.memory>prime"},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "on it",
            "tool_calls": [
                {"id": "p1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {"id": "p2", "type": "function", "function": {"name": "bad_name_", "arguments": "{oops"}},
            ],
        },
        {"role": "tool", "tool_call_id": "p1", "content": uncertain},
        {"role": "tool", "tool_call_id": "p2", "content": "fine"},
        {"role": "user", "content": "<temporality.memory>note"},
    ]


def test_anthropic_turn_with_a_block_is_results_then_text_in_one_user_message() -> None:
    """A39, to the letter."""
    prompt = render_anthropic(TURN)
    uncertain = "Error (timeout):\ntook too long\nIt is not known whether the call took effect."
    assert prompt.system == "be brief"
    assert prompt.messages == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<temporality.memory>prime"},
                {"type": "text", "text": "go"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "on it"},
                {"type": "tool_use", "id": "p1", "name": "look", "input": {}},
                {
                    "type": "tool_use",
                    "id": "p2",
                    "name": "bad_name_",
                    "input": {"invalid_arguments": "{oops"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "p1", "content": uncertain, "is_error": True},
                {"type": "tool_result", "tool_use_id": "p2", "content": "fine"},
                {"type": "text", "text": "<temporality.memory>note"},
            ],
        },
    ]


@pytest.mark.parametrize(("written", "sent"), [("", "{}"), (" \n", "{}"), ("{oops", "{oops"), ("[1]", "[1]")])
def test_arguments_go_back_as_the_model_wrote_them_unless_it_wrote_none(written: str, sent: str) -> None:
    """Compatible servers parse them, and an empty string is no JSON."""
    (rendered,) = render_openai([AssistantReply(calls=(call(1, written),))])
    assert rendered["tool_calls"][0]["function"]["arguments"] == sent


def test_content_kept_in_a_blob_is_read_from_the_contents_given() -> None:
    rendered = render_openai([reply(1, ToolSucceeded())], {"c-1": "long"})
    assert rendered[0]["content"] == "long"


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (ToolSucceeded(content="Error: only words"), "Error: only words"),
        (ToolSucceeded(content=" \n"), "The call succeeded and returned no output."),
        (ToolFailed(error_class="tool_error", content="a\n  b"), "Error (tool_error):\na\n  b"),
        (
            ToolFailed(error_class="KeyError", effect="done"),
            "Error (KeyError):\nThe call failed without a message.\nThe call took effect all the same.",
        ),
        (ToolBlocked(reason="deny list"), "The call was not executed: a policy forbids it (deny list)."),
        (ToolDenied(reason=""), "The call was not executed: it was not approved."),
        (ToolCancelled(), "The call was cancelled."),
        (
            ToolCancelled(effect="uncertain"),
            "The call was cancelled.\nIt is not known whether the call took effect.",
        ),
        (
            ToolAccepted(operation_id="op-7"),
            "The work goes on in the background as operation op-7; its result comes later.",
        ),
    ],
)
def test_what_a_model_reads_of_an_outcome(outcome: ToolOutcome, text: str) -> None:
    assert reply_text(outcome, getattr(outcome, "content", "")) == text


def test_only_a_rendered_failure_is_read_as_one() -> None:
    assert failed_class("Error (timeout):\nx") == "timeout"
    assert failed_class("Error: timeout") is None


VALID = [user("go"), assistant(("p1", "look"), ("p2", "look")), tool("p1", "a"), tool("p2", "b")]


@pytest.mark.parametrize(
    ("messages", "where"),
    [
        ([*VALID[:3], user("hint"), VALID[3]], "messages[3]: user message before the reply to call 'p2'"),
        ([VALID[0], VALID[1], user("x"), *VALID[2:]], "messages[2]: user message before"),
        ([*VALID[:2], VALID[3], VALID[2]], "messages[2]: reply to 'p2', expected 'p1'"),
        (VALID[:3], "messages[3]: no reply to calls p2"),
        ([*VALID, tool("p1", "again")], "messages[4]: a reply to no call"),
        ([user("go"), assistant(("p1", "a"), ("p1", "b"))], "not distinct"),
        ([user("go"), assistant(("p1", "a b"))], "tool name 'a b'"),
        ([user(" ")], "messages[0]: no content"),
        ([*VALID, assistant(content="done")], "nothing follows"),
        ([user("go"), {"role": "system", "content": "late"}], "only be the first"),
        ([], "nobody has said anything"),
    ],
)
def test_history_that_breaks_a_rule_is_refused_with_its_place(
    messages: list[dict[str, Any]], where: str
) -> None:
    """A2: nothing between a call and its replies, nor between two replies."""
    require_valid_openai(VALID)
    with pytest.raises(RuleBroken) as raised:
        require_valid_openai(messages)
    assert where in str(raised.value)


@pytest.mark.parametrize(
    ("blocks", "what"),
    [
        ([("text", "x"), ("p1", "a"), ("p2", "b")], "a result after text"),
        ([("p1", "a")], "expected ['p1', 'p2']"),
        ([("p1", "a"), ("p2", " ")], "a blank tool_result"),
    ],
)
def test_anthropic_history_that_breaks_a_rule_is_refused(blocks: list[tuple[str, str]], what: str) -> None:
    messages = render_anthropic(TURN).messages
    content = [
        {"type": "text", "text": text}
        if kind == "text"
        else {"type": "tool_result", "tool_use_id": kind, "content": text}
        for kind, text in blocks
    ]
    with pytest.raises(RuleBroken) as raised:
        require_valid_anthropic([*messages[:2], {"role": "user", "content": content}])
    assert what in str(raised.value)
