"""An agent's file says what it says: nothing is guessed, nothing silently ignored, no secret resolved."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from temporality.deploy.agent_file import load_agent
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
from temporality.protocol.codec import decode, encode
from temporality.protocol.errors import UserError

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.yaml"))

WHOLE = """\
name: git-helper
instructions: |
  Answer in one sentence.
model:
  {provider: openai, name: demo, base_url: "${OPENAI_BASE_URL}", api_key: "${OPENAI_API_KEY}",
   context_tokens: 128000}
tools:
  mcp:
    git:
      {command: mcp-server-git, args: [], env: {TOKEN: "${GIT_TOKEN}"}, read_timeout_s: 30, session: run,
       effects: {git_commit: once}}
    docs: {url: "http://127.0.0.1:9000/mcp", headers: {Authorization: "Bearer ${DOCS_TOKEN}"}}
  python: [package.module:function]
policy: {deny: [git.git_reset]}
skills: [{name: commits, path: skills/commits.md}, {name: short, text: Be short.}]
knowledge: {project: demo, team: platform}
priming: {tokens: 500}
activation:
  triggers: [tool.failed, mcp.first_call]
  limits: {turn: 2, run: 10, tool: 4, trigger: 6}
  tokens: {activation: 300, run: 1200, hint: 100}
  hints_max: 6
  deadlines: {evaluators_ms: 200, retrieval_ms: 700}
  rejected_calls: false
limits: {turns_max: 100, reply_bytes_max: 4096}
"""

NOT_YET = [
    ("tools:\n", "tools:\n  builtin: [knowledge_lookup, ask_human]\n", "$.tools", "builtin"),
    ("policy: {deny", "policy: {approve: [git.git_commit], deny", "$.policy", "approve"),
    ("policy: {deny", "policy: {approval_expires_s: 86400, deny", "$.policy", "approval_expires_s"),
    ("activation:\n", "activation:\n  holdout: 0\n", "$.activation", "holdout"),
    ("limits: {turns_max", "limits: {commits_max: 2000, turns_max", "$.limits", "commits_max"),
    ("limits: {turns_max", "limits: {hook_tokens_max: 3000, turns_max", "$.limits", "hook_tokens_max"),
    ("limits: {turns_max", "limits: {idle_expires_s: 604800, turns_max", "$.limits", "idle_expires_s"),
    ("name: git-helper\n", "name: git-helper\nhooks: [{kind: rag, name: docs, priority: 0}]\n", "$", "hooks"),
]
"""Keys of later versions: refused, since an agent that relies on them would not be held to them."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the agent is, with the skill that the whole example names."""
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "commits.md").write_text("Маленькие коммиты.\n", encoding="utf-8")
    return tmp_path / "agent.yaml"


def loaded(path: Path, text: str) -> AgentSpec:
    path.write_text(text, encoding="utf-8")
    return load_agent(path)


def refused(path: Path, text: str) -> tuple[str, str, str]:
    with pytest.raises(UserError) as raised:
        loaded(path, text)
    assert "\n" not in str(raised.value)
    return raised.value.where.removeprefix(f"{path}: "), raised.value.what, raised.value.do


def test_whole_agent_is_read_with_every_key_it_has(path: Path) -> None:
    assert loaded(path, WHOLE) == AgentSpec(
        name="git-helper",
        instructions="Answer in one sentence.\n",
        model=ModelSpec(
            name="demo", base_url="${OPENAI_BASE_URL}", api_key="${OPENAI_API_KEY}", context_tokens=128_000
        ),
        tools=ToolsSpec(
            mcp={
                "git": McpServerSpec(
                    command="mcp-server-git",
                    env={"TOKEN": "${GIT_TOKEN}"},
                    session="run",
                    effects={"git_commit": "once"},
                ),
                "docs": McpServerSpec(
                    url="http://127.0.0.1:9000/mcp", headers={"Authorization": "Bearer ${DOCS_TOKEN}"}
                ),
            },
            python=("package.module:function",),
        ),
        policy=PolicySpec(deny=("git.git_reset",)),
        skills=(
            SkillSpec(name="commits", text="Маленькие коммиты.\n"),
            SkillSpec(name="short", text="Be short."),
        ),
        knowledge=KnowledgeSpec(project="demo", team="platform"),
        priming=PrimingSpec(tokens=500),
        activation=ActivationSpec(
            triggers=("tool.failed", "mcp.first_call"),
            limits=ActivationLimits(turn=2, run=10, tool=4, trigger=6),
            tokens=ActivationTokens(activation=300, run=1_200, hint=100),
            hints_max=6,
            deadlines=ActivationDeadlines(evaluators_ms=200, retrieval_ms=700),
            rejected_calls=False,
        ),
        limits=RunLimits(turns_max=100, reply_bytes_max=4_096),
    )


def test_agent_that_was_read_survives_its_run_s_first_message(path: Path) -> None:
    agent = loaded(path, WHOLE)
    assert decode(encode(agent), AgentSpec) == agent


def test_secrets_stay_references(path: Path) -> None:
    """The process that needs one resolves it from its own environment; no message carries it."""
    text = encode(loaded(path, WHOLE)).decode()
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "GIT_TOKEN", "DOCS_TOKEN"):
        assert f"${{{name}}}" in text


