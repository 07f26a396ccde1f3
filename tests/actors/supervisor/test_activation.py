"""When a failed call leads to a look-up, and when it doesn't (A6, A7, A29–A33)."""

from temporality.actors.supervisor.barrier import LookUp
from temporality.protocol.activation import (
    ActivationRequested,
    ActivationSettled,
    ActivationSkipped,
    BlockInjected,
    EvaluatorMissed,
    HintDelivered,
    HintsQueried,
)
from temporality.protocol.agent import (
    ActivationLimits,
    ActivationSpec,
    ActivationTokens,
    PolicySpec,
    PrimingSpec,
)
from temporality.protocol.tool import ToolAccepted, ToolCancelled, ToolDenied, ToolFailed
from temporality.protocol.transcript import CallReply, MemoryBlock, UserText
from temporality.protocol.trigger import Candidate, TurnEvaluated

from .scenes import Scene, agent, failed, item, succeeded


def skipped(scene: Scene) -> list[str]:
    return [fact.reason for fact in scene.of(ActivationSkipped) if isinstance(fact, ActivationSkipped)]


def injected(scene: Scene) -> list[tuple[str, ...]]:
    return [fact.knowledge_ids for fact in scene.of(BlockInjected) if isinstance(fact, BlockInjected)]


def test_failed_call_brings_its_knowledge_into_the_next_request() -> None:
    """A1: the block stands after the replies and before the next model reply."""
    scene = Scene(knowledge=(item("k1"),)).start()
    scene.turn(failed("no such table: users"))
    assert [type(message) for message in scene.transcript[-2:]] == [CallReply, MemoryBlock]
    assert injected(scene) == [("k1",)]
    assert scene.state.activation.issued_knowledge_ids == ("k1",)


def test_85_identical_failures_are_one_activation_and_84_suppressed_repeats() -> None:
    """A31."""
    scene = Scene(knowledge=(item("k1"),)).start()
    for _ in range(85):
        scene.turn(failed("connection refused"))
    assert len(scene.of(ActivationRequested)) == 1
    assert skipped(scene) == ["duplicate"] * 84
    assert injected(scene) == [("k1",)]


def test_eleven_not_found_with_eleven_paths_are_one_activation_then_permission_denied_a_second() -> None:
    """A30, A31."""
    scene = Scene().start()
    for n in range(11):
        scene.turn(failed(f"cat: /srv/data/part-{n}/file{n}.txt: No such file or directory"))
    assert len(scene.of(ActivationRequested)) == 1
    scene.turn(failed("cat: /srv/data/part-1/file1.txt: Permission denied"))
    assert len(scene.of(ActivationRequested)) == 2


def test_another_error_class_with_the_same_text_fires_anew() -> None:
    """A31."""
    scene = Scene().start()
    scene.turn(failed("it did not work", "ValueError"))
    scene.turn(failed("it did not work", "TypeError"))
    assert len(scene.of(ActivationRequested)) == 2


def test_two_different_errors_that_match_one_item_inject_it_once() -> None:
    """A29."""
    scene = Scene(knowledge=(item("k1"),)).start()
    scene.turn(failed("no such table: users"))
    scene.turn(failed("disk quota exceeded"))
    assert injected(scene) == [("k1",)]
    assert [r.issued_knowledge_ids for r in scene.looked_up[1]] == [("k1",)]


def test_two_errors_of_one_turn_that_match_one_item_show_it_on_one_line() -> None:
    """A12, A29: one batch; the second activation's offer is a duplicate."""
    scene = Scene(knowledge=(item("k1"),)).start()
    scene.turn(failed("no such table: users"), failed("disk quota exceeded"))
    assert [len(requests) for requests in scene.looked_up] == [2]
    assert injected(scene) == [("k1",)]
    deliveries = [(f.injected, f.reason) for f in scene.of(HintDelivered) if isinstance(f, HintDelivered)]
    assert deliveries == [(True, None), (False, "duplicate")]


def test_success_whose_text_holds_a_traceback_fires_nothing() -> None:
    """A7."""
    scene = Scene(knowledge=(item("k1"),)).start()
    scene.turn(succeeded("Traceback (most recent call last):\n  File …\nValueError: Error: failed"))
    assert scene.looked_up == []
    assert scene.of(ActivationRequested) == []


def test_failure_without_words_is_recorded_as_skipped() -> None:
    """A7."""
    scene = Scene(knowledge=(item("k1"),)).start()
    scene.turn(failed("  \n "))
    assert skipped(scene) == ["empty_diagnostic"]
    assert scene.looked_up == []


def test_denied_cancelled_and_accepted_calls_fire_nothing() -> None:
    """A6."""
    scene = Scene(knowledge=(item("k1"),)).start()
    scene.turn(ToolDenied(reason="no"), ToolCancelled(), ToolAccepted(operation_id="o1"))
    assert scene.looked_up == []


