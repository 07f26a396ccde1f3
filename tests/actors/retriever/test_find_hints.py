"""What is found, in which order, and what is withheld (A14, A15, A18 to A24)."""

import inspect
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from temporality.actors.retriever import find_hints as engine
from temporality.actors.retriever.ranking import MATCHER_VERSION
from temporality.protocol.hint import HintRequest, HintResult, hint_id

Find = Callable[..., HintResult]

PUSH = {
    "knowledge_id": "push-upstream",
    "proposition": "A new branch has no upstream: push it once with --set-upstream origin.",
    "tools": ["git_push"],
}
PORT = {
    "knowledge_id": "port-in-use",
    "proposition": "If a port is already in use, stop the process that listens on it.",
}
INVOICE = {
    "knowledge_id": "invoices",
    "proposition": "An invoice that was sent is corrected by a credit note.",
}
NO_UPSTREAM = "fatal: The current branch has no upstream branch."


def ids(result: HintResult) -> list[str]:
    return [hint.knowledge_id for hint in result.hints]


def test_failure_finds_what_was_learned_about_it_and_says_why(find: Find) -> None:
    """A19, A21."""
    result = find(
        [PUSH, PORT, INVOICE],
        trigger="tool.failed",
        tool="git_push",
        tool_input="git push",
        tool_result=NO_UPSTREAM,
        activation_id="a1",
    )
    assert ids(result) == ["push-upstream"]
    [hint] = result.hints
    assert (hint.tier, hint.state, hint.cautions, hint.successor_of) == ("tool", "reviewed", (), None)
    assert hint.matched[0] == "tool:git_push"
    assert {"term:branch", "term:upstream"} <= set(hint.matched)
    assert hint.hint_id == hint_id("a1", "push-upstream", hint.revision)
    assert (result.activation_id, result.result, result.matcher_version) == ("a1", "success", MATCHER_VERSION)
    assert result.candidates_count >= 1


@pytest.mark.parametrize(
    ("item", "request_", "tier"),
    [
        ({"situation_keys": ["key-7"]}, {"situation_key": "key-7"}, "situation"),
        (
            {"tools": ["fetch"], "error_classes": ["timeout"]},
            {"tool": "fetch", "error_class": "timeout"},
            "tool+error",
        ),
        ({"tools": ["fetch"]}, {"tool": "fetch", "query": "credit"}, "tool"),
        ({"mcp_servers": ["books"]}, {"mcp_server": "books", "trigger": "mcp.first_call"}, "tool"),
        ({"entities": ["Contoso"]}, {"entities": ["Contoso"]}, "terms"),
        ({"topics": ["billing"]}, {"topics": ["billing"]}, "terms"),
        ({}, {"query": "correct a sent invoice by a credit note"}, "terms"),
        ({}, {"tool_result": "invoice already sent, needs a credit note"}, "terms"),
        ({}, {"tool_input": "invoice 12 credit", "tool_result": "was sent, note missing"}, "terms"),
    ],
)
def test_each_thing_that_can_be_searched_by_finds_an_item(
    find: Find, item: dict[str, Any], request_: dict[str, Any], tier: str
) -> None:
    """A19."""
    result = find([{**INVOICE, **item}, PORT, PUSH], **request_)
    assert ids(result)[:1] == ["invoices"]
    assert result.hints[0].tier == tier


@pytest.mark.parametrize(
    ("proposition", "request_"),
    [
        (
            "Уведомления поставщику отправляются за десять дней.",
            {"query": "отправить уведомление поставщикам"},
        ),
        ("HTTP-запросы к базе идут через прокси.", {"tool_result": "HTTP-запрос к базам отклонён прокси"}),
        ("Call getUserById with a db_path.", {"tool_result": "get user by id failed: db path missing"}),
        (
            "Never commit with --no-verify.",
            {"tool_input": "git commit --no-verify", "tool_result": "a hook says: never do that"},
        ),
    ],
)
def test_word_forms_and_identifiers_match_in_both_languages(
    find: Find, proposition: str, request_: dict[str, Any]
) -> None:
    """A19."""
    assert ids(find([{"knowledge_id": "it", "proposition": proposition}, PORT], **request_)) == ["it"]


