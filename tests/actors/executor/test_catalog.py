"""Which tools an agent has, as the executor answers it: all of them, or one line about what is wrong."""

import os
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from temporality.actors.executor.catalog import LIST_BYTES_MAX, definitions, effect_of, listed
from temporality.actors.executor.names import NAME_LENGTH_MAX, model_name
from temporality.protocol import subjects
from temporality.protocol.agent import McpServerSpec
from temporality.protocol.codec import decode, encode
from temporality.protocol.errors import UserError
from temporality.protocol.tool import ListTools, ToolDefinition, ToolsAnswer, ToolsListed, ToolsUnavailable

SERVERS = Path(__file__).with_name("servers")
TOOLS = McpServerSpec(command=sys.executable, args=(str(SERVERS / "plain.py"),), effects={"echo": "once"})
DIES = McpServerSpec(command=sys.executable, args=(str(SERVERS / "misbehaving.py"), "dies"))
SAMPLES = "executor_sample_tools"


async def ask(desk: Any, question: ListTools) -> ToolsAnswer:
    answer = await desk.bus.request(subjects.ask("executor", "tools"), encode(question), timeout_s=30)
    answered: ToolsAnswer = decode(answer.payload, ToolsAnswer)
    return answered


@pytest.mark.usefixtures("samples")
async def test_all_tools_of_servers_and_functions_are_listed_by_the_models_names(desk: Any) -> None:
    question = ListTools(mcp={"box": TOOLS}, python=(f"{SAMPLES}:greet", f"{SAMPLES}:act"))
    async with desk.executor(environment=os.environ):
        answer = await ask(desk, question)
    assert isinstance(answer, ToolsListed)
    tools = {tool.name: tool for tool in answer.tools}
    assert list(tools) == sorted(tools)
    assert {"box__echo", "box__pay", "greet", "act"} <= set(tools)
    echo = tools["box__echo"]
    assert (echo.tool, echo.mcp_server, echo.python) == ("echo", "box", None)
    assert echo.description == "Does echo."
    assert echo.parameters["required"] == ["text"]
    assert echo.effect == "once"  # the agent's word counts more than the server's
    assert {tools[f"box__{name}"].effect for name in ("process", "put", "pay")} == {
        "none",
        "idempotent",
        "once",
    }


@pytest.mark.usefixtures("samples")
async def test_first_thing_that_is_wrong_is_told_in_the_order_of_the_agents_file(desk: Any) -> None:
    question = ListTools(mcp={"box": TOOLS, "broken": DIES}, python=(f"{SAMPLES}:absent",))
    async with desk.executor(environment=os.environ):
        answer = await ask(desk, question)
    assert isinstance(answer, ToolsUnavailable)
    assert answer.where == "tools.mcp.broken"
    assert "exited with status 7" in answer.what
    assert answer.do


async def test_agent_without_tools_gets_an_empty_list(desk: Any) -> None:
    async with desk.executor():
        assert await ask(desk, ListTools()) == ToolsListed(tools=())


def tool_of(name: str, **annotations: bool) -> types.Tool:
    hints = types.ToolAnnotations.model_validate(annotations) if annotations else None
    return types.Tool(name=name, input_schema={"type": "object"}, annotations=hints)


@pytest.mark.parametrize(
    ("annotations", "effect"),
    [
        ({}, "once"),
        ({"read_only_hint": True}, "none"),
        ({"read_only_hint": True, "idempotent_hint": True}, "none"),
        ({"idempotent_hint": True}, "idempotent"),
        ({"destructive_hint": False}, "once"),
        ({"read_only_hint": False}, "once"),
    ],
)
def test_effect_without_the_agents_word_comes_from_the_annotations(
    annotations: dict[str, bool], effect: str
) -> None:
    assert effect_of(tool_of("t", **annotations)) == effect


def test_effect_declared_for_a_tool_that_is_not_there_is_a_mistake_with_a_suggestion() -> None:
    spec = McpServerSpec(command="git", effects={"git_comit": "once"})
    with pytest.raises(UserError, match=r"tools\.mcp\.git\.effects\.git_comit: .*did you mean git_commit\?"):
        definitions("git", spec, [tool_of("git_commit")])


def test_name_that_providers_refuse_is_replaced_the_same_way_every_time() -> None:
    assert model_name("git_commit", "git") == "git__git_commit"
    dotted = model_name("notes.read", "box")
    assert dotted.startswith("box__notes_read_")
    assert dotted == model_name("notes.read", "box") != model_name("notes/read", "box")
    long = model_name("t" * 80, "box")
    assert len(long) == NAME_LENGTH_MAX
    assert long != model_name("t" * 81, "box")
    assert model_name("читать", "box").isascii()


def test_two_tools_of_one_name_are_a_mistake_that_names_both() -> None:
    answer = listed(
        [
            ToolDefinition(name="a__b", tool="b", mcp_server="a"),
            ToolDefinition(name="a__b", tool="a__b", python="m:a__b"),
        ]
    )
    assert isinstance(answer, ToolsUnavailable)
    assert "a.b and m:a__b" in answer.what


def test_list_that_fits_into_no_message_is_a_mistake() -> None:
    answer = listed([ToolDefinition(name="t", tool="t", description="d" * (LIST_BYTES_MAX + 1))])
    assert isinstance(answer, ToolsUnavailable)
    assert str(LIST_BYTES_MAX) in answer.what