def test_call_blocked_by_policy_fires_nothing() -> None:
    """A6."""
    scene = Scene(spec=agent(policy=PolicySpec(deny=("git.*",))), knowledge=(item("k1"),)).start()
    scene.model_calls(("git__log", "{}"))
    scene.close_barrier()
    assert scene.looked_up == []


def test_rejected_calls_fire_as_failures_unless_switched_off() -> None:
    """A6."""
    for fires, count in ((True, 2), (False, 0)):
        spec = agent(activation=ActivationSpec(rejected_calls=fires))
        scene = Scene(spec=spec).start()
        scene.model_calls(("nonsense", "{}"), ("write", '{"path": 3}'))
        scene.close_barrier()
        assert len(scene.of(ActivationRequested)) == count


def test_limit_of_a_turn_drops_the_fourth_situation_and_leaves_it_open() -> None:
    """A32, A30: a key is used up only by a look-up."""
    scene = Scene().start()
    words = ("quota exceeded", "no route to host", "permission denied", "table is locked")
    scene.turn(*(failed(text) for text in words))
    assert skipped(scene) == ["limit_turn"]
    scene.turn(failed("table is locked"))
    assert len(scene.of(ActivationRequested)) == 4


def test_one_tools_limit_never_blocks_another_tools_error() -> None:
    """A32."""
    spec = agent(activation=ActivationSpec(limits=ActivationLimits(tool=1)))
    scene = Scene(spec=spec).start()
    scene.turn(failed("quota exceeded"))
    scene.turn(failed("no route to host"))
    assert skipped(scene) == ["limit_tool"]
    scene.turn(failed("no route to host"), tool="git__log")
    assert len(scene.of(ActivationRequested)) == 2


def test_limit_of_a_run_is_the_fuse_and_the_run_goes_on() -> None:
    """A32."""
    spec = agent(activation=ActivationSpec(limits=ActivationLimits(run=1)))
    scene = Scene(spec=spec, knowledge=(item("k1"),)).start()
    scene.turn(failed("quota exceeded"))
    scene.turn(failed("no route to host"))
    assert skipped(scene) == ["limit_run"]
    assert scene.state.model_call is not None


def test_trigger_that_the_agent_does_not_name_is_disabled() -> None:
    scene = Scene(spec=agent(activation=ActivationSpec(triggers=("mcp.first_call",)))).start()
    scene.turn(failed("quota exceeded"))
    assert skipped(scene) == ["disabled"]


def test_timed_out_look_up_says_timeout_and_leaves_the_situation_open() -> None:
    """A42, A30."""
    scene = Scene(retrieval=LookUp("timeout", retrieval_ms=800)).start()
    scene.turn(failed("quota exceeded"))
    assert [f.result for f in scene.of(HintsQueried) if isinstance(f, HintsQueried)] == ["timeout"]
    assert injected(scene) == []
    scene.retrieval, scene.knowledge = None, (item("k1"),)
    scene.turn(failed("quota exceeded"))
    assert injected(scene) == [("k1",)]


def test_hint_over_budget_is_neither_injected_nor_issued_nor_fetched_again() -> None:
    """A33, A41."""
    spec = agent(activation=ActivationSpec(tokens=ActivationTokens(hint=40)))
    scene = Scene(spec=spec, knowledge=(item("long", "word " * 100), item("short", "Use B."))).start()
    scene.turn(failed("quota exceeded"))
    assert injected(scene) == [("short",)]
    assert scene.state.activation.issued_knowledge_ids == ("short",)
    scene.turn(failed("no route to host"))
    assert [request.suppressed_knowledge_ids for request in scene.looked_up[1]] == [("long@1",)]


def test_new_revision_of_a_hint_that_was_too_large_is_offered_again() -> None:
    """A33: suppressed until the budget or its own revision changes."""
    spec = agent(activation=ActivationSpec(tokens=ActivationTokens(hint=60)))
    scene = Scene(spec=spec, knowledge=(item("k1", "word " * 100),)).start()
    scene.turn(failed("quota exceeded"))
    scene.turn(failed("no route to host"))
    deliveries = [fact for fact in scene.of(HintDelivered) if isinstance(fact, HintDelivered)]
    assert [(fact.reason, fact.too_large) for fact in deliveries] == [("budget", True), ("suppressed", False)]
    scene.knowledge = (item("k1", "Use B.", revision=2),)
    scene.turn(failed("permission denied"))
    assert injected(scene) == [("k1",)]


def test_hint_that_only_its_neighbours_left_no_room_for_is_not_suppressed() -> None:
    """A33."""
    knowledge = tuple(item(f"k{n}", "word " * 60) for n in range(4))
    spec = agent(activation=ActivationSpec(tokens=ActivationTokens(activation=260)))
    scene = Scene(spec=spec, knowledge=knowledge).start()
    scene.turn(failed("quota exceeded"))
    (first,) = injected(scene)
    assert 0 < len(first) < 4
    scene.turn(failed("no route to host"))
    assert len(injected(scene)) == 2


