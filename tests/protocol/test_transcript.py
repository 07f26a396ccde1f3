"""The transcript is one order, append-only, whatever came when (A1, A2, A28, A38)."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporality.protocol.activation import BlockInjected
from temporality.protocol.agent import AgentSpec, ModelSpec
from temporality.protocol.codec import encode_canonical
from temporality.protocol.identity import RunIdentity
from temporality.protocol.run import (
    ModelCalled,
    ModelReplied,
    RequestedCall,
    RunFact,
    RunStarted,
    ToolCalled,
    ToolReplied,
    TurnClosed,
)
from temporality.protocol.tool import ToolOutcome, ToolSucceeded
from temporality.protocol.transcript import (
    EMPTY_DIGEST,
    INTERRUPTED,
    AssistantReply,
    CallReply,
    MemoryBlock,
    OpenTurn,
    SystemText,
    TranscriptMessage,
    UserText,
    extend_digest,
    flush,
    fold,
)

from .sample_facts import FACTS

MODEL_CALLED = ModelCalled(call="mc", turn=1, attempt=1, model="m", transcript_digest="")


def started(instructions: str = "Be short.") -> RunStarted:
    spec = AgentSpec(name="a", instructions=instructions, model=ModelSpec(name="m"))
    return RunStarted(identity=RunIdentity(run="r"), agent=spec, task="Which branch?")


def requested(*calls: str) -> tuple[RequestedCall, ...]:
    return tuple(
        RequestedCall(call=call, provider_call_id=f"p-{call}", name="git_log", arguments="{}")
        for call in calls
    )


def asked_for(*calls: str) -> ModelReplied:
    return ModelReplied(call="mc", turn=1, content="I look.", calls=requested(*calls))


def replied(call: str, content: str = "") -> ToolReplied:
    return ToolReplied(call=call, turn=1, outcome=ToolSucceeded(content=content or call))


def injected(text: str = "block") -> BlockInjected:
    return BlockInjected(text=text, tokens=1, activation_ids=("a",), knowledge_ids=("k",))


def reply_to(call: str, outcome: ToolOutcome | None = None) -> CallReply:
    return CallReply(call=call, provider_call_id=f"p-{call}", outcome=outcome or ToolSucceeded(content=call))


def folded(facts: Iterable[Any]) -> list[TranscriptMessage]:
    turn = OpenTurn()
    transcript: list[TranscriptMessage] = []
    for fact in facts:
        turn, messages = fold(turn, fact)
        transcript.extend(messages)
    return transcript


def digest_of(messages: Sequence[Any]) -> str:
    return extend_digest(EMPTY_DIGEST, tuple(messages))


# --- order ------------------------------------------------------------------------------------------------


def test_run_begins_with_instructions_priming_block_and_task() -> None:
    """A13a: at a message barrier the block comes before what the person said."""
    assert folded([started(), injected(), MODEL_CALLED]) == [
        SystemText(text="Be short."),
        MemoryBlock(text="block"),
        UserText(text="Which branch?"),
    ]


def test_agent_without_instructions_has_no_empty_first_message() -> None:
    assert folded([started(""), MODEL_CALLED]) == [UserText(text="Which branch?")]


def test_turn_is_all_replies_in_call_order_and_one_block_after_them() -> None:
    """A2: whatever order the replies came in, and whenever the block was decided."""
    expected = [
        AssistantReply(content="I look.", calls=requested("1", "2", "3")),
        reply_to("1"),
        reply_to("2"),
        reply_to("3"),
        MemoryBlock(text="block"),
    ]
    happenings = [replied("1"), replied("2"), replied("3"), injected()]
    for order in itertools.permutations(happenings):
        facts = [started(), MODEL_CALLED, asked_for("1", "2", "3"), *order, MODEL_CALLED]
        assert folded(facts)[2:] == expected


def test_user_messages_of_a_turn_stand_between_its_replies_and_its_block() -> None:
    turn = OpenTurn(
        calls=requested("1"), replies={"1": ToolSucceeded(content="1")}, users=("also", "and"), block="block"
    )
    assert flush(turn) == (
        reply_to("1"),
        UserText(text="also"),
        UserText(text="and"),
        MemoryBlock(text="block"),
    )


def test_nothing_of_an_open_turn_is_in_the_transcript_before_the_next_model_call() -> None:
    """A1: a block that is decided on appears with the request that holds it."""
    before = [started(), MODEL_CALLED, asked_for("1")]
    assert folded([*before, replied("1"), injected()]) == folded(before)


def test_second_attempt_at_a_model_call_adds_nothing() -> None:
    facts = [started(), injected(), MODEL_CALLED]
    assert folded([*facts, MODEL_CALLED]) == folded(facts)


def test_call_that_never_got_a_reply_is_answered_as_interrupted() -> None:
    """So that a history is valid for every provider after any crash; what it did is not known."""
    facts = [started(), MODEL_CALLED, asked_for("1", "2"), replied("2"), MODEL_CALLED]
    assert folded(facts)[3:] == [reply_to("1", INTERRUPTED), reply_to("2")]
    assert (INTERRUPTED.error_class, INTERRUPTED.effect) == ("interrupted", "uncertain")


def test_first_reply_to_a_call_is_the_only_one() -> None:
    facts = [started(), MODEL_CALLED, asked_for("1"), replied("1"), replied("1", "again"), MODEL_CALLED]
    assert folded(facts)[-1] == reply_to("1")


def test_open_turn_says_which_calls_are_missing_in_their_order() -> None:
    turn = OpenTurn(calls=requested("1", "2", "3"), replies={"2": ToolSucceeded()})
    assert [call.call for call in turn.missing()] == ["1", "3"]


def test_fact_that_says_nothing_to_a_model_changes_nothing() -> None:
    speaking = RunStarted | ToolReplied | BlockInjected | ModelCalled | ModelReplied
    turn = OpenTurn(calls=requested("1"), users=("hello",), block="block")
    silent = [fact for fact in FACTS if not isinstance(fact, speaking)]
    assert {ToolCalled, TurnClosed} <= {type(fact) for fact in silent}
    assert all(fold(turn, fact) == (turn, ()) for fact in silent)


# --- append-only, and its digest --------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> list[RunFact]:
    """Draw a run of some turns; replies come in any order, may be missing or repeated; blocks may be."""
    facts: list[RunFact] = [started(draw(st.sampled_from(["", "Be short."])))]
    for turn in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            facts.append(injected(f"block {turn}"))
        facts.append(MODEL_CALLED)
        calls = [f"{turn}-{index}" for index in range(draw(st.integers(1, 3)))]
        facts.append(asked_for(*calls))
        answered = draw(st.lists(st.sampled_from(calls), max_size=4))
        facts.extend(replied(call, draw(st.text(max_size=3))) for call in answered)
    return [*facts, MODEL_CALLED]


@given(histories(), st.data())
def test_transcript_of_a_prefix_is_a_prefix_of_the_transcript_byte_for_byte(
    facts: list[RunFact], data: st.DataObject
) -> None:
    """A38: so a provider's prompt cache stays warm."""
    some = folded(facts[: data.draw(st.integers(0, len(facts)))])
    every = folded(facts)
    assert [encode_canonical(message) for message in some] == [
        encode_canonical(message) for message in every[: len(some)]
    ]


