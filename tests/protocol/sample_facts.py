"""One value of every message, with every field away from its default somewhere.

A sample is what its golden file holds. The values are made up but of the right kind, so that a golden file is
also the shortest answer to the question what such a message looks like on the wire.
"""

from typing import Any

from temporality.protocol.activation import (
    ActivationRequested,
    ActivationSettled,
    ActivationSkipped,
    BlockInjected,
    CandidateReceived,
    EvaluatorMissed,
    HintDelivered,
    HintOffered,
    HintsQueried,
)
from temporality.protocol.agent import (
    ActivationDeadlines,
    ActivationLimits,
    ActivationSpec,
    ActivationTokens,
    AgentSpec,
    KnowledgeSpec,
    McpServerSpec,
    ModelSpec,
    PolicySpec,
    PrimingSpec,
    RunLimits,
    SkillSpec,
    ToolsSpec,
)
from temporality.protocol.editorial import (
    Evidence,
    KnowledgeItem,
    KnowledgeState,
    Scope,
)
from temporality.protocol.hint import (
    Hint,
    Skill,
    Tier,
)
from temporality.protocol.identity import RunIdentity
from temporality.protocol.model import Usage
from temporality.protocol.run import (
    ModelCalled,
    ModelCallFailed,
    ModelReplied,
    RequestedCall,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolCalled,
    ToolReplied,
    ToolsFrozen,
    TurnClosed,
)
from temporality.protocol.tool import (
    BlobRef,
    ToolFailed,
    ToolSucceeded,
)
from temporality.protocol.trigger import Candidate
from temporality.protocol.turn import RecentCall

AT = "2026-11-30T12:00:00.250000+00:00"
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

IDENTITY = RunIdentity(
    run="run-1",
    project="demo",
    team="platform",
    user_id="ann@example.org",
    session_id="s-1",
    task_id="t-1",
    actor_id="a-1",
    team_root="run-0",
)
STDIO = McpServerSpec(
    command="mcp-server-git",
    args=("--verbose",),
    env={"TOKEN": "${GIT_TOKEN}"},
    read_timeout_s=12.5,
    session="run",
    effects={"git_commit": "once", "git_status": "none"},
)
OVER_HTTP = McpServerSpec(url="http://127.0.0.1:9000/mcp", headers={"Authorization": "Bearer ${DOCS_TOKEN}"})
AGENT = AgentSpec(
    name="git-helper",
    instructions="Отвечай коротко.\nName the repository.",
    model=ModelSpec(
        provider="scripted",
        name="demo",
        base_url="${OPENAI_BASE_URL}",
        api_key="${OPENAI_API_KEY}",
        context_tokens=32_000,
        params={"temperature": 0.5, "seed": 7, "stop": None, "stream": False, "effort": "low"},
        script="model: demo\nreplies: []\n",
        request_timeout_s=60.0,
    ),
    tools=ToolsSpec(mcp={"git": STDIO, "docs": OVER_HTTP}, python=("package.module:function",)),
    policy=PolicySpec(deny=("git.git_reset",)),
    skills=(SkillSpec(name="git", text="Prefer small commits."),),
    knowledge=KnowledgeSpec(project="demo", team="platform"),
    priming=PrimingSpec(tokens=300),
    activation=ActivationSpec(
        triggers=("tool.failed", "mcp.first_call"),
        limits=ActivationLimits(turn=1, run=9, tool=2, trigger=4),
        tokens=ActivationTokens(activation=200, run=800, hint=60),
        hints_max=4,
        deadlines=ActivationDeadlines(evaluators_ms=100, retrieval_ms=400),
        rejected_calls=False,
    ),
    limits=RunLimits(turns_max=12, reply_bytes_max=2_048),
)
BLOB = BlobRef(digest=DIGEST, bytes=20_000)
SUCCEEDED = ToolSucceeded(content="main", content_blob=BLOB, data={"branch": "main"}, visual=[1, 2.5])
FAILED = ToolFailed(error_class="tool_error", content="not found", content_blob=BLOB, effect="uncertain")
REQUESTED = RequestedCall(
    call="tc-1", provider_call_id="call_0", name="git__git_log", arguments='{"repo": "."}'
)
RECENT = RecentCall(
    turn=1, tool="git_log", argument_digest=DIGEST, outcome="failed", mcp_server="git", situation_key="sk-1"
)
CANDIDATE = Candidate(
    situation="not found",
    call="tc-1",
    query="how to find a branch",
    error_class="tool_error",
    entities=("main",),
    topics=("branches",),
)
RECEIVED = CandidateReceived(
    id="m-1",
    kind="my.trigger",
    situation="not found",
    call="tc-1",
    query="how to find a branch",
    error_class="tool_error",
    entities=("main",),
    topics=("branches",),
)
SCOPE = Scope(project="demo", team="platform", user="ann@example.org")
ITEM = KnowledgeItem(
    proposition="The branch is called main.",
    knowledge_id="git-main",
    kind="rule",
    tools=("git_log",),
    mcp_servers=("git",),
    error_classes=("tool_error",),
    situation_keys=("sk-1",),
    entities=("main",),
    topics=("branches",),
    example_errors=("git log master\nunknown revision",),
    cautions=("only since 2024",),
    scope=SCOPE,
    area="infrastructure",
    state=KnowledgeState.CHALLENGED,
    valid_from="2024-01-01",
    valid_until="2027-12-31",
    supersedes=("git-master",),
    depends_on=("git-scope",),
    reviewed_by="policy",
    subject="branch",
    relation="called",
    value="main",
    evidence=(
        Evidence(
            kind="file",
            ref="notes.md:12",
            author="Ann",
            said_at="2024-01-01T10:00:00+02:00",
            area="infrastructure",
            excerpt="we renamed it",
            access="team",
        ),
    ),
)
CONTEXT: dict[str, Any] = {
    "query": "list the last commits",
    "active_skills": (Skill(name="git", text="Prefer small commits."),),
    "issued_knowledge_ids": ("git-scope",),
    "suppressed_knowledge_ids": ("git-long",),
    "project": "demo",
    "run_id": "run-1",
    "task_id": "t-1",
    "actor_id": "a-1",
    "user_id": "ann@example.org",
    "team": "platform",
    "team_root": "run-0",
}
HINT = Hint(
    hint_id="hint-1",
    knowledge_id="git-main",
    revision=7,
    proposition="The branch is called main.",
    tier=Tier.TOOL_AND_ERROR,
    matched=("tool:git_log",),
    score=1.5,
    state=KnowledgeState.REVIEWED,
    scope=SCOPE,
    cautions=("unconfirmed",),
    successor_of="git-master",
)

