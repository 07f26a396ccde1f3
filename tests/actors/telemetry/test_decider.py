"""Every private fact has a public form, which names its cause and holds nothing private."""

import string
import types
import typing

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporality.actors.telemetry.decider import NAME_CHARACTERS_MAX, project, project_of, public_form
from temporality.protocol import activation as barrier
from temporality.protocol import run as facts
from temporality.protocol.agent import (
    AgentSpec,
    McpServerSpec,
    ModelSpec,
    SkillSpec,
    ToolsSpec,
)
from temporality.protocol.codec import encode
from temporality.protocol.fact import EXCERPT_CHARACTERS_MAX, PublicFact
from temporality.protocol.identity import RunIdentity
from temporality.protocol.model import Usage
from temporality.protocol.tool import (
    BlobRef,
    ToolAccepted,
    ToolBlocked,
    ToolCancelled,
    ToolDenied,
    ToolFailed,
    ToolOutcome,
    ToolSucceeded,
)

CALL, MODEL_CALL, ACTIVATION, HINT = "call-1", "model-1", "act-1", "hint-1"
TRACEPARENT = f"00-{'a' * 32}-{'b' * 16}-01"


def agent(private: str, name: str) -> AgentSpec:
    server = McpServerSpec(command=private, args=(private,), env={"KEY": private})
    return AgentSpec(
        name=name[:128],
        instructions=private,
        model=ModelSpec(
            name=name, base_url=f"http://u:{private}@h/", api_key=private, params={"stop": private}
        ),
        tools=ToolsSpec(mcp={"fs": server}, python=(private,)),
        skills=(SkillSpec(name=private, text=private),),
    )


def every_fact(*, private: str, shown: str, name: str) -> tuple[facts.RunFact, ...]:
    """One fact of each type: `private` where nothing may cross, `shown` for excerpts, `name` for names."""
    return (
        *run_facts(private, shown, name),
        *call_facts(private, shown, name),
        *outcome_facts(private, shown, name),
        *barrier_facts(private, shown, name),
        *hint_facts(private, shown, name),
    )


def run_facts(private: str, shown: str, name: str) -> tuple[facts.RunFact, ...]:
    return (
        facts.RunStarted(
            identity=RunIdentity(run="r1", project="demo", user_id=name, team=name),
            agent=agent(private, name),
            task=shown,
            traceparent=TRACEPARENT,
        ),
        facts.ToolsFrozen(digest="d" * 64, count=2),
        facts.RunFinished(answer=shown, turns=2),
        facts.RunFailed(where=shown, what=shown, do=shown),
        facts.RunCancelled(reason=shown),
    )


def call_facts(private: str, shown: str, name: str) -> tuple[facts.RunFact, ...]:
    return (
        facts.ModelCalled(call=MODEL_CALL, turn=1, attempt=1, model=name, transcript_digest="e" * 64),
        facts.ModelReplied(
            call=MODEL_CALL,
            turn=1,
            content=private,
            calls=(facts.RequestedCall(call=CALL, provider_call_id=private, name=name, arguments=private),),
            finish_reason="tool_calls",
            usage=Usage(input_tokens=11, output_tokens=7, cached_tokens=5),
            transcript_digest="e" * 64,
            duration_ms=120,
        ),
        facts.ModelCallFailed(
            call=MODEL_CALL, turn=1, attempt=2, error_class=name, message=shown, retry_after_s=1.5
        ),
        facts.ToolCalled(call=CALL, turn=1, tool=name, argument_digest="f" * 64, effect="once"),
        facts.ToolReplied(
            call=CALL,
            turn=1,
            outcome=ToolFailed(error_class=name, content=shown, effect="uncertain"),
            duration_ms=9,
        ),
        facts.TurnClosed(turn=1, evaluators=("tool.failed",), barrier_ms=4),
    )


def outcome_facts(private: str, shown: str, name: str) -> tuple[facts.RunFact, ...]:
    outcomes: tuple[ToolOutcome, ...] = (
        ToolSucceeded(content=private, data={"x": private}, visual=private),
        ToolSucceeded(content_blob=BlobRef(digest="b" * 64, bytes=99_000), data=private),
        ToolBlocked(reason=shown),
        ToolDenied(reason=shown),
        ToolCancelled(effect="uncertain"),
        ToolAccepted(operation_id=name),
    )
    return tuple(facts.ToolReplied(call=CALL, turn=1, outcome=outcome) for outcome in outcomes)