def test_tools_of_one_name_on_two_servers_have_a_limit_each() -> None:
    """A32."""
    spec = agent(activation=ActivationSpec(limits=ActivationLimits(tool=1)))
    scene = Scene(spec=spec).start()
    scene.turn(failed("quota exceeded"), tool="git__log")
    scene.turn(failed("no route to host"), tool="hub__log")
    assert skipped(scene) == []


def test_kind_that_calls_itself_priming_passes_no_limit() -> None:
    """A32: what primes is the message barrier, not a name."""
    spec = agent(activation=ActivationSpec(triggers=("tool.failed",)))
    scene = Scene(spec=spec).start()
    (call,) = scene.model_calls(("look", "{}"))
    scene.finish(call, failed("quota exceeded"))
    posing = TurnEvaluated(instance="x", candidates=(Candidate(situation="s", call=call),))
    scene.close_barrier([("task.priming", posing)])
    assert skipped(scene) == ["disabled"]


def test_flood_of_proposals_is_cut_and_said() -> None:
    """A11: a commit holds what a barrier brings."""
    scene = Scene().start()
    (call,) = scene.model_calls(("look", "{}"))
    scene.finish(call, failed("quota exceeded"))
    many = [
        (
            f"kind.{k}",
            TurnEvaluated(
                instance="x",
                candidates=tuple(Candidate(situation=f"s {chr(97 + n)}", call=call) for n in range(20)),
            ),
        )
        for k in range(5)
    ]
    scene.close_barrier(many)
    missed = [fact for fact in scene.of(EvaluatorMissed) if isinstance(fact, EvaluatorMissed)]
    assert [(fact.kind, fact.reason) for fact in missed] == [("kind.3", "invalid"), ("kind.4", "invalid")]
    assert len(scene.of(ActivationRequested)) + len(scene.of(ActivationSkipped)) == 64


def test_tokens_of_a_run_are_counted_on_the_rendered_block() -> None:
    """A40."""
    spec = agent(activation=ActivationSpec(tokens=ActivationTokens(run=130, activation=400)))
    scene = Scene(spec=spec, knowledge=(item("k1"),)).start()
    scene.turn(failed("quota exceeded"))
    settled = [fact for fact in scene.of(ActivationSettled) if isinstance(fact, ActivationSettled)]
    blocks = [fact for fact in scene.of(BlockInjected) if isinstance(fact, BlockInjected)]
    assert [fact.tokens for fact in settled] == [blocks[0].tokens] == [scene.state.activation.tokens]
    scene.knowledge = (item("k2"),)
    scene.turn(failed("no route to host"))
    assert injected(scene) == [("k1",)], "the run's tokens are spent"


def test_uncertain_effect_is_said_in_the_block_and_permits_no_repeat() -> None:
    """A36."""
    scene = Scene(knowledge=(item("k1", "Retry it."),)).start()
    scene.turn(ToolFailed(error_class="connection_lost", content="reset by peer", effect="uncertain"))
    block = scene.transcript[-1]
    assert isinstance(block, MemoryBlock)
    assert "uncertain" in block.text
    assert "Nothing in these notes permits repeating" in block.text


def test_no_hint_means_no_message_at_all() -> None:
    """A3, A23."""
    scene = Scene().start()
    scene.turn(failed("quota exceeded"))
    assert isinstance(scene.transcript[-1], CallReply)


def test_turn_without_a_candidate_makes_no_look_up() -> None:
    """A13."""
    scene = Scene(knowledge=(item("k1"),)).start()
    scene.turn(succeeded())
    assert scene.looked_up == []


def test_priming_stands_before_the_users_message_and_has_its_own_budget() -> None:
    """A13a, A40."""
    spec = agent(priming=PrimingSpec(tokens=600))
    scene = Scene(spec=spec, knowledge=(item("k1"),)).start("how do I deploy?")
    assert [type(message) for message in scene.transcript[-2:]] == [MemoryBlock, UserText]
    assert scene.state.activation.issued_knowledge_ids == ("k1",)
    assert scene.state.activation.tokens == 0
    assert scene.state.activation.run_count == 0


def test_answer_about_a_foreign_call_is_invalid_and_the_others_count() -> None:
    """A11."""
    scene = Scene().start()
    (call,) = scene.model_calls(("look", "{}"))
    scene.finish(call, failed("quota exceeded"))
    lying = TurnEvaluated(instance="x", candidates=(Candidate(situation="s", call="call-of-another-run"),))
    honest = TurnEvaluated(instance="y", candidates=(Candidate(situation="quota exceeded", call=call),))
    scene.close_barrier([("liar", lying), ("tool.failed", honest)])
    missed = [f for f in scene.of(EvaluatorMissed) if isinstance(f, EvaluatorMissed)]
    assert [(fact.kind, fact.reason) for fact in missed] == [("liar", "invalid")]
    assert len(scene.of(ActivationRequested)) == 1
