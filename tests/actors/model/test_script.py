"""Scripts: which rule answers which request, and what is refused when a script is read."""

from pathlib import Path
from typing import Any

import pytest

from temporality.actors.model.conversation import Conversation
from temporality.actors.model.player import NoRule, Played, play
from temporality.actors.model.provider import ModelReply
from temporality.actors.model.script import Failure
from temporality.actors.model.script_file import load_script, parse_script
from temporality.protocol.block import OPENING
from temporality.protocol.errors import UserError

from .servers import assistant, tool, user

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "scripts"


def block(text: str) -> dict[str, Any]:
    return user(f"{OPENING}\n{text}\n</temporality.memory>")


def answer(script: str, *messages: dict[str, Any], failed: dict[str, int] | None = None) -> Played | NoRule:
    conversation = Conversation(messages, model="demo", tools=lambda: ("git__git_diff",))
    return play(parse_script(script), conversation, failed or {})


def said(script: str, *messages: dict[str, Any]) -> str:
    """Return the text of the reply."""
    played = answer(script, *messages)
    assert isinstance(played, Played)
    assert isinstance(played.answer, ModelReply)
    return played.answer.content


def applies(when: str, *messages: dict[str, Any]) -> bool:
    """Tell whether a rule with these conditions answers."""
    rules = f"replies:\n- when: {when}\n  reply: {{content: yes it does}}\n- reply: {{content: other}}\n"
    return said(rules, *messages) == "yes it does"


FAILED = [
    {"role": "system", "content": "be brief"},
    user("fix the build"),
    assistant(("c1", "git__git_diff"), ("c2", "look")),
    tool("c1", "Error (timeout):\nno answer from port 80"),
    tool("c2", "fine"),
]
HINTED = [*FAILED, block("- git-scope: use a range")]
LATER = [*HINTED, assistant(("c3", "git__git_diff")), tool("c3", "diff --git")]


@pytest.mark.parametrize(
    ("when", "messages", "holds"),
    [
        ("{turn: 2}", FAILED, True),
        ("{turn: 1}", FAILED, False),
        ("{turn: {min: 2, max: 3}}", LATER, True),
        ("{turn: {max: 2}}", LATER, False),
        ("{new_replies: 2}", FAILED, True),
        ("{new_replies: 2}", LATER, False),
        ("{last: reply}", FAILED, True),
        ("{last: block}", HINTED, True),
        ("{last: user}", FAILED[:2], True),
        ("{failed: true}", FAILED, True),
        ("{failed: false}", FAILED, False),
        ("{failed: timeout}", FAILED, True),
        ("{failed: tool_error}", FAILED, False),
        ("{failed: true}", LATER, False),
        ("{called: look}", FAILED, True),
        ("{called: look}", LATER, False),
        ("{calls: {git__git_diff: 2}}", LATER, True),
        ("{calls: {git__git_diff: {max: 1}}}", LATER, False),
        ("{offers: git__git_diff}", FAILED, True),
        ("{offers: [git__git_diff, other]}", FAILED, False),
        ("{model: demo}", FAILED, True),
        ("{model: gpt}", FAILED, False),
        ("{system: brief}", FAILED, True),
        ("{user: build}", HINTED, True),
        ("{user: git-scope}", HINTED, False),
        ("{replies: [port 80, fine]}", FAILED, True),
        ("{last_reply: port 80}", FAILED, False),
        ("{block: true}", FAILED, False),
        ("{block: git-scope}", HINTED, True),
        ("{block: git-scope}", LATER, False),
        ("{block: {not_contains: git-scope}}", HINTED, False),
        ("{block: false}", LATER, True),
        ("{blocks: git-scope}", LATER, True),
        ("{request: {contains: fine, not_contains: [unheard]}}", LATER, True),
        ("{request: {matches: 'port \\d+'}}", LATER, True),
        ("{request: {matches: '^port \\d+'}}", LATER, False),
        ("{turn: 2, failed: true, block: true}", FAILED, False),
        ("{turn: 2, failed: true, block: true}", HINTED, True),
    ],
)
def test_condition(when: str, messages: list[dict[str, Any]], holds: bool) -> None:
    assert applies(when, *messages) is holds


def test_first_rule_that_applies_answers() -> None:
    script = """
    replies:
    - {when: {turn: 1, user: other}, reply: {content: first}}
    - {when: {turn: 1}, reply: {content: second}}
    - {reply: {content: third}}
    """
    assert said(script, user("hi")) == "second"


def test_no_rule_is_an_answer_that_says_what_the_request_was_like() -> None:
    played = answer("replies: [{when: {turn: 9}, reply: {}}]", *FAILED)
    assert isinstance(played, NoRule)
    assert "turn 2, ends with a reply message, 2 new replies, 1 of them failures" in played.message


def test_rule_with_times_replies_so_often_in_a_conversation_as_the_history_shows() -> None:
    script = """
    replies:
    - {name: again, times: 2, reply: {tool_calls: [{name: look, repeat: 2}]}}
    - {reply: {content: enough}}
    """
    messages = [user("go")]
    ids: list[str] = []
    for _ in range(2):
        played = answer(script, *messages)
        assert isinstance(played, Played)
        assert isinstance(played.answer, ModelReply)
        ids = [call.id for call in played.answer.tool_calls]
        messages += [assistant(*((call, "look") for call in ids)), *(tool(call, "no") for call in ids)]
    assert ids == ["call_2_again_0", "call_2_again_1"]
    assert said(script, *messages) == "enough"