def barrier_facts(private: str, shown: str, name: str) -> tuple[facts.RunFact, ...]:
    ours = {"activation_id": ACTIVATION, "trigger": "tool.failed", "source_id": CALL}
    return (
        barrier.EvaluatorMissed(kind=name, reason="late", detail=shown),
        barrier.CandidateReceived(
            id="cand-1",
            kind="x",
            situation=shown,
            call=CALL,
            query=private,
            entities=(private,),
            topics=(private,),
        ),
        barrier.ActivationRequested(turn=1, situation_key="s1", tool=name, error_class=name, **ours),
        barrier.ActivationSkipped(turn=1, reason="duplicate", situation_key="s1", **ours),
    )


def hint_facts(private: str, shown: str, name: str) -> tuple[facts.RunFact, ...]:
    return (
        barrier.HintsQueried(
            activation_id=ACTIVATION,
            result="success",
            query_digest="q" * 64,
            query_shape={"tool_result": 40},
            found=1,
            candidates=9,
            retrieval_ms=3,
            matcher_version="m1",
            detail=shown,
        ),
        barrier.HintOffered(
            hint_id=HINT,
            activation_id=ACTIVATION,
            knowledge_id=name,
            revision=3,
            trigger="tool.failed",
            source_id=CALL,
            tier="tool",
            matched=(f"word:{private}", f"word:{private}", "tool:x"),
            score=0.123456,
        ),
        barrier.HintDelivered(
            hint_id=HINT, activation_id=ACTIVATION, knowledge_id=name, revision=3, injected=True
        ),
        barrier.ActivationSettled(
            activation_id=ACTIVATION,
            trigger="tool.failed",
            result="success",
            found=1,
            selected=1,
            injected=1,
            tokens=42,
            retrieval_ms=3,
        ),
        barrier.BlockInjected(text=private, tokens=42, activation_ids=(ACTIVATION,), knowledge_ids=(name,)),
    )


def commit(*made: facts.RunFact, number: int = 4) -> facts.Commit:
    return facts.Commit(
        id="c-1",
        run="r1",
        number=number,
        predecessor=7,
        at="2026-11-30T10:00:00Z",
        facts=made,
        causes=("m1",),
    )


def projected(*, private: str = "p", shown: str = "s", name: str = "n") -> tuple[PublicFact, ...]:
    return project(commit(*every_fact(private=private, shown=shown, name=name)), project="demo")


def fact_types(union: object) -> set[type]:
    if isinstance(union, types.UnionType):
        return set().union(*(fact_types(one) for one in typing.get_args(union)))
    assert isinstance(union, type)
    return {union}


def one(made: facts.RunFact) -> dict[str, object]:
    (public,) = project(commit(made), project="demo")
    return public.data


def test_every_type_of_fact_has_a_public_form() -> None:
    made = every_fact(private="p", shown="s", name="n")
    assert {type(fact) for fact in made} == fact_types(facts.RunFact)
    assert [fact.kind for fact in projected()] == [type(fact).__struct_config__.tag for fact in made]


def test_ids_are_the_commits_so_that_projecting_again_is_a_repeat() -> None:
    """A49"""
    first, again = projected(), projected()
    assert encode(first) == encode(again)
    assert [fact.id for fact in first] == [f"r1.4.{index}" for index in range(len(first))]
    assert [(fact.number, fact.index) for fact in first] == [(4, index) for index in range(len(first))]


def test_project_is_known_from_the_first_commit_only() -> None:
    started, *others = every_fact(private="p", shown="s", name="n")
    assert project_of(commit(started)) == "demo"
    assert project_of(commit(*others)) is None


def test_chain_from_the_call_to_the_block_can_be_read_from_the_causes() -> None:
    """A45"""
    causes = {fact.kind: fact.cause for fact in projected()}
    assert causes["tool.replied"] == CALL
    assert causes["activation.requested"] == CALL
    assert causes["hint.query"] == ACTIVATION
    assert causes["hint.offered"] == ACTIVATION
    assert causes["hint.delivery"] == HINT
    assert causes["block.injected"] == ACTIVATION
    assert causes["activation.settled"] == ACTIVATION
    assert causes["run.started"] == "m1"
    assert all(causes.values())


