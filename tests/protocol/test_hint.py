"""What a look-up may ask, and what its answer looks like (A12, A14, A16, A49)."""

from typing import Any

import msgspec
import pytest
from msgspec import convert

from temporality.protocol.bounds import (
    QUERY_LENGTH_MAX,
    SKILL_LENGTH_MAX,
    TOOL_INPUT_LENGTH_MAX,
    TOOL_RESULT_LENGTH_MAX,
)
from temporality.protocol.hint import (
    REQUESTS_MAX,
    HintBatch,
    HintContext,
    HintRequest,
    HintResult,
    Skill,
    hint_id,
)

FIELDS_OF_THE_FORMAT = set(
    "trigger tool mcp_server tool_input tool_result error_class situation_key query active_skills"
    " issued_knowledge_ids suppressed_knowledge_ids entities topics project run_id task_id actor_id user_id"
    " team team_root activation_id activation_source_id".split()
)


def test_request_has_exactly_the_fields_of_the_shared_format() -> None:
    """A14."""
    assert set(HintRequest.__struct_fields__) == FIELDS_OF_THE_FORMAT


@pytest.mark.parametrize(
    "field", ["query", "tool_result", "tool_input", "tool", "mcp_server", "error_class", "situation_key"]
)
def test_any_one_thing_to_search_by_makes_a_request(field: str) -> None:
    """A14, A19."""
    assert getattr(convert({field: "git"}, HintRequest), field) == "git"
    with pytest.raises(ValueError, match="nothing to search by"):
        convert({field: " \n"}, HintRequest)


def test_request_with_scope_and_ids_but_nothing_to_search_by_cannot_be_built() -> None:
    """A14."""
    with pytest.raises(ValueError, match="nothing to search by"):
        HintRequest(project="demo", run_id="r1", activation_id="a1", active_skills=(Skill(name="git"),))


@pytest.mark.parametrize(
    ("field", "length_max"),
    [
        ("query", QUERY_LENGTH_MAX),
        ("tool_input", TOOL_INPUT_LENGTH_MAX),
        ("tool_result", TOOL_RESULT_LENGTH_MAX),
    ],
)
def test_text_over_its_limit_is_refused_in_code_and_on_the_wire(field: str, length_max: int) -> None:
    """A16."""
    bounded: dict[str, Any] = {field: "x" * length_max}
    longer: dict[str, Any] = {field: "x" * (length_max + 1)}
    assert HintRequest(**bounded)
    with pytest.raises(ValueError, match=f"`{field}` has {length_max + 1} characters"):
        HintRequest(**longer)
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.json.decode(msgspec.json.encode(longer), type=HintRequest)


def test_skill_over_its_limit_is_refused() -> None:
    """A14."""
    with pytest.raises(ValueError, match="characters"):
        Skill(name="git", text="x" * (SKILL_LENGTH_MAX + 1))


def test_field_of_a_newer_sender_is_ignored_on_the_bus() -> None:
    assert msgspec.json.decode(b'{"query": "git", "mood": "good"}', type=HintRequest).query == "git"


def test_batch_says_once_what_its_requests_share_and_each_gets_it_back() -> None:
    """A12."""
    context = HintContext(query="deploy", project="demo", issued_knowledge_ids=("k1",))
    own = HintRequest(tool="git_push", query="push the branch")
    plain = HintRequest(tool="git_pull")
    sent = msgspec.json.encode(HintBatch(context=context, requests=(own, plain)))
    assert sent.count(b"demo") == 1
    first, second = msgspec.json.decode(sent, type=HintBatch).resolved()
    assert (first.query, first.project, first.issued_knowledge_ids) == ("push the branch", "demo", ("k1",))
    assert (second.query, second.project, second.issued_knowledge_ids) == ("deploy", "demo", ("k1",))


def test_every_field_of_the_context_reaches_the_request() -> None:
    """A14."""
    values: dict[str, Any] = {
        name: (f"{name}-1",) if name.endswith("_ids") else f"{name}-1"
        for name in HintContext.__struct_fields__
    }
    values["active_skills"] = (Skill(name="git", text="commit often"),)
    [request] = HintBatch(context=HintContext(**values), requests=(HintRequest(tool="t"),)).resolved()
    assert {name: getattr(request, name) for name in HintContext.__struct_fields__} == values


@pytest.mark.parametrize("count", [0, REQUESTS_MAX + 1])
def test_batch_of_no_or_too_many_requests_cannot_be_built(count: int) -> None:
    """A12."""
    with pytest.raises(ValueError, match="a batch holds"):
        HintBatch(requests=(HintRequest(tool="t"),) * count)


def test_result_says_success_exactly_when_it_has_hints() -> None:
    """A23."""
    assert HintResult(activation_id="a", result="empty", matcher_version="v").hints == ()
    with pytest.raises(ValueError, match="success"):
        HintResult(activation_id="a", result="success", matcher_version="v")


def test_hint_id_is_the_same_for_the_same_cause_and_another_for_another() -> None:
    """A49."""
    assert hint_id("a", "k", 1) == hint_id("a", "k", 1)
    assert len({hint_id("a", "k", 1), hint_id("b", "k", 1), hint_id("a", "l", 1), hint_id("a", "k", 2)}) == 4
    assert hint_id("a", "k1", 2) != hint_id("a", "k", 12)


def test_correlation_names_what_joins_a_look_up_to_its_cause() -> None:
    """A45."""
    request = HintRequest(
        tool="t", run_id="r", team_root="r0", activation_source_id="call-1", trigger="tool.failed"
    )
    assert request.correlation() == {
        "run_id": "r",
        "team_root": "r0",
        "activation_source_id": "call-1",
        "trigger": "tool.failed",
    }


@pytest.mark.parametrize(
    ("request_", "is_failure"),
    [
        (HintRequest(trigger="tool.failed", tool="t"), True),
        (HintRequest(error_class="timeout"), True),
        (HintRequest(tool_result="no such file"), True),
        (HintRequest(trigger="mcp.first_call", tool_result="42 files"), False),
        (HintRequest(trigger="task.priming", query="q"), False),
        (HintRequest(query="q"), False),
    ],
)
def test_what_counts_as_the_look_up_of_a_failure(request_: HintRequest, is_failure: bool) -> None:
    """A20."""
    assert request_.is_failure is is_failure