def test_failure_with_times_stops_applying_to_the_same_request() -> None:
    script = "replies: [{name: busy, fail: {status: 429, times: 2}}, {reply: {content: hi}}]"
    for failed, expected in ((0, Failure), (1, Failure), (2, ModelReply)):
        played = answer(script, user("hi"), failed={"busy": failed})
        assert isinstance(played, Played)
        assert isinstance(played.answer, expected)


def test_captured_values_fill_content_names_and_arguments_of_any_depth() -> None:
    script = """
    replies:
    - capture: {port: {matches: 'port (\\d+)'}, word: {in: user, matches: '\\w+'}}
      reply:
        content: "turn {{turn}}: {{ word }} on {{port}}"
        tool_calls:
        - {name: "open_{{word}}", arguments: {port: "{{port:int}}", deep: [{at: ":{{port}}"}]}}
        - {name: look, raw_arguments: "{\\"p\\": {{port}}"}
    """
    played = answer(script, *FAILED)
    assert isinstance(played, Played)
    assert isinstance(played.answer, ModelReply)
    assert played.answer.content == "turn 2: build on 80"
    assert [(call.name, call.arguments) for call in played.answer.tool_calls] == [
        ("open_build", '{"port":80,"deep":[{"at":":80"}]}'),
        ("look", '{"p": 80'),
    ]


def test_rule_whose_capture_finds_nothing_does_not_apply() -> None:
    script = """
    replies:
    - {capture: {port: {matches: 'port (\\d+)'}}, reply: {content: "{{port}}"}}
    - {reply: {content: none}}
    """
    assert said(script, user("port 80")) == "none"
    assert said(script, *FAILED) == "80"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "s.yaml: is empty"),
        ("replies: [", "s.yaml:1: is not YAML"),
        ("model: x\n", "s.yaml:1: "),
        ("replies:\n- when: {}\n  repply: {}\n", "s.yaml:3 (replies[0].repply): unknown key 'repply'"),
        ("replies:\n- reply: {content: 1}\n", "s.yaml:2 (replies[0].reply.content): Expected `str`"),
        ("replies:\n- reply: {}\n  reply: {}\n", "s.yaml:3: `reply` stands here twice"),
        ("replies:\n- reply: {}\n  fail: {status: 400}\n", "exactly one of `reply` and `fail`"),
        ("replies:\n- fail: {status: 400, hang_s: 1}\n", "exactly one of `status`"),
        ("replies:\n- fail: {hang_s: 1, message: x}\n", "belong to a failure with a `status`"),
        ("replies:\n- {times: 2, reply: {content: x}}\n", "needs `tool_calls`"),
        ("replies:\n- reply: {content: '{{port}}'}\n", "no capture gives `{{port}}` a value"),
        ("replies:\n- when: {user: {matches: '('}}\n  reply: {}\n", "is not a regular expression"),
        ("replies:\n- {name: a, reply: {}}\n- {name: a, reply: {}}\n", "s.yaml:3 (replies[1].name): two"),
        ("replies:\n- {name: A_b, reply: {}}\n", "s.yaml:2 (replies[0].name)"),
        ("replies: &a [*a]\n", "s.yaml: is not YAML"),
    ],
)
def test_script_that_is_wrong_is_refused_with_its_place(text: str, error: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_script(text, where="s.yaml")
    assert error in str(raised.value)


def test_typo_gets_a_suggestion() -> None:
    with pytest.raises(UserError) as raised:
        parse_script("replies:\n- when: {user: {contain: x}}\n  reply: {}\n")
    assert raised.value.do == "did you mean 'contains'?"


def test_file_that_is_missing_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read"):
        load_script(tmp_path / "none.yaml")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_example_is_a_valid_script(path: Path) -> None:
    load_script(path)


@pytest.mark.parametrize(("hint", "answer_due"), [(True, 3), (False, 4)])
def test_example_agent_needs_fewer_calls_when_it_is_offered_the_hint(hint: bool, answer_due: int) -> None:
    """What a benchmark of behaviour is built on: the same script, with and without a block."""
    script = load_script(EXAMPLES / "uses_a_hint.yaml")
    messages, final, turn = [user("what changed last?")], "", 0
    for turn in range(1, 9):
        played = play(script, Conversation(messages), {})
        assert isinstance(played, Played)
        assert isinstance(played.answer, ModelReply)
        final = played.answer.content
        if not played.answer.tool_calls:
            break
        (called,) = played.answer.tool_calls
        messages.append(assistant((called.id, called.name), content=played.answer.content or None))
        if "HEAD~1" in called.arguments:
            messages.append(tool(called.id, "diff --git a b"))
            continue
        messages.append(tool(called.id, "Error (tool_error):\nbad revision 'LAST'"))
        if hint and turn == 1:
            messages.append(block("- git-diff-target: the target is a revision"))
    assert turn == answer_due
    assert ("is read" in final) is hint
