"""One value of everything that is sent or kept, with each field away from its default somewhere.

`SAMPLES` holds one of each type; a golden file is the bytes of one. Together with `golden/` this is also the
shortest answer to the question what a message looks like on the wire.
"""

from typing import Any

from temporality.actors.host import QuestionRefused
from temporality.actors.supervisor.runs import Origin
from temporality.actors.supervisor.state import ActivationState, PendingCall, RunState, Status, Suppressed
from temporality.protocol.codec import raw
from temporality.protocol.editorial import ItemDecided, ItemForgotten
from temporality.protocol.fact import PublicFact
from temporality.protocol.folding import AskPosition, FoldPosition
from temporality.protocol.hint import HintBatch, HintBatchAnswer, HintContext, HintRequest, HintResult
from temporality.protocol.message import Outgoing
from temporality.protocol.model import ModelCall, ModelCompleted, ModelFailed, ProviderCall, Usage
from temporality.protocol.run import CancelRun, Commit, StartRun, TimerFired
from temporality.protocol.tool import (
    ListTools,
    OperationClaimed,
    OperationRecorded,
    ToolAccepted,
    ToolBlocked,
    ToolCall,
    ToolCancelled,
    ToolDefinition,
    ToolDenied,
    ToolFinished,
    ToolsListed,
    ToolsUnavailable,
)
from temporality.protocol.transcript import (
    AssistantReply,
    CallReply,
    MemoryBlock,
    OpenTurn,
    SystemText,
    UserText,
)
from temporality.protocol.trigger import CandidateProposed, EmptyDiagnostic, TurnEvaluated
from temporality.protocol.turn import SettledCall, TurnSettled

from .sample_facts import (
    AGENT,
    AT,
    CANDIDATE,
    CONTEXT,
    DIGEST,
    FACTS,
    FAILED,
    HINT,
    IDENTITY,
    ITEM,
    RECEIVED,
    RECENT,
    REQUESTED,
    STDIO,
    SUCCEEDED,
    TRACEPARENT,
)

CANCEL = CancelRun(reason="no longer needed")

INBOX: tuple[Any, ...] = (
    StartRun(identity=IDENTITY, agent=AGENT, task="Which branch?"),
    CANCEL,
    ModelCompleted(
        call="mc-1",
        transcript_digest=DIGEST,
        content="I look.",
        tool_calls=(ProviderCall(id="call_0", name="git__git_log", arguments='{"repo": "."}'),),
        finish_reason="tool_calls",
        usage=Usage(input_tokens=100, output_tokens=20, cached_tokens=64),
        duration_ms=350,
    ),
    ModelFailed(
        call="mc-1",
        error_class="unauthorized",
        message="the key was refused",
        do="set OPENAI_API_KEY",
        retry_after_s=1.5,
        duration_ms=20,
    ),
    ToolFinished(call="tc-1", outcome=SUCCEEDED, duration_ms=12),
    CandidateProposed(instance="I1", candidate=CANDIDATE),
    TimerFired(name="expiry"),
)

OUTCOMES: tuple[Any, ...] = (
    SUCCEEDED,
    FAILED,
    ToolBlocked(reason="denied by policy"),
    ToolDenied(reason="refused by ann"),
    ToolCancelled(effect="done"),
    ToolAccepted(operation_id="op-1"),
)

TOOLS_AND_MODELS: tuple[Any, ...] = (
    ToolCall(
        run="run-1",
        call="tc-1",
        turn=1,
        tool="git_log",
        arguments={"repo": ".", "count": 3},
        effect="none",
        reply_bytes_max=65_536,
        mcp_server="git",
        mcp=STDIO,
    ),
    OperationClaimed(executor="executor-3f2a", effect="once"),
    OperationRecorded(executor="executor-3f2a", outcome=FAILED, duration_ms=12),
    ListTools(mcp={"git": STDIO}, python=("package.module:function",)),
    ToolsListed(
        tools=(
            ToolDefinition(
                name="git__git_log",
                tool="git_log",
                description="List commits.",
                parameters={"type": "object", "properties": {"repo": {"type": "string"}}},
                effect="none",
                mcp_server="git",
            ),
            ToolDefinition(name="function", tool="function", python="package.module:function"),
        )
    ),
    ToolsUnavailable(where="git", what="the command was not found", do="install mcp-server-git"),
    ModelCall(run="run-1", call="mc-1", turn=1, upto=4, model="demo", transcript_digest=DIGEST, tools=DIGEST),
)