def test_smallest_agent_is_a_name_and_a_model(path: Path) -> None:
    agent = loaded(path, "name: a\nmodel: {name: m}\n")
    assert agent == AgentSpec(name="a", model=ModelSpec(name="m"))
    assert agent.activation.triggers is None


@pytest.mark.parametrize(("old", "new", "place", "key"), NOT_YET, ids=[key for *_, key in NOT_YET])
def test_key_of_a_later_version_is_refused_with_its_place(
    path: Path, old: str, new: str, place: str, key: str
) -> None:
    text = WHOLE.replace(old, new, 1)
    assert yaml.safe_load(text) != yaml.safe_load(WHOLE)
    found = refused(path, text)
    assert found[:2] == (place, f"unknown key {key!r}")
    assert found[2]


@pytest.mark.parametrize(
    ("text", "place", "what", "do"),
    [
        ("nmae: a\nmodel: {name: m}", "$", "unknown key 'nmae'", "did you mean 'name'?"),
        ("model: {name: m}", "$", "Object missing required field `name`", "add `name`"),
        ("name: a", "$", "Object missing required field `model`", "add `model`"),
        ("name: a\nmodel: {}", "$.model", "Object missing required field `name`", "add `name`"),
        ("name: a\nmodel: gpt", "$.model", "Expected `object`, got `str`", "write a mapping with"),
        ("name: 1.5\nmodel: {name: m}", "$.name", "Expected `str`, got `float`", "write text"),
        ("name: ''\nmodel: {name: m}", "$.name", "Expected `str` of length >= 1", "write text"),
        ("name: a\nmodel: {name: m}\npriming: {tokens: -1}",
         "$.priming.tokens", "Expected `int` >= 0", "write a whole number"),
        ("name: a\nmodel: {name: m}\ntools: {mcp: {a: {command: x}, b: {command: x, session: own}}}",
         "$.tools.mcp.b.session", "Invalid enum value 'own'", "write one of run, shared"),
        ("name: a\nmodel: {name: m}\nskills: [{name: a}]",
         "$.skills[0]", "Object missing required field `text`", "add `text`"),
        ("name: a\nmodel: {name: m}\nskills: [text]",
         "$.skills[0]", "Expected `object`, got `str`", "write a mapping with the keys name, text"),
        ("- name: a", "", "an agent is a mapping of keys", "see docs/examples"),
        ("", "", "an agent is a mapping of keys", "see docs/examples"),
    ],
)  # fmt: skip
def test_mistake_is_named_with_its_place_and_what_to_do(
    path: Path, text: str, place: str, what: str, do: str
) -> None:
    found = refused(path, text)
    assert found[0] == (place or str(path))
    assert found[1] == what
    assert found[2].startswith(do)


def test_invalid_yaml_is_named_with_its_line(path: Path) -> None:
    place, what, _ = refused(path, "name: a\nmodel: {name: m\ntools: {}\n")
    assert place.startswith(f"{path}:")
    assert int(place.rpartition(":")[2]) in (2, 3, 4)
    assert what.startswith("is not valid YAML")


def test_file_that_is_not_utf_8_is_refused(path: Path) -> None:
    path.write_bytes("name: агент\nmodel: {name: m}".encode("cp1251"))
    with pytest.raises(UserError, match="is not UTF-8 text — save it as UTF-8"):
        load_agent(path)


def test_file_that_is_missing_is_refused(path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        load_agent(path)


# --- skills -----------------------------------------------------------------------------------------------


def with_skill(skill: dict[str, Any]) -> str:
    return yaml.safe_dump(
        {"name": "a", "model": {"name": "m"}, "skills": [{"name": "x", "text": "y"}, skill]}
    )


def test_skill_s_path_is_relative_to_the_agent_s_file(path: Path) -> None:
    agent = loaded(path, with_skill({"name": "commits", "path": "skills/commits.md"}))
    assert agent.skills[1].text == "Маленькие коммиты.\n"


@pytest.mark.parametrize(
    ("skill", "place", "what"),
    [
        (
            {"name": "s", "path": "skills/none.md"},
            "$.skills[1].path",
            "can't be read: No such file or directory",
        ),
        ({"name": "s", "path": "skills"}, "$.skills[1].path", "can't be read: Is a directory"),
        ({"name": "s", "path": "latin.md"}, "$.skills[1].path", "is not UTF-8 text"),
        (
            {"name": "s", "path": "skills/commits.md", "text": "t"},
            "$.skills[1]",
            "has both `path` and `text`",
        ),
        ({"name": "s", "path": 3}, "$.skills[1]", "unknown key 'path'"),
        ({"path": "skills/commits.md"}, "$.skills[1]", "missing required field `name`"),
        ({"name": "s", "path": "long.md"}, "$.skills[1].text", "length <= 8192"),
    ],
)
def test_skill_that_can_t_be_had_is_named_with_its_number(
    path: Path, skill: dict[str, Any], place: str, what: str
) -> None:
    (path.parent / "latin.md").write_bytes(b"\xe9t\xe9")
    (path.parent / "long.md").write_text("x" * 8_193, encoding="utf-8")
    found = refused(path, with_skill(skill))
    assert found[0] == place
    assert what in found[1]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_in_the_docs_loads(example: Path) -> None:
    assert load_agent(example).name == example.stem


def test_there_are_examples() -> None:
    assert EXAMPLES
