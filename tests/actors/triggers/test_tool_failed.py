"""`tool.failed` fires by the outcome's structure alone, and only where there is something to search by."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporality.actors.triggers.tool_failed import ToolFailed
from temporality.protocol.bounds import TOOL_RESULT_LENGTH_MAX
from temporality.protocol.trigger import SITUATION_CHARACTERS_MAX, Candidate, EmptyDiagnostic
from temporality.protocol.turn import SettledCall, TurnSettled

TEXTS = st.text(st.characters(codec="utf-8"), max_size=200)


def call(
    name: str = "c1",
    *,
    outcome: str = "failed",
    result: str = "no such file",
    error_class: str | None = None,
) -> SettledCall:
    return SettledCall(
        call=name,
        tool="read",
        outcome=outcome,
        argument_digest="d",
        result=result,
        error_class=error_class,
    )


def evaluated(*calls: SettledCall, rejected_calls: bool = True) -> list[Candidate | EmptyDiagnostic]:
    turn = TurnSettled(project="p", run="r", turn=1, calls=calls, rejected_calls=rejected_calls)
    return list(ToolFailed().evaluate(turn))


@pytest.mark.parametrize("error_class", ["tool_error", "timeout", "connection_lost", "FileNotFoundError"])
def test_failed_call_with_a_diagnostic_fires(error_class: str) -> None:
    """A6"""
    assert evaluated(call(error_class=error_class)) == [
        Candidate(call="c1", situation="no such file", error_class=error_class)
    ]


@pytest.mark.parametrize("error_class", ["unknown_tool", "invalid_arguments"])
def test_rejected_call_fires_unless_it_is_switched_off(error_class: str) -> None:
    """A6"""
    rejected = call(error_class=error_class)
    assert len(evaluated(rejected)) == 1
    assert evaluated(rejected, rejected_calls=False) == []


def test_switch_for_rejected_calls_leaves_executed_ones_alone() -> None:
    assert len(evaluated(call(error_class="timeout"), rejected_calls=False)) == 1


@pytest.mark.parametrize("outcome", ["succeeded", "blocked", "denied", "cancelled", "accepted"])
@settings(max_examples=30, deadline=None)
@given(result=TEXTS)
def test_no_other_outcome_fires_whatever_its_text_says(outcome: str, result: str) -> None:
    """A6, A7, A9"""
    texts = (result, f"Error: {result} failed", f"Traceback (most recent call last):\n{result}")
    assert evaluated(*(call(outcome=outcome, result=text) for text in texts)) == []


def test_interrupted_call_does_not_fire_for_its_text_is_ours() -> None:
    assert evaluated(call(error_class="interrupted")) == []


@given(blank=st.text(" \t\r\n\f\v\u00a0\u2003", max_size=20))
def test_failure_that_says_nothing_is_reported_as_empty(blank: str) -> None:
    """A7"""
    assert evaluated(call(result=blank)) == [EmptyDiagnostic(call="c1")]


def test_findings_come_in_the_order_of_the_calls() -> None:
    found = evaluated(
        call("c1", error_class="b"), call("c2", outcome="succeeded"), call("c3", result=""), call("c4")
    )
    assert [(type(one).__name__, one.call) for one in found] == [
        ("Candidate", "c1"),
        ("EmptyDiagnostic", "c3"),
        ("Candidate", "c4"),
    ]


def test_two_equal_failures_of_one_turn_are_two_candidates() -> None:
    """A12: they stay separate; suppressing repeats is the supervisor's."""
    assert len(evaluated(call("c1"), call("c2"))) == 2


def test_longest_result_makes_a_situation_that_its_bound_allows() -> None:
    (candidate,) = evaluated(call(result="x" * TOOL_RESULT_LENGTH_MAX))
    assert isinstance(candidate, Candidate)
    assert len(candidate.situation) <= SITUATION_CHARACTERS_MAX


@given(TEXTS)
def test_same_turn_gives_the_same_findings(result: str) -> None:
    """A28"""
    assert evaluated(call(result=result)) == evaluated(call(result=result))
