"""A run's facts as a tree: what started each look-up, what was found, injected, and why the rest was not."""

import io
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from temporality.actors.telemetry.decider import project
from temporality.deploy.timeline_tree import render_timeline
from temporality.protocol.fact import PublicFact
from temporality.storage.timeline_view import RunView, chain, timeline_of

from .runs import PROJECT, commits


def facts(run: str = "r1") -> list[PublicFact]:
    return [fact for commit in commits(run) for fact in project(commit, project=PROJECT)]


def shown(view: RunView) -> str:
    text = io.StringIO()
    Console(file=text, width=160, color_system=None).print(render_timeline(view))
    return text.getvalue()


def kinds(found: Sequence[PublicFact]) -> list[str]:
    return [fact.kind for fact in found]


def test_activation_stands_under_the_call_that_caused_it_with_its_verdicts() -> None:
    """A53"""
    (turn,) = [turn for turn in timeline_of(facts()).turns if turn.turn == 1]
    failed, succeeded = turn.calls
    assert (failed.outcome, failed.error_class, failed.message) == (
        "failed",
        "tool_error",
        "no such file: c1.txt",
    )
    assert (succeeded.outcome, succeeded.activations) == ("succeeded", ())
    (activation,) = failed.activations
    assert (activation.trigger, activation.situation_key, activation.result) == (
        "tool.failed",
        "s1",
        "success",
    )
    assert [(hint.knowledge_id, hint.injected, hint.reason) for hint in activation.hints] == [
        ("item-1", True, None),
        ("item-2", False, "budget"),
    ]
    assert turn.block is not None
    assert (turn.block.tokens, turn.block.knowledge_ids) == (40, ("item-1",))


def test_priming_stands_before_the_first_request() -> None:
    """A13a"""
    before = timeline_of(facts()).turns[0]
    assert (before.turn, before.calls) == (0, ())
    assert [(one.trigger, one.result) for one in before.activations] == [("task.priming", "empty")]


def test_skipped_situation_says_why_there_was_no_look_up() -> None:
    """A30, A53"""
    (turn,) = [turn for turn in timeline_of(facts()).turns if turn.turn == 2]
    (skipped,) = turn.calls[0].activations
    assert (skipped.result, skipped.skip_reason) == ("skipped", "duplicate")
    assert [(miss.trigger, miss.reason) for miss in turn.missed] == [("disk.full", "no_answer")]


def test_run_says_who_asked_what_and_how_it_ended() -> None:
    view = timeline_of(facts())
    assert (view.status, view.agent, view.model, view.task) == (
        "finished",
        "helper",
        "gpt-5",
        "Tidy the folder up.",
    )
    assert (view.ending, view.activations, view.injected) == ("It is done.", 2, 1)
    assert (view.input_tokens, view.output_tokens) == (600, 30)
    assert [model.outcome for turn in view.turns for model in turn.models] == ["replied"] * 3


@given(st.randoms())
def test_order_and_repeats_of_facts_change_nothing(random: st.DataObject) -> None:
    shuffled = facts() + facts()[::3]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert timeline_of(shuffled) == timeline_of(facts())


@given(st.data())
def test_any_part_of_a_run_gives_a_tree(data: st.DataObject) -> None:
    part = data.draw(st.lists(st.sampled_from(facts()), min_size=1, unique_by=lambda fact: fact.id))
    view = timeline_of(part)
    assert view.run in shown(view)
    assert msgspec.json.decode(msgspec.json.encode(view), type=RunView) == view


def test_call_without_a_reply_is_pending() -> None:
    view = timeline_of([fact for fact in facts() if fact.number <= 2])
    assert view.status == "running"
    assert [call.outcome for turn in view.turns for call in turn.calls] == ["pending", "pending"]


@pytest.mark.parametrize("start", ["c1", "a1", "h1", "h2"])
def test_whole_chain_is_found_from_any_id_of_it(start: str) -> None:
    """A45"""
    found = chain(facts(), start)
    assert kinds(found) == [
        "tool.called",
        "tool.replied",
        "activation.requested",
        "hint.query",
        "hint.offered",
        "hint.offered",
        "hint.delivery",
        "hint.delivery",
        "activation.settled",
        "block.injected",
    ]


def test_chain_does_not_reach_into_another_call() -> None:
    assert kinds(chain(facts(), "c2")) == ["tool.called", "tool.replied"]
    assert chain(facts(), "unknown") == ()


def test_chains_of_two_calls_that_share_a_block_stay_apart() -> None:
    """A12"""
    shared = [
        msgspec.structs.replace(fact, data={**fact.data, "activation_ids": ["a1", "a2"]})
        if fact.kind == "block.injected"
        else fact
        for fact in facts()
    ]
    assert kinds(chain(shared, "c3")) == [
        "block.injected",
        "tool.called",
        "tool.replied",
        "activation.skipped",
    ]
    assert {fact.data.get("call") for fact in chain(shared, "c1")} == {"c1", None}


def test_timeline_is_of_one_run() -> None:
    for several in ([], facts("r1") + facts("r2")):
        with pytest.raises(ValueError, match="exactly one run"):
            timeline_of(several)


def test_tree_tells_the_story_in_words() -> None:
    lines = [line.strip(" │├└─") for line in shown(timeline_of(facts())).splitlines()]
    for line in (
        "r1 finished · helper · gpt-5 · project demo · 2026-11-30T10:00:01+00:00",
        "task: Tidy the folder up.",
        "fs.read failed · tool_error · 7 ms",
        "no such file: c1.txt",
        "tool.failed success · s1 · 2 found, 1 injected · 40 tokens · 6 ms",
        "item-1 injected · tool+error · score 3.5",
        "item-2 not injected: budget · tool+error · score 1.25",
        "block injected · 40 tokens · item-1",
        "tool.failed skipped · duplicate · s1",
        "no answer of disk.full · no_answer",
        "answer: It is done.",
    ):
        assert line in lines


def test_text_of_a_fact_can_not_style_or_forge_a_line_of_the_tree() -> None:
    """A18"""
    evil = "[red]x[/] \x1b[31m\nanswer: forged\u202e"
    (started, *_) = facts()
    view = timeline_of([msgspec.structs.replace(started, data={"agent": evil, "task": evil})])
    text = shown(view)
    assert "[red]x[/]" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not [line for line in text.splitlines() if line.strip(" │├└─").startswith("answer")]