FACTS: tuple[Any, ...] = (
    RunStarted(identity=IDENTITY, agent=AGENT, task="Which branch?", traceparent=TRACEPARENT),
    ToolsFrozen(digest=DIGEST, count=3),
    ModelCalled(call="mc-1", turn=1, attempt=2, model="demo", transcript_digest=DIGEST, tools=DIGEST),
    ModelReplied(
        call="mc-1",
        turn=1,
        content="I look.",
        calls=(REQUESTED,),
        finish_reason="tool_calls",
        usage=Usage(input_tokens=100, output_tokens=20, cached_tokens=64),
        transcript_digest=DIGEST,
        duration_ms=350,
    ),
    ModelCallFailed(
        call="mc-1",
        turn=1,
        attempt=1,
        error_class="rate_limited",
        message="slow down",
        retry_after_s=1.5,
        duration_ms=20,
    ),
    ToolCalled(call="tc-1", turn=1, tool="git_log", argument_digest=DIGEST, effect="none", mcp_server="git"),
    ToolReplied(call="tc-1", turn=1, outcome=FAILED, duration_ms=12),
    TurnClosed(turn=1, evaluators=("tool.failed",), barrier_ms=9),
    RunFinished(answer="main", turns=2),
    RunFailed(where="model", what="unauthorized", do="set OPENAI_API_KEY"),
    RunCancelled(reason="no longer needed"),
    EvaluatorMissed(kind="my.trigger", reason="late", detail="after 250 ms"),
    RECEIVED,
    ActivationRequested(
        activation_id="act-1",
        trigger="tool.failed",
        source_id="tc-1",
        turn=1,
        situation_key="sk-1",
        tool="git_log",
        mcp_server="git",
        error_class="tool_error",
    ),
    ActivationSkipped(
        activation_id="act-2",
        trigger="tool.failed",
        source_id="tc-2",
        turn=1,
        reason="duplicate",
        situation_key="sk-1",
        tool="git_log",
        mcp_server="git",
    ),
    HintsQueried(
        activation_id="act-1",
        result="success",
        query_digest=DIGEST,
        query_shape={"query": 21, "tool_result": 9},
        found=1,
        candidates=40,
        retrieval_ms=4,
        matcher_version="m1",
        detail="1 tier",
    ),
    HintOffered(
        hint_id="hint-1",
        activation_id="act-1",
        knowledge_id="git-main",
        revision=7,
        trigger="tool.failed",
        source_id="tc-1",
        tier="tool+error",
        matched=("tool:git_log",),
        score=1.5,
    ),
    HintDelivered(
        hint_id="hint-1",
        activation_id="act-1",
        knowledge_id="git-main",
        revision=7,
        injected=False,
        reason="budget",
        too_large=True,
    ),
    ActivationSettled(
        activation_id="act-1",
        trigger="tool.failed",
        result="success",
        found=2,
        selected=1,
        injected=1,
        tokens=90,
        retrieval_ms=4,
    ),
    BlockInjected(
        text="<temporality.memory>\n…\n</temporality.memory>",
        tokens=90,
        activation_ids=("act-1",),
        knowledge_ids=("git-main",),
    ),
)
"""One of every fact of a run."""