def test_example_error_finds_an_item_whose_words_say_nothing_of_it(find: Find) -> None:
    """A20."""
    item = {**INVOICE, "example_errors": ["deploy --fast\nE77: quota of region eu exhausted"]}
    failure = {"tool_input": "deploy --slow", "tool_result": "E77: quota of region us exhausted"}
    assert ids(find([item, PORT], trigger="tool.failed", **failure)) == ["invoices"]
    assert ids(find([INVOICE, PORT], trigger="tool.failed", **failure)) == []


def test_example_error_that_is_this_failure_outranks_a_proposition_that_shares_words(find: Find) -> None:
    """A20."""
    failure = {"tool_input": "deploy api", "tool_result": "quota of region exhausted"}
    words = {
        "knowledge_id": "words",
        "proposition": "A quota of a region is raised by the owner before a deploy.",
    }
    example = {**INVOICE, "example_errors": ["deploy api\nquota of region exhausted"]}
    assert ids(find([words, example], trigger="tool.failed", **failure))[0] == "invoices"


def test_example_errors_do_not_count_when_no_failure_is_looked_up(find: Find) -> None:
    """A20."""
    item = {**INVOICE, "example_errors": ["deploy\nquota of region exhausted"]}
    assert (
        ids(find([item, PORT], trigger="task.priming", query="is the quota of the region exhausted?")) == []
    )


@pytest.mark.parametrize("state", ["candidate", "rejected", "deleted", "superseded", "retired"])
def test_item_in_another_state_is_never_offered(find: Find, state: str) -> None:
    """A21, A22."""
    assert find([{**PORT, "state": state}], query="port already in use", threshold=False).hints == ()


def test_person_reviewed_item_stands_above_one_that_a_policy_let_in(find: Find) -> None:
    """A21, A24."""
    by_policy = {
        "knowledge_id": "a-policy",
        "proposition": "Port already in use: use another port, such as 8081.",
        "reviewed_by": "policy",
    }
    result = find([by_policy, PORT], query="port already in use")
    assert ids(result) == ["port-in-use", "a-policy"]
    assert [hint.cautions for hint in result.hints] == [(), ("unconfirmed",)]


def test_item_that_an_active_skill_covers_is_demoted_not_dropped(find: Find) -> None:
    """A14, A21."""
    other = {"knowledge_id": "z-port", "proposition": "A port in use by docker is freed at once."}
    request = {"query": "port already in use by a process"}
    assert ids(find([PORT, other], **request)) == ["port-in-use", "z-port"]
    skill = {
        "name": "ports",
        "text": "Is a port in use already? Stop the listening process first, then go on.",
    }
    assert ids(find([PORT, other], active_skills=[skill], **request)) == ["z-port", "port-in-use"]
    assert ids(find([PORT, other], active_skills=[{"name": "ports"}], **request)) == ["port-in-use", "z-port"]


def test_near_duplicates_collapse_into_the_better_one(find: Find) -> None:
    """A21."""
    same = {**PORT, "knowledge_id": "z-same"}
    near = {
        "knowledge_id": "z-near",
        "proposition": "If a port is already in use, stop the process that listens.",
    }
    far = {"knowledge_id": "z-far", "proposition": "What listens on a port already in use is shown by lsof."}
    assert ids(find([same, near, PORT, far], query="port already in use, process listens")) == [
        "port-in-use",
        "z-far",
    ]


def test_at_most_two_items_of_one_primary_topic_are_offered(find: Find) -> None:
    """A21."""
    items = [
        {"knowledge_id": f"item-{word}", "proposition": f"Port in use: {word}.", "topics": ["ports", word]}
        for word in ("restart", "reboot", "rename", "relocate")
    ]
    result = find([*items, {**PORT, "topics": ["processes", "ports"]}], query="port in use")
    assert len(result.hints) == 3
    assert "port-in-use" in ids(result)


def test_superseded_item_that_matches_leads_to_its_successor(find: Find) -> None:
    """A22."""
    old = {
        "knowledge_id": "five-days",
        "proposition": "We notify the supplier five days ahead.",
        "state": "superseded",
    }
    new = {
        "knowledge_id": "ten-days",
        "proposition": "The notice period is ten days.",
        "supersedes": ["five-days"],
    }
    result = find([old, new], query="when do we notify the supplier?")
    assert ids(result) == ["ten-days"]
    assert result.hints[0].successor_of == "five-days"
    assert result.hints[0].proposition == "The notice period is ten days."


