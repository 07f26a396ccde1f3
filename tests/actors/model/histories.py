"""Random histories of a run's facts, as a supervisor could commit them, and as crashes could garble them."""

from collections.abc import Sequence

from hypothesis import strategies as st

from temporality.protocol.activation import BlockInjected
from temporality.protocol.agent import AgentSpec, ModelSpec
from temporality.protocol.identity import RunIdentity
from temporality.protocol.run import (
    ModelCalled,
    ModelCallFailed,
    ModelReplied,
    RequestedCall,
    RunFact,
    RunStarted,
    ToolReplied,
)
from temporality.protocol.tool import (
    ToolAccepted,
    ToolBlocked,
    ToolCancelled,
    ToolDenied,
    ToolFailed,
    ToolOutcome,
    ToolSucceeded,
)
from temporality.protocol.transcript import EMPTY_DIGEST, OpenTurn, TranscriptMessage, extend_digest, fold

texts = st.text(max_size=12) | st.sampled_from(["", " ", "\n", "Error: no", "a\nb", "ja"])
effects = st.sampled_from(["none", "done", "uncertain"])
outcomes: st.SearchStrategy[ToolOutcome] = st.one_of(
    st.builds(ToolSucceeded, content=texts),
    st.builds(
        ToolFailed, error_class=st.sampled_from(["timeout", "tool_error"]), content=texts, effect=effects
    ),
    st.builds(ToolBlocked, reason=texts),
    st.builds(ToolDenied, reason=texts),
    st.builds(ToolCancelled, effect=effects),
    st.builds(ToolAccepted, operation_id=st.just("op-1")),
)
provider_ids = st.text("abc:._-09", min_size=1, max_size=6)
arguments = st.sampled_from(["{}", '{"path": "a"}', "", "{oops", "[1]", "NaN", '"x"']) | texts


def started(task: str = "do it", instructions: str = "", model: ModelSpec | None = None) -> RunStarted:
    """Return the first fact of a run."""
    agent = AgentSpec(name="demo", instructions=instructions, model=model or ModelSpec(name="demo"))
    return RunStarted(identity=RunIdentity(run="run-1"), agent=agent, task=task)


def called(turn: int) -> ModelCalled:
    """Return the fact that ends what a request may hold."""
    return ModelCalled(call=f"m-{turn}", turn=turn, attempt=1, model="demo", transcript_digest="")


def block(text: str) -> BlockInjected:
    """Return a block's fact."""
    return BlockInjected(text=text, tokens=1, activation_ids=("a-1",), knowledge_ids=("k-1",))


@st.composite
def replied(draw: st.DrawFn, turn: int) -> tuple[ModelReplied, list[ToolReplied]]:
    """Draw a model's reply and the replies of its calls: out of order, repeated, late, or missing."""
    ids = draw(st.lists(provider_ids, max_size=4, unique=True))
    calls = tuple(
        RequestedCall(
            call=f"c-{turn}-{index}", provider_call_id=given, name=draw(texts), arguments=draw(arguments)
        )
        for index, given in enumerate(ids)
    )
    names = [call.call for call in calls]
    answered = draw(st.lists(st.sampled_from([*names, f"c-{turn - 1}-0"]), max_size=6)) if names else []
    answers = [ToolReplied(call=name, turn=turn, outcome=draw(outcomes)) for name in answered]
    return ModelReplied(call=f"m-{turn}", turn=turn, content=draw(texts), calls=calls), answers


@st.composite
def histories(draw: st.DrawFn) -> list[RunFact]:
    """Draw a run's facts up to a model call."""
    facts: list[RunFact] = [started(draw(texts.filter(bool)), draw(texts))]
    turns = draw(st.integers(min_value=0, max_value=5))
    for turn in range(turns + 1):
        if draw(st.booleans()):
            facts.append(block(f"<temporality.memory>\nnote {turn}\n</temporality.memory>"))
        facts.append(called(turn))
        if draw(st.booleans()):
            facts.append(
                ModelCallFailed(call=f"m-{turn}", turn=turn, attempt=1, error_class="timeout", message="")
            )
            facts.append(called(turn))
        if turn < turns:
            reply, answers = draw(replied(turn + 1))
            # A model that calls nothing ends its run; a run that goes on has called something.
            if not reply.calls:
                break
            facts += [reply, *answers]
    return facts


def fold_all(facts: Sequence[RunFact]) -> tuple[TranscriptMessage, ...]:
    """Return the transcript that facts fold to."""
    return fold_with_digest(facts)[0]


def fold_with_digest(facts: Sequence[RunFact]) -> tuple[tuple[TranscriptMessage, ...], str]:
    """Return the transcript that facts fold to, and its digest."""
    turn, messages = OpenTurn(), tuple[TranscriptMessage, ...]()
    for fact in facts:
        turn, appended = fold(turn, fact)
        messages += appended
    return messages, extend_digest(EMPTY_DIGEST, messages)


def requests_of(facts: Sequence[RunFact]) -> list[tuple[TranscriptMessage, ...]]:
    """Return the transcript of each request that the history makes."""
    ends = [index for index, fact in enumerate(facts) if isinstance(fact, ModelCalled)]
    return [fold_all(facts[: end + 1]) for end in ends]
