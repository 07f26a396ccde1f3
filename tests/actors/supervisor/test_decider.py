"""What one message to a run means, and how repeats are recognised by their meaning."""

import pytest

from temporality.actors.supervisor.decider import REPEAT, UnknownRun, decide
from temporality.actors.supervisor.state import ImpossibleFact, RunState, Status, evolve
from temporality.protocol.agent import PolicySpec
from temporality.protocol.codec import decode
from temporality.protocol.identity import RunIdentity
from temporality.protocol.model import ModelCall, ModelCompleted, ModelFailed
from temporality.protocol.run import (
    CancelRun,
    ModelCalled,
    ModelCallFailed,
    RunCancelled,
    RunFailed,
    RunFinished,
    StartRun,
    TimerFired,
    ToolCalled,
    ToolReplied,
)
from temporality.protocol.tool import ToolBlocked, ToolCall, ToolCancelled, ToolFailed, ToolFinished
from temporality.protocol.trigger import Candidate, CandidateProposed

from .scenes import NOW, TABLE, Scene, agent, failed, succeeded


def model_failed(scene: Scene, *, retry_after_s: float | None = None) -> ModelFailed:
    assert scene.state.model_call
    return ModelFailed(
        call=scene.state.model_call,
        error_class="rate_limited",
        message="slow down",
        do="wait",
        retry_after_s=retry_after_s,
    )


def test_message_for_a_run_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnknownRun):
        decide(RunState(), TimerFired(name="x"), cause="m", now=NOW, tools=TABLE)


def test_start_of_a_known_run_is_a_repeat() -> None:
    scene = Scene().start()
    again = StartRun(identity=RunIdentity(run="r1"), agent=scene.spec, task="another")
    assert scene.say(again) == REPEAT.facts


def test_second_reply_to_one_model_call_is_a_repeat() -> None:
    scene = Scene().start()
    call = scene.state.model_call
    assert call
    scene.model_calls(("look", "{}"))
    assert scene.say(ModelCompleted(call=call, transcript_digest="", content="late")) == ()
    assert scene.state.status is Status.AWAITING_TOOLS


def test_second_outcome_of_one_call_is_a_repeat() -> None:
    scene = Scene().start()
    one, _ = scene.model_calls(("look", "{}"), ("look", "{}"))
    scene.finish(one, succeeded("first"))
    assert scene.finish(one, failed("second")) == ()
    assert scene.state.open.replies[one] == succeeded("first")


def test_late_outcome_of_an_earlier_turn_is_a_repeat() -> None:
    """Trap 22: an outcome is checked against the calls of the open turn."""
    scene = Scene().start()
    (old,) = scene.model_calls(("look", "{}"))
    scene.finish(old, succeeded())
    scene.close_barrier()
    scene.model_calls(("look", "{}"))
    assert scene.finish(old, failed("late")) == ()


def test_barrier_opens_at_the_last_outcome_only() -> None:
    """A1: with one reply of two there is no barrier yet."""
    scene = Scene().start()
    one, two = scene.model_calls(("look", "{}"), ("look", "{}"))
    scene.finish(two, succeeded())
    assert scene.state.status is Status.AWAITING_TOOLS
    scene.finish(one, succeeded())
    assert scene.state.status is Status.SETTLED


def test_unknown_tool_is_answered_without_execution_and_names_the_known_ones() -> None:
    scene = Scene().start()
    before = len(scene.outgoing)
    (call,) = scene.model_calls(("gti__log", "{}"))
    outcome = scene.state.open.replies[call]
    assert isinstance(outcome, ToolFailed)
    assert outcome.error_class == "unknown_tool"
    assert "git__log" in outcome.content
    assert len(scene.outgoing) == before
    assert scene.state.status is Status.SETTLED


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"path": 3}', "$.path: 3 is not of type 'string'"),
        ("{}", "'path' is a required property"),
        ('{"path"', "not valid JSON"),
        ("[1]", "must be a JSON object"),
    ],
)
def test_invalid_arguments_are_answered_without_execution_and_name_the_path(
    arguments: str, words: str
) -> None:
    scene = Scene().start()
    (call,) = scene.model_calls(("write", arguments))
    outcome = scene.state.open.replies[call]
    assert isinstance(outcome, ToolFailed)
    assert outcome.error_class == "invalid_arguments"
    assert words in outcome.content


def test_denied_tool_is_blocked_and_not_executed() -> None:
    scene = Scene(spec=agent(policy=PolicySpec(deny=("git.*",)))).start()
    (call,) = scene.model_calls(("git__log", "{}"))
    assert isinstance(scene.state.open.replies[call], ToolBlocked)
    called = scene.of(ToolCalled)
    assert len(called) == 1, "policy and triggers see the call all the same"