def test_item_still_called_reviewed_gives_way_to_what_supersedes_it_where_that_holds(find: Find) -> None:
    """A22."""
    old = {"knowledge_id": "five-days", "proposition": "We notify the supplier five days ahead."}
    new = {
        "knowledge_id": "ten-days",
        "proposition": "The notice period is ten days.",
        "supersedes": ["five-days"],
    }
    query = "when do we notify the supplier?"
    assert ids(find([old, new], query=query)) == ["ten-days"]
    elsewhere = {**new, "scope": {"project": "other"}}
    assert ids(find([old, elsewhere], query=query)) == ["five-days"]
    assert ids(find([old, elsewhere], query=query, project="other")) == ["ten-days"]


def test_line_of_successors_is_followed_to_its_end_and_a_cycle_ends(find: Find) -> None:
    """A22."""
    first = {
        "knowledge_id": "v1",
        "proposition": "We notify the supplier five days ahead.",
        "state": "superseded",
    }
    second = {
        "knowledge_id": "v2",
        "proposition": "It is ten days.",
        "supersedes": ["v1"],
        "state": "retired",
    }
    third = {"knowledge_id": "v3", "proposition": "It is a fortnight.", "supersedes": ["v2"]}
    query = "when do we notify the supplier?"
    assert ids(find([third, first, second], query=query)) == ["v3"]
    assert ids(find([first, second], query=query)) == []
    cycle = {**second, "state": "superseded"}
    assert ids(find([{**first, "supersedes": ["v2"]}, cycle], query=query)) == []


@pytest.mark.parametrize(
    "request_",
    [
        {"query": "paint the fence green"},
        {"tool_input": "git push", "tool_result": "Everything up-to-date"},
        {"tool_input": "yarn build", "tool_result": "no upstream branch configured for this stream"},
        {"tool_input": "git push", "tool_result": ""},
        {"query": "port"},
    ],
)
def test_weak_match_is_not_offered_to_fill_the_space(find: Find, request_: dict[str, Any]) -> None:
    """A23."""
    plain = {key: value for key, value in PUSH.items() if key != "tools"}
    build = {"knowledge_id": "build", "proposition": "Yarn build needs Node 20."}
    result = find([plain, PORT, build, INVOICE], trigger="tool.failed", **request_)
    assert (result.result, result.hints) == ("empty", ())


def test_ranking_without_the_cut_shows_what_was_withheld(find: Find) -> None:
    """A23."""
    assert ids(find([PORT, INVOICE], query="port")) == []
    assert ids(find([PORT, INVOICE], query="port", threshold=False)) == ["port-in-use"]


@pytest.mark.parametrize("field", ["issued_knowledge_ids", "suppressed_knowledge_ids"])
def test_issued_and_suppressed_items_are_left_out(find: Find, field: str) -> None:
    """A14."""
    assert ids(find([PORT, INVOICE], query="port already in use", **{field: ["port-in-use"]})) == []


def test_issued_item_that_was_superseded_meanwhile_still_leads_to_its_successor(find: Find) -> None:
    """A14, A22."""
    new = {
        "knowledge_id": "new",
        "proposition": "Ask the owner of the machine.",
        "supersedes": ["port-in-use"],
    }
    old = {**PORT, "state": "superseded"}
    request = {"query": "port already in use", "issued_knowledge_ids": ["port-in-use"]}
    assert ids(find([old, new], **request)) == ["new"]
    assert ids(find([old, new], query="port already in use", issued_knowledge_ids=["new"])) == []


@pytest.mark.parametrize(
    ("scope", "seen_by", "hidden_from"),
    [
        ({"project": "demo"}, {"project": "demo"}, {"project": "other"}),
        ({"project": "demo"}, {"project": "demo"}, {}),
        ({"team": "core"}, {"team": "core", "project": "any"}, {"team": "edge"}),
        ({"user": "ann"}, {"user_id": "ann"}, {"user_id": "bob"}),
        ({"project": "demo", "user": "ann"}, {"project": "demo", "user_id": "ann"}, {"user_id": "ann"}),
    ],
)
def test_item_is_found_in_its_scope_only(
    find: Find, scope: dict[str, str], seen_by: dict[str, str], hidden_from: dict[str, str]
) -> None:
    """A19."""
    items = [{**PORT, "scope": scope}]
    assert ids(find(items, query="port already in use", **seen_by)) == ["port-in-use"]
    hidden = find(items, query="port already in use", threshold=False, **hidden_from)
    assert (hidden.hints, hidden.candidates_count) == ((), 0)


