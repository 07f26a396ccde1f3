"""Random histories of calls, failures, repeats and crashes: whatever dies, the run is the same (A1, A27–A29).

Each life of a supervisor ends at a random one of its crash points, killed or stopped; answers of the server
get lost and messages come twice. At the end everything is compared with the same history undisturbed.
"""

from collections import Counter
from dataclasses import dataclass

import anyio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from temporality.actors.bus.port import Delivery
from temporality.actors.model.render.anthropic import render_anthropic
from temporality.actors.model.render.checks import require_valid_anthropic, require_valid_openai
from temporality.actors.model.render.openai import render_openai
from temporality.actors.supervisor.commits import StoredCommit
from temporality.actors.supervisor.runs import LoadedRun, restored
from temporality.actors.supervisor.state import Status
from temporality.protocol import subjects
from temporality.protocol.activation import BlockInjected, HintDelivered
from temporality.protocol.codec import decode, encode
from temporality.protocol.identity import derived_id
from temporality.protocol.model import ModelCall
from temporality.protocol.run import Commit, ModelCalled, RequestedCall, RunFact, RunFinished, ToolReplied
from temporality.protocol.streams import RUNS
from temporality.protocol.tool import ToolCall, ToolFailed, ToolFinished, ToolOutcome, ToolSucceeded
from temporality.protocol.transcript import AssistantReply, TranscriptMessage

from .scenes import item
from .system import KillAt, System, model_reply, system

POINTS = ("supervisor.decided", "supervisor.committed", "supervisor.published", "supervisor.acked")
TEXTS = ("no such table: users", "permission denied", "disk quota exceeded", "", "timed out after 3 s")

outcomes = st.one_of(
    st.builds(lambda text: ToolSucceeded(content=text), st.sampled_from(TEXTS)),
    st.builds(lambda text: ToolFailed(error_class="tool_error", content=text), st.sampled_from(TEXTS)),
)
Turn = list[tuple[str, ToolOutcome]]
turns = st.lists(
    st.lists(st.tuples(st.sampled_from(("look", "git__log", "nonsense")), outcomes), min_size=1, max_size=3),
    min_size=1,
    max_size=4,
)


@dataclass(frozen=True)
class Life:
    """How one supervisor's life goes: where it ends and how, what the server's answer and delivery do."""

    point: str
    count: int
    stopped: bool
    ack_lost: bool
    repeated: bool


lives = st.lists(
    st.builds(
        Life,
        point=st.sampled_from(POINTS),
        count=st.integers(1, 4),
        stopped=st.booleans(),
        ack_lost=st.booleans(),
        repeated=st.booleans(),
    ),
    max_size=4,
)


@dataclass
class Played:
    """What became of a history."""

    facts: list[RunFact]
    transcript: list[TranscriptMessage]
    folded: LoadedRun
    saved: LoadedRun
    dead: list[tuple[str, str]]
    calls: Counter[str]


async def model_peer(on: System, history: list[Turn], repeats: int) -> None:
    """Play the model: each turn's calls, then an answer; each report comes more than once."""
    async for delivery in on.calls_of(ModelCall):
        call = await _taken(on, delivery, ModelCall)
        turn = history[call.turn - 1] if call.turn <= len(history) else []
        asked = [(tool, f'{{"n": {call.turn}}}') for tool, _ in turn]
        report = model_reply(call, *asked, content="" if turn else "done")
        for _ in range(repeats):
            await on.publish(call.run, "reply", report)


async def tool_peer(on: System, history: list[Turn], repeats: int) -> None:
    """Play the executors: each call has the outcome of its place in the history."""
    async for delivery in on.calls_of(ToolCall):
        call = await _taken(on, delivery, ToolCall)
        (outcome,) = [
            outcome
            for index, (_, outcome) in enumerate(history[call.turn - 1])
            if call.call == derived_id("call", call.run, call.turn, index)
        ]
        for _ in range(repeats):
            await on.publish(call.run, "outcome", ToolFinished(call=call.call, outcome=outcome))


async def _taken(on: System, delivery: Delivery, kind: type) -> ModelCall | ToolCall:
    await delivery.ack()
    on.taken.append(delivery)
    return decode(delivery.payload, kind)