QUESTIONS: tuple[Any, ...] = (
    TurnSettled(
        project="demo",
        run="run-1",
        turn=1,
        calls=(
            SettledCall(
                call="tc-1",
                tool="git_log",
                outcome="failed",
                argument_digest=DIGEST,
                input='{"repo": "."}',
                result="not found",
                mcp_server="git",
                error_class="tool_error",
                effect="uncertain",
                first_contact=True,
            ),
        ),
        recent=(RECENT,),
        rejected_calls=False,
    ),
    TurnEvaluated(instance="I1", candidates=(CANDIDATE,), empty=(EmptyDiagnostic(call="tc-2"),)),
    HintBatch(
        context=HintContext(**CONTEXT),
        requests=(
            HintRequest(
                **CONTEXT,
                trigger="tool.failed",
                tool="git_log",
                mcp_server="git",
                tool_input='{"repo": "."}',
                tool_result="not found",
                error_class="tool_error",
                situation_key="sk-1",
                entities=("main",),
                topics=("branches",),
                activation_id="act-1",
                activation_source_id="tc-1",
            ),
        ),
    ),
    HintBatchAnswer(
        results=(
            HintResult(
                activation_id="act-1",
                result="success",
                matcher_version="m1",
                hints=(HINT,),
                candidates_count=40,
            ),
        )
    ),
    AskPosition(),
    FoldPosition(sequence=7),
    QuestionRefused(message="Expected `object`, got `array`"),
)

KEPT: tuple[Any, ...] = (
    Commit(
        id="c-1",
        run="run-1",
        number=4,
        predecessor=17,
        at=AT,
        facts=(FACTS[6],),
        outgoing=(
            Outgoing(subject="temporality.inbox.run-2.command", body=raw(CANCEL)),
            Outgoing(
                subject="temporality.timer.run-1.expiry",
                body=raw(TimerFired(name="expiry")),
                at=AT,
                target="temporality.inbox.run-1.timer",
            ),
        ),
        causes=("m-1",),
        generation=2,
    ),
    PublicFact(
        id="run-1.4.0",
        kind="tool.replied",
        project="demo",
        run="run-1",
        number=4,
        index=0,
        at=AT,
        data={"call": "tc-1", "duration_ms": 12},
        cause="tc-1",
        schema=2,
    ),
    ItemDecided(item=ITEM, decided_by="ann@example.org", decided_at=AT, reason="checked"),
    ItemForgotten(knowledge_id="git-main", project="demo", decided_by="ann@example.org", decided_at=AT),
    SystemText(text="Отвечай коротко."),
    UserText(text="Which branch?"),
    MemoryBlock(text="<temporality.memory>\n…\n</temporality.memory>"),
    AssistantReply(content="I look.", calls=(REQUESTED,)),
    CallReply(call="tc-1", provider_call_id="call_0", outcome=SUCCEEDED),
    Origin(identity=IDENTITY, agent=AGENT, task="Which branch?", traceparent=TRACEPARENT),
    RunState(
        status=Status.AWAITING_TOOLS,
        identity=IDENTITY,
        agent=AGENT,
        task="Which branch?",
        traceparent=TRACEPARENT,
        generation=2,
        number=4,
        turn=1,
        model_call="mc-1",
        attempt=2,
        tools=DIGEST,
        calls=(
            PendingCall(
                call="tc-1",
                tool="git_log",
                argument_digest=DIGEST,
                effect="none",
                mcp_server="git",
                first_contact=True,
            ),
        ),
        open=OpenTurn(calls=(REQUESTED,), replies={"tc-1": FAILED}, users=("Which branch?",), block="…"),
        answer="main",
        transcript_digest=DIGEST,
        recent=(RECENT,),
        turn_keys={"tc-1": "sk-1"},
        activation=ActivationState(
            issued_knowledge_ids=("git-main",),
            suppressed_knowledge={"git-long": Suppressed(reason="budget", revision=3)},
            activated_mcp_servers=("git",),
            situation_keys=("sk-0",),
            pending={"act-1": "sk-1"},
            run_count=2,
            tool_counts={"git_log": 1},
            trigger_counts={"tool.failed": 2},
            tokens=180,
        ),
        waiting=(RECEIVED,),
    ),
)

SAMPLES: dict[str, Any] = {
    **{
        type(sample).__name__: sample
        for group in (FACTS, INBOX, OUTCOMES, TOOLS_AND_MODELS, QUESTIONS, KEPT)
        for sample in group
    },
    "ToolCall-python": ToolCall(
        run="run-1",
        call="tc-2",
        turn=1,
        tool="function",
        arguments={},
        effect="once",
        reply_bytes_max=65_536,
        python="package.module:function",
    ),
}
"""Every sample by the name of its type; `<Type>-<what>` is a second one where one can't hold all fields."""
