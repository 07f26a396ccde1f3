"""A run as a supervisor commits it: primed, one failing call looked up, a repeat skipped, an answer."""

from temporality.protocol import activation as barrier
from temporality.protocol import run as facts
from temporality.protocol.agent import AgentSpec, ModelSpec
from temporality.protocol.identity import RunIdentity
from temporality.protocol.model import Usage
from temporality.protocol.tool import ToolFailed, ToolSucceeded

PROJECT = "demo"


def commits(run: str = "r1") -> tuple[facts.Commit, ...]:
    """The run's commits, first to last."""
    steps: list[list[facts.RunFact]] = [
        [_started(run), *_primed(run), _called(1)],
        [_replied(1, "c1", "c2"), _tool("c1", 1), _tool("c2", 1)],
        [
            _failed("c1", 1),
            facts.ToolReplied(call="c2", turn=1, outcome=ToolSucceeded(content="ok"), duration_ms=4),
            *_looked_up("a1", "c1", 1),
            facts.TurnClosed(turn=1, evaluators=("tool.failed",), barrier_ms=12),
            _called(2),
        ],
        [_replied(2, "c3"), _tool("c3", 2)],
        [
            _failed("c3", 2),
            barrier.EvaluatorMissed(kind="disk.full", reason="no_answer"),
            barrier.ActivationSkipped(
                activation_id="a2",
                trigger="tool.failed",
                source_id="c3",
                turn=2,
                reason="duplicate",
                situation_key="s1",
                tool="read",
            ),
            facts.TurnClosed(turn=2, evaluators=("tool.failed",), barrier_ms=251),
            _called(3),
        ],
        [_replied(3), facts.RunFinished(answer="It is done.", turns=2)],
    ]
    return tuple(
        facts.Commit(
            id=f"{run}-c{number}",
            run=run,
            number=number,
            predecessor=0,
            at=f"2026-11-30T10:00:{number:02d}+00:00",
            facts=tuple(step),
            causes=(f"m{number}",),
        )
        for number, step in enumerate(steps, start=1)
    )


def _started(run: str) -> facts.RunStarted:
    agent = AgentSpec(name="helper", model=ModelSpec(name="gpt-5"))
    return facts.RunStarted(
        identity=RunIdentity(run=run, project=PROJECT), agent=agent, task="Tidy the folder up."
    )


def _primed(run: str) -> list[facts.RunFact]:
    return [
        barrier.ActivationRequested(
            activation_id="a0", trigger="task.priming", source_id=run, turn=0, situation_key="s0"
        ),
        barrier.HintsQueried(
            activation_id="a0", result="empty", query_digest="q0", query_shape={"query": 19}
        ),
        barrier.ActivationSettled(activation_id="a0", trigger="task.priming", result="empty", retrieval_ms=2),
    ]


def _called(turn: int) -> facts.ModelCalled:
    return facts.ModelCalled(call=f"model-{turn}", turn=turn, attempt=1, model="gpt-5", transcript_digest="d")


def _replied(turn: int, *calls: str) -> facts.ModelReplied:
    return facts.ModelReplied(
        call=f"model-{turn}",
        turn=turn,
        calls=tuple(
            facts.RequestedCall(call=call, provider_call_id=call, name="fs__read", arguments="{}")
            for call in calls
        ),
        finish_reason="tool_calls" if calls else "stop",
        usage=Usage(input_tokens=100 * turn, output_tokens=10),
        duration_ms=300,
    )


def _tool(call: str, turn: int) -> facts.ToolCalled:
    return facts.ToolCalled(
        call=call, turn=turn, tool="read", mcp_server="fs", argument_digest="d", effect="none"
    )


def _failed(call: str, turn: int) -> facts.ToolReplied:
    outcome = ToolFailed(error_class="tool_error", content=f"no such file: {call}.txt")
    return facts.ToolReplied(call=call, turn=turn, outcome=outcome, duration_ms=7)


def _looked_up(activation: str, call: str, turn: int) -> list[facts.RunFact]:
    return [
        barrier.ActivationRequested(
            activation_id=activation,
            trigger="tool.failed",
            source_id=call,
            turn=turn,
            situation_key="s1",
            tool="read",
            mcp_server="fs",
            error_class="tool_error",
        ),
        barrier.HintsQueried(
            activation_id=activation,
            result="success",
            query_digest="q1",
            query_shape={"tool_result": 20},
            found=2,
            candidates=40,
            retrieval_ms=6,
            matcher_version="m1",
        ),
        _offered(1, activation, call, 3.5),
        _offered(2, activation, call, 1.25),
        _delivered(1, activation, None),
        _delivered(2, activation, "budget"),
        barrier.ActivationSettled(
            activation_id=activation,
            trigger="tool.failed",
            result="success",
            found=2,
            selected=1,
            injected=1,
            tokens=40,
            retrieval_ms=6,
        ),
        barrier.BlockInjected(
            text="notes", tokens=40, activation_ids=(activation,), knowledge_ids=("item-1",)
        ),
    ]


def _offered(number: int, activation: str, call: str, score: float) -> barrier.HintOffered:
    return barrier.HintOffered(
        hint_id=f"h{number}",
        activation_id=activation,
        knowledge_id=f"item-{number}",
        revision=1,
        trigger="tool.failed",
        source_id=call,
        tier="tool+error",
        matched=("tool:read", "word:file"),
        score=score,
    )


def _delivered(number: int, activation: str, reason: barrier.DeliveryReason | None) -> barrier.HintDelivered:
    return barrier.HintDelivered(
        hint_id=f"h{number}",
        activation_id=activation,
        knowledge_id=f"item-{number}",
        revision=1,
        injected=reason is None,
        reason=reason,
    )
