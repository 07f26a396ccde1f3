"""What is found, in which order, and what is withheld (A14, A18 to A21, A23)."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

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


def test_skill_covers_an_item_from_three_quarters_of_its_words(find: Find) -> None:
    """A14."""
    items = [
        {"knowledge_id": "a", "proposition": "Alpha beta gamma delta."},
        {"knowledge_id": "b", "proposition": "Alpha beta omega sigma."},
    ]
    for text, order in (("alpha beta gamma", ["b", "a"]), ("alpha beta", ["a", "b"])):
        result = find(items, query="alpha beta gamma", active_skills=[{"name": "s", "text": text}])
        assert ids(result) == order


def test_words_that_stand_together_in_both_texts_count_more_than_apart(find: Find) -> None:
    """A19."""
    items = [
        {"knowledge_id": "apart", "proposition": "Branch protection rules name who may delete."},
        {"knowledge_id": "together", "proposition": "Who may delete branch rules, name protection."},
    ]
    assert ids(find(items, query="delete branch", threshold=False)) == ["together", "apart"]


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


def test_one_word_in_common_with_a_task_is_a_coincidence(find: Find) -> None:
    """A23."""
    item = {"knowledge_id": "k1", "proposition": "Ports are documented."}
    assert ids(find([item], query="which ports does the harbour have?")) == []
    assert ids(find([item], query="where are the ports documented?")) == ["k1"]


def test_ranking_without_the_cut_shows_what_was_withheld(find: Find) -> None:
    """A23."""
    assert ids(find([PORT, INVOICE], query="port")) == []
    assert ids(find([PORT, INVOICE], query="port", threshold=False)) == ["port-in-use"]


@pytest.mark.parametrize("field", ["issued_knowledge_ids", "suppressed_knowledge_ids"])
def test_issued_and_suppressed_items_are_left_out(find: Find, field: str) -> None:
    """A14."""
    assert ids(find([PORT, INVOICE], query="port already in use", **{field: ["port-in-use"]})) == []


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


COVERING = {"name": "ports", "text": "Stop the listening process if a port is already in use."}
FIELDS: list[tuple[str, Any]] = [
    ("trigger", "mcp.first_call"),
    ("tool", "git_push"),
    ("mcp_server", "books"),
    ("tool_input", "harbour --deep"),
    ("tool_result", "harbour closed"),
    ("error_class", "timeout"),
    ("situation_key", "key-7"),
    ("query", "is the port already in use?"),
    (
        "active_skills",
        [COVERING],
    ),
    ("issued_knowledge_ids", ["port-in-use"]),
    ("suppressed_knowledge_ids", ["port-in-use"]),
    ("entities", ["Contoso"]),
    ("topics", ["billing"]),
    ("project", "demo"),
    ("user_id", "ann"),
    ("team", "core"),
    ("run_id", "r1"),
    ("task_id", "t1"),
    ("actor_id", "a1"),
    ("team_root", "r0"),
    ("activation_id", "act-1"),
    ("activation_source_id", "call-1"),
]


@pytest.mark.parametrize(("field", "value"), FIELDS)
def test_every_field_changes_the_answer_or_names_the_look_up(find: Find, field: str, value: Any) -> None:
    """A14: no field without a consumer."""
    items = [
        {**PORT, "tools": ["git_push"], "mcp_servers": ["books"], "error_classes": ["timeout"]},
        {**INVOICE, "situation_keys": ["key-7"], "entities": ["Contoso"], "topics": ["billing"]},
        {"knowledge_id": "harbour", "proposition": "A closed harbour needs --deep."},
        *(
            {"knowledge_id": f"of-{part}", "proposition": "Port in use: ask.", "scope": {part: name}}
            for part, name in (("project", "demo"), ("user", "ann"), ("team", "core"))
        ),
        {"knowledge_id": "z-other", "proposition": "A port in use by docker is freed at once."},
    ]
    plain = {"query": "port in use, process listens"}
    changed = {**plain, field: value}

    def seen(request: dict[str, Any]) -> object:
        answer = find(items, threshold=False, **request)
        return answer, msgspec.convert(request, HintRequest).correlation()

    assert seen(changed) != seen(plain)


def test_every_field_of_a_request_is_tried() -> None:
    """A14."""
    assert {field for field, _ in FIELDS} == set(HintRequest.__struct_fields__)


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