def test_tool_call_carries_checked_arguments_and_the_way_to_its_tool() -> None:
    scene = Scene().start()
    (call,) = scene.model_calls(("git__log", '{"n": 1}'))
    request = decode(bytes(scene.outgoing[-1].body), ToolCall)
    assert (request.call, request.tool, request.mcp_server) == (call, "log", "git")
    assert request.arguments == {"n": 1}
    assert request.mcp == scene.spec.tools.mcp["git"]


def test_calls_of_equal_provider_ids_in_two_turns_have_ids_of_their_own() -> None:
    scene = Scene().start()
    (one,) = scene.model_calls(("look", "{}"))
    scene.finish(one, succeeded())
    scene.close_barrier()
    (two,) = scene.model_calls(("look", "{}"))
    assert one != two


def test_model_call_names_the_commit_that_ends_its_transcript() -> None:
    scene = Scene().start()
    request = decode(bytes(scene.outgoing[-1].body), ModelCall)
    assert request.upto == scene.state.number + 1
    assert request.transcript_digest == scene.state.transcript_digest


def test_answer_without_calls_finishes_the_run() -> None:
    scene = Scene().start()
    assert scene.state.model_call
    scene.say(ModelCompleted(call=scene.state.model_call, transcript_digest="", content="42"))
    assert scene.facts[-1] == RunFinished(answer="42", turns=1)
    assert scene.state.status is Status.FINISHED


def test_failure_that_can_be_retried_sets_a_durable_timer_and_the_timer_calls_again() -> None:
    scene = Scene().start()
    digest = scene.state.transcript_digest
    scene.say(model_failed(scene, retry_after_s=60))
    timer = scene.outgoing[-1]
    assert timer.at == "2026-05-01T12:01:00+00:00"
    assert timer.target == "temporality.inbox.r1.timer"
    assert scene.state.status is Status.BACKING_OFF
    name = decode(bytes(timer.body), TimerFired).name
    (called,) = scene.say(TimerFired(name=name))
    assert isinstance(called, ModelCalled)
    assert (called.attempt, called.transcript_digest) == (2, digest)
    assert scene.say(TimerFired(name=name)) == (), "a timer that fires twice counts once"


def test_failure_without_another_try_ends_the_run_with_what_to_do() -> None:
    scene = Scene().start()
    scene.say(model_failed(scene))
    assert isinstance(scene.facts[-2], ModelCallFailed)
    assert scene.facts[-1] == RunFailed(where="model", what="slow down", do="wait")


def test_model_that_keeps_failing_ends_the_run_after_five_tries() -> None:
    scene = Scene().start()
    for attempt in range(1, 6):
        scene.say(model_failed(scene, retry_after_s=1))
        scene.say(TimerFired(name=f"model-1-{attempt}"))
    assert isinstance(scene.facts[-1], RunFailed)
    assert "tried 5 times" in scene.facts[-1].what


def test_cancelling_answers_outstanding_calls_and_ends_the_run() -> None:
    scene = Scene().start()
    (call,) = scene.model_calls(("write", '{"path": "a"}'))
    scene.say(CancelRun(reason="enough"))
    assert scene.state.open.replies[call] == ToolCancelled(effect="uncertain")
    assert scene.facts[-1] == RunCancelled(reason="enough")
    assert scene.finish(call, succeeded()) == (), "what comes after the end changes nothing"


def test_candidate_from_outside_waits_for_the_next_barrier_and_counts_once() -> None:
    """A10."""
    scene = Scene().start()
    proposed = CandidateProposed(instance="i", candidate=Candidate(situation="the plan has changed"))
    scene.say(proposed)
    assert [waiting.kind for waiting in scene.state.waiting] == ["third.party"]
    scene.turn(succeeded())
    assert len(scene.looked_up) == 1
    assert scene.looked_up[0][0].trigger == "third.party"
    assert scene.state.waiting == ()


def test_facts_that_cannot_follow_are_refused() -> None:
    with pytest.raises(ImpossibleFact):
        evolve(RunState(), RunFinished(answer=""))


def test_every_call_is_answered_exactly_once_in_facts() -> None:
    scene = Scene().start()
    calls = scene.model_calls(("look", "{}"), ("nonsense", "{}"), ("git__log", "{}"))
    for call in (*calls, *calls):
        scene.say(ToolFinished(call=call, outcome=succeeded()))
    replied = [fact.call for fact in scene.of(ToolReplied) if isinstance(fact, ToolReplied)]
    assert sorted(replied) == sorted(calls)