async def play(history: list[Turn], ends: list[Life], repeats: int) -> Played:
    """Play a history through these lives, and a last one in which nothing goes wrong."""
    async with system() as on:
        await on.triggers()
        await on.retriever(item("k1"), item("k2", "Another way."))
        on.tasks.start_soon(model_peer, on, history, repeats)
        on.tasks.start_soon(tool_peer, on, history, repeats)
        await on.start()
        finished = anyio.Event()
        on.tasks.start_soon(_watch, on, finished)
        for life in ends:
            killer = KillAt(life.point, life.count)
            supervisor = await on.supervisor(kill_at=killer)
            if life.stopped:
                killer.kill = supervisor.scope.cancel
            if life.ack_lost:
                on.faults.lose_next_ack("temporality.run.*.commit")
            if life.repeated:
                on.faults.repeat_next_delivery("temporality.inbox.*.r1.*")
            await on.soon(_first(supervisor.ended, finished), within_s=120.0)
            if finished.is_set():
                break
        last = await on.supervisor()
        await on.soon(finished.wait(), within_s=120.0)
        await on.served()
        await last.stop()
        snapshot = await on.snapshots.load("r1")
        assert snapshot is not None
        return Played(
            facts=await on.facts(),
            transcript=await on.transcript(),
            folded=await _folded(on),
            saved=restored(snapshot),
            dead=await on.dead_letters(),
            calls=Counter(decode(d.payload, ModelCall | ToolCall).call for d in on.taken),
        )


async def _watch(on: System, finished: anyio.Event) -> None:
    async with on.bus.follow(RUNS, subjects.commit("r1")) as commits:
        async for stored in commits:
            if any(isinstance(fact, RunFinished) for fact in decode(stored.payload, Commit).facts):
                finished.set()


async def _first(*events: anyio.Event) -> None:
    """Wait for one of them."""
    async with anyio.create_task_group() as tasks:

        async def one(event: anyio.Event) -> None:
            await event.wait()
            tasks.cancel_scope.cancel()

        for event in events:
            tasks.start_soon(one, event)


async def _folded(on: System) -> LoadedRun:
    loaded = LoadedRun("r1")
    for stored in await on.commits():
        loaded.advance(StoredCommit(stored.sequence, decode(stored.payload, Commit)))
    return loaded


@given(turns, lives, st.integers(1, 3))
@example(
    [[("look", ToolFailed(error_class="tool_error", content="permission denied"))]],
    [Life(point, 2, False, True, True) for point in POINTS],
    3,
)
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
async def test_whatever_dies_and_repeats_the_run_is_the_one_undisturbed(
    history: list[Turn], ends: list[Life], repeats: int
) -> None:
    played, calm = await play(history, ends, repeats), await play(history, [], 1)
    assert encode(played.transcript) == encode(calm.transcript)
    assert played.folded.state.status is Status.FINISHED
    assert encode(played.saved.state) == encode(played.folded.state), "the fold is the live state"
    assert played.dead == []
    _require_valid(played.transcript)
    _require_one_block_a_barrier_and_issued_is_injected(played)
    _require_each_call_answered_once(played)


def _require_valid(transcript: list[TranscriptMessage]) -> None:
    """A39: every request that was made."""
    requests = [end for end, message in enumerate(transcript) if isinstance(message, AssistantReply)]
    for end in requests:
        require_valid_openai(render_openai(transcript[:end]))
        require_valid_anthropic(render_anthropic(transcript[:end]).messages)


def _require_one_block_a_barrier_and_issued_is_injected(played: Played) -> None:
    """A1, A26, A29."""
    since_request, injected = 0, list[str]()
    for fact in played.facts:
        if isinstance(fact, BlockInjected):
            since_request += 1
            injected.extend(fact.knowledge_ids)
        if isinstance(fact, ModelCalled):
            assert since_request <= 1
            since_request = 0
    delivered = [f.knowledge_id for f in played.facts if isinstance(f, HintDelivered) and f.injected]
    assert tuple(injected) == tuple(delivered) == played.folded.state.activation.issued_knowledge_ids
    assert len(set(injected)) == len(injected)


def _require_each_call_answered_once(played: Played) -> None:
    """Of the calls that the model made each has one reply, and no call was sent out twice."""
    asked: list[RequestedCall] = [
        call for message in played.transcript for call in getattr(message, "calls", ())
    ]
    replied = Counter(fact.call for fact in played.facts if isinstance(fact, ToolReplied))
    assert replied == Counter(call.call for call in asked)
    assert set(played.calls.values()) == {1}