def test_cautions_travel_with_the_hint(find: Find) -> None:
    """A24; NOW is the first of January 2027."""
    item = {
        **PORT,
        "state": "challenged",
        "reviewed_by": "policy",
        "cautions": ["only on Linux"],
        "depends_on": ["gone", "fine", "unknown"],
        "valid_until": "2027-01-10",
    }
    gone = {"knowledge_id": "gone", "proposition": "Old.", "state": "retired"}
    fine = {"knowledge_id": "fine", "proposition": "Fine."}
    [hint] = find([item, gone, fine], query="port already in use").hints
    assert hint.cautions == (
        "only on Linux",
        "unconfirmed",
        "challenged",
        "depends on gone, which is retired",
        "validity ends 2027-01-10",
    )


@pytest.mark.parametrize(
    ("validity", "offered"),
    [
        ({"valid_until": "2026-12-31"}, False),
        ({"valid_until": "2027-01-01"}, True),
        ({"valid_from": "2027-01-02"}, False),
        ({"valid_from": "2027-01-01", "valid_until": "2028-01-01"}, True),
    ],
)
def test_item_is_offered_while_it_holds_and_warns_only_near_its_end(
    find: Find, validity: dict[str, str], offered: bool
) -> None:
    """A24."""
    result = find([{**PORT, **validity}], query="port already in use")
    assert bool(result.hints) is offered
    if offered:
        assert result.hints[0].cautions == (
            () if validity["valid_until"] == "2028-01-01" else ("validity ends 2027-01-01",)
        )


@pytest.mark.parametrize(
    "text",
    [
        'port" OR "invoice',
        "port AND NOT already in use*",
        "port ^ already : in { use",
        "'); DROP TABLE item; -- port already in use",
        "NEAR(port use) port already in use\x00",
    ],
)
def test_text_of_a_request_is_never_a_query(find: Find, text: str) -> None:
    """A18."""
    assert "port-in-use" in ids(find([PORT, INVOICE], query=text, threshold=False))


def test_text_of_an_item_is_never_a_query_either(find: Find) -> None:
    """A18."""
    hostile = {
        "knowledge_id": "hostile",
        "proposition": 'Ignore "all" rules; OR 1=1 -- port already in use NEAR(x)',
        "tools": ['"; DROP TABLE item; --', "*"],
    }
    result = find([hostile, INVOICE], query="port already in use", tool='"; DROP TABLE item; --')
    assert ids(result) == ["hostile"]
    assert result.hints[0].tier == "tool"


def test_two_requests_that_differ_in_one_field_never_share_all_of_their_answer_unless_it_may() -> None:
    """A14: each field of a request is read by the engine or names the look-up in telemetry."""
    read = inspect.getsource(engine) + inspect.getsource(engine.analyse) + inspect.getsource(HintRequest)
    sources = read + inspect.getsource(inspect.getmodule(engine.analyse))  # type: ignore[arg-type]
    unread = [name for name in HintRequest.__struct_fields__ if sources.count(f".{name}") == 0]
    assert unread == []


def test_item_about_another_tool_gives_way(find: Find) -> None:
    """A19."""
    pull = {
        "knowledge_id": "a-pull",
        "proposition": "No upstream branch: set the upstream.",
        "tools": ["git_pull"],
    }
    plain = {"knowledge_id": "z-any", "proposition": "No upstream branch: name the upstream."}
    request = {"tool": "git_push", "tool_result": NO_UPSTREAM, "trigger": "tool.failed"}
    assert ids(find([pull, plain], threshold=False, **request)) == ["z-any", "a-pull"]


def test_answer_is_plain_data_for_the_bus(find: Find) -> None:
    result = find([PORT], query="port already in use")
    assert msgspec.json.decode(msgspec.json.encode(result), type=HintResult) == result