@given(histories())
def test_every_call_is_answered_once_and_contiguously_right_after_it_was_asked(facts: list[RunFact]) -> None:
    transcript = folded(facts)
    for index, message in enumerate(transcript):
        if isinstance(message, AssistantReply):
            count = len(message.calls)
            answers = transcript[index + 1 : index + 1 + count]
            assert [answer.call for answer in answers if isinstance(answer, CallReply)] == [
                call.call for call in message.calls
            ]
    replies = [message.call for message in transcript if isinstance(message, CallReply)]
    assert len(replies) == len(set(replies))


@given(histories())
def test_digest_is_the_same_however_the_messages_were_batched(facts: list[RunFact]) -> None:
    turn, digest = OpenTurn(), EMPTY_DIGEST
    for fact in facts:
        turn, messages = fold(turn, fact)
        digest = extend_digest(digest, messages)
    assert digest == digest_of(folded(facts))


@given(histories())
def test_folding_again_gives_the_same_bytes(facts: list[RunFact]) -> None:
    """A28."""
    assert encode_canonical(folded(facts)) == encode_canonical(folded(facts))


@pytest.mark.parametrize(
    "other",
    [
        [UserText(text="b"), UserText(text="a")],
        [UserText(text="a")],
        [UserText(text="ab")],
        [SystemText(text="a"), UserText(text="b")],
        [UserText(text="a"), MemoryBlock(text="b")],
        [UserText(text="a"), UserText(text="b"), UserText(text="")],
    ],
)
def test_digest_tells_order_kind_and_boundaries_of_messages_apart(other: list[TranscriptMessage]) -> None:
    assert digest_of(other) != digest_of([UserText(text="a"), UserText(text="b")])


def test_digest_of_a_known_transcript_is_the_known_one() -> None:
    """Stored digests are compared with folded ones: another algorithm would end every run under way."""
    transcript = [SystemText(text="s"), UserText(text="ü"), reply_to("1", INTERRUPTED)]
    assert digest_of(transcript) == "b5df10f781a4a144c71dc474f353cf709428a0359f105058c174cc7c30ebfdff"