def test_activation_says_all_that_an_activation_has() -> None:
    """A46"""
    by_kind = {fact.kind: fact.data for fact in projected()}
    assert by_kind["activation.requested"].keys() >= {"activation_id", "trigger", "source_id", "tool"}
    assert by_kind["activation.skipped"]["reason"] == "duplicate"
    assert by_kind["activation.settled"] == {
        "activation_id": ACTIVATION,
        "trigger": "tool.failed",
        "result": "success",
        "found": 1,
        "selected": 1,
        "injected": 1,
        "tokens": 42,
        "retrieval_ms": 3,
    }


def test_hint_query_holds_digest_and_shape_of_the_query_but_no_text() -> None:
    """A47"""
    (query,) = (fact.data for fact in projected() if fact.kind == "hint.query")
    assert query["query_digest"] == "q" * 24
    assert query["query_shape"] == {"tool_result": 40}


def test_injected_block_is_ids_and_counts() -> None:
    (block,) = (fact.data for fact in projected(private="four") if fact.kind == "block.injected")
    assert block == {"activation_ids": [ACTIVATION], "knowledge_ids": ["n"], "tokens": 42, "characters": 4}


def test_hint_says_by_what_kinds_of_words_it_matched_not_by_which() -> None:
    (offered,) = (fact.data for fact in projected() if fact.kind == "hint.offered")
    assert offered["matched"] == {"word": 2, "tool": 1}


def test_failed_call_shows_an_excerpt_and_a_succeeded_one_only_its_size() -> None:
    failed = facts.ToolReplied(call=CALL, turn=1, outcome=ToolFailed(error_class="E", content="no such file"))
    assert one(failed)["message"] == "no such file"
    succeeded = facts.ToolReplied(call=CALL, turn=1, outcome=ToolSucceeded(content="contents é"))
    assert one(succeeded) == {
        "call": CALL,
        "turn": 1,
        "outcome": "succeeded",
        "content_bytes": 11,
    }


def test_run_links_to_its_trace() -> None:
    assert projected()[0].data["trace_id"] == "a" * 32


@settings(max_examples=40, deadline=None)
@given(st.text(string.ascii_letters, min_size=12, max_size=40).map("Zq".__add__))
def test_private_text_never_crosses_in_any_length_or_form(private: str) -> None:
    """A47: arguments, outputs, instructions, parameters, addresses, block text, words that matched."""
    assert private not in encode(projected(private=private)).decode()


SECRETS = st.one_of(
    st.text(string.ascii_letters + string.digits, min_size=36, max_size=36).map("ghp_".__add__),
    st.text(string.ascii_uppercase + "234567", min_size=16, max_size=16).map("AKIA".__add__),
    st.text(string.ascii_letters + string.digits, min_size=24, max_size=24).map("sk_live_".__add__),
)
SETTINGS = ("{}", "token={}", "url: https://user:{}@host/path", "Error: 401 for key {}.", "({})", "\n{}\n")


@settings(max_examples=40, deadline=None)
@given(secret=SECRETS, place=st.sampled_from(SETTINGS), padding=st.integers(0, 600))
def test_secret_in_an_excerpt_or_a_name_is_redacted_also_at_the_cut(
    secret: str, place: str, padding: int
) -> None:
    """A17, A47"""
    planted = place.format(secret)
    shown = f"{'x ' * padding}{planted}{' y' * padding}"
    text = encode(projected(private=planted, shown=shown, name=planted)).decode()
    assert secret not in text
    assert secret[:20] not in text


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 20_000))
def test_excerpts_and_names_are_bounded(length: int) -> None:
    public = projected(shown="word " * length, name="name" * length)
    texts = [text for fact in public for text in strings(msgspec.to_builtins(fact.data))]
    assert max(map(len, texts)) <= EXCERPT_CHARACTERS_MAX
    names = [fact.data["tool"] for fact in public if fact.kind == "tool.called"]
    assert max(map(len, names)) <= NAME_CHARACTERS_MAX


def strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for inner in value.values() for text in strings(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in strings(inner)]
    return []


@pytest.mark.parametrize("fact", every_fact(private="p", shown="s", name="n"))
def test_public_form_is_json_and_leaves_out_what_is_not_known(fact: facts.RunFact) -> None:
    _, fields = public_form(fact)
    assert fields
    assert all(value or value is False for value in one(fact).values())
    assert msgspec.json.decode(encode(one(fact))) == msgspec.to_builtins(one(fact))
