"""Properties over random histories of calls, failures, repeats and crashes (A1, A2, A28, A38, A39)."""

import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temporality.actors.model.render.anthropic import render_anthropic
from temporality.actors.model.render.checks import require_valid_anthropic, require_valid_openai
from temporality.actors.model.render.openai import render_openai
from temporality.actors.supervisor.runs import LoadedRun, restored
from temporality.actors.supervisor.state import RunState, Status, evolve
from temporality.protocol.activation import BlockInjected, HintDelivered
from temporality.protocol.codec import encode
from temporality.protocol.run import ModelCalled
from temporality.protocol.tool import ToolFailed, ToolOutcome, ToolSucceeded
from temporality.protocol.transcript import AssistantReply, CallReply, MemoryBlock, TranscriptMessage

from .scenes import Scene, item

TEXTS = ("no such table: users", "permission denied", "disk quota exceeded", "", "timed out after 3 s")

outcomes = st.one_of(
    st.builds(lambda text: ToolSucceeded(content=text), st.sampled_from(TEXTS)),
    st.builds(
        lambda text, kind: ToolFailed(error_class=kind, content=text),
        st.sampled_from(TEXTS),
        st.sampled_from(("tool_error", "timeout", "ValueError")),
    ),
)
turns = st.lists(
    st.lists(st.tuples(st.sampled_from(("look", "git__log", "nonsense")), outcomes), min_size=1, max_size=5),
    max_size=6,
)


def play(history: list[list[tuple[str, ToolOutcome]]], order: random.Random) -> Scene:
    """Play a history, with replies in a random order, each delivered up to three times."""
    scene = Scene(knowledge=(item("k1"), item("k2", "Another way."))).start()
    for number, turn in enumerate(history):
        calls = scene.model_calls(*((tool, f'{{"n": {number}}}') for tool, _ in turn))
        arrivals = [pair for pair in zip(calls, turn, strict=True) for _ in range(order.randint(1, 3))]
        order.shuffle(arrivals)
        given_outcomes: dict[str, ToolOutcome] = {}
        for call, (_, outcome) in arrivals:
            given_outcomes.setdefault(call, outcome)
            scene.finish(call, outcome)
        scene.close_barrier()
    return scene


@given(turns, st.integers(0, 99))
def test_both_renderings_are_valid_at_every_prefix(
    history: list[list[tuple[str, ToolOutcome]]], seed: int
) -> None:
    scene = play(history, random.Random(seed))
    requests = [end for end, message in enumerate(scene.transcript) if isinstance(message, AssistantReply)]
    for end in (*requests, len(scene.transcript)):
        require_valid_openai(render_openai(scene.transcript[:end]))
        require_valid_anthropic(render_anthropic(scene.transcript[:end]).messages)


@given(turns, st.integers(0, 99), st.integers(0, 99))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_order_of_arrival_and_repeats_change_no_byte_of_state_or_transcript(
    history: list[list[tuple[str, ToolOutcome]]], one: int, other: int
) -> None:
    """A28: parallel replies in every order, the same block and the same state."""
    left, right = play(history, random.Random(one)), play(history, random.Random(other))
    assert encode(left.state) == encode(right.state)
    assert encode(left.transcript) == encode(right.transcript)


@given(turns, st.integers(0, 99))
def test_fold_of_all_facts_equals_the_live_state(
    history: list[list[tuple[str, ToolOutcome]]], seed: int
) -> None:
    scene = play(history, random.Random(seed))
    state = RunState()
    for fact in scene.facts:
        state = evolve(state, fact)
    assert encode(state) == encode(scene.state)


@given(turns, st.integers(0, 99))
def test_snapshot_restores_the_state_byte_for_byte(
    history: list[list[tuple[str, ToolOutcome]]], seed: int
) -> None:
    """A27."""
    scene = play(history, random.Random(seed))
    loaded = LoadedRun("r1", state=scene.state, sequence=7)
    assert encode(restored(loaded.snapshot()).state) == encode(scene.state)


@given(turns, st.integers(0, 99))
def test_at_most_one_block_a_barrier_and_issued_ids_are_the_injected_ones(
    history: list[list[tuple[str, ToolOutcome]]], seed: int
) -> None:
    """A1, A26, A29."""
    scene = play(history, random.Random(seed))
    since_request = 0
    injected: list[str] = []
    for fact in scene.facts:
        if isinstance(fact, BlockInjected):
            since_request += 1
            injected.extend(fact.knowledge_ids)
        if isinstance(fact, ModelCalled):
            assert since_request <= 1
            since_request = 0
    delivered = [f.knowledge_id for f in scene.facts if isinstance(f, HintDelivered) and f.injected]
    assert tuple(injected) == tuple(delivered) == scene.state.activation.issued_knowledge_ids
    assert len(set(injected)) == len(injected)


@given(turns, st.integers(0, 99))
def test_replies_stand_in_call_order_and_the_block_after_the_last_of_them(
    history: list[list[tuple[str, ToolOutcome]]], seed: int
) -> None:
    """A1, A2."""
    scene = play(history, random.Random(seed))
    for before, message in zip(scene.transcript, scene.transcript[1:], strict=False):
        if isinstance(message, MemoryBlock):
            assert isinstance(before, CallReply)
    assert [m.call for m in scene.transcript if isinstance(m, CallReply)] == [
        call.call for m in scene.transcript for call in _calls(m)
    ]
    assert scene.state.status is Status.AWAITING_MODEL


def _calls(message: TranscriptMessage) -> tuple[Any, ...]:
    return getattr(message, "calls", ())
