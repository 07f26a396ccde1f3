"""Python functions as tools: how they are described, called, and how they fail."""

from threading import get_ident
from typing import Any

import anyio
import pytest

from temporality.actors.executor.content import Raised, Result, Returned
from temporality.actors.executor.python import PythonTools
from temporality.protocol.agent import Effect
from temporality.protocol.errors import UserError
from temporality.protocol.tool import ToolDefinition

MODULE = "executor_sample_tools"


pytestmark = pytest.mark.usefixtures("samples")


def tools(
    *, threads_max: int = 4, timeout_s: float = 20.0, allow: tuple[str, ...] | None = None
) -> PythonTools:
    return PythonTools(threads_max=threads_max, timeout_s=timeout_s, allow=allow)


async def call(
    function: str, python: PythonTools | None = None, effect: Effect = "once", **arguments: Any
) -> Result:
    return await (python or tools()).call(f"{MODULE}:{function}", arguments, effect=effect, key="call-1")


async def definition(function: str) -> ToolDefinition:
    return (await tools().find(f"{MODULE}:{function}")).definition


async def test_definition_comes_from_signature_and_docstring() -> None:
    assert await definition("greet") == ToolDefinition(
        name="greet",
        tool="greet",
        description="Greet somebody.\n\nPolitely.",
        parameters={
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "times": {"type": "integer", "minimum": 1, "maximum": 3, "default": 1},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
        effect="none",
        python=f"{MODULE}:greet",
    )


async def test_types_of_ones_own_are_described_beside_the_parameters() -> None:
    parameters = (await definition("book")).parameters
    assert parameters["properties"]["place"] == {"$ref": "#/$defs/Place"}
    assert parameters["$defs"]["Place"]["required"] == ["name"]
    assert parameters["properties"]["kind"] == {"enum": ["day", "night"], "default": "day"}


async def test_effect_is_once_unless_the_function_declares_another() -> None:
    assert (await definition("book")).effect == "once"
    assert (await definition("keyed")).effect == "idempotent"


async def test_arguments_are_converted_to_the_types_that_the_function_names() -> None:
    booked = await call("book", place={"name": "Sofia"}, day="2026-11-30", seats=[1, 2])
    assert isinstance(booked, Returned)
    assert booked.data == {"place": "Sofia", "year": 2026, "seats": 2, "kind": "day"}
    assert booked.text == '{"place":"Sofia","year":2026,"seats":2,"kind":"day"}'


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        pytest.param({"name": 3}, "$.name", id="wrong type"),
        pytest.param({"name": "Ada", "times": 9}, "$.times", id="out of range"),
        pytest.param({"times": 1}, "name", id="missing"),
        pytest.param({"name": "Ada", "nmae": "x"}, "nmae", id="unknown"),
    ],
)
async def test_wrong_arguments_are_refused_with_the_path_of_the_field(
    arguments: dict[str, Any], path: str
) -> None:
    refused = await call("greet", **arguments)
    assert isinstance(refused, Raised)
    assert (refused.error_class, refused.effect) == ("invalid_arguments", "none")
    assert path in refused.text


async def test_function_that_wants_the_key_gets_the_call_and_the_model_never_sees_it() -> None:
    assert await call("keyed", note="n") == Returned("n call-1")
    assert list((await definition("keyed")).parameters["properties"]) == ["note"]
    refused = await call("keyed", note="n", idempotency_key="of the model")
    assert isinstance(refused, Raised)
    assert refused.error_class == "invalid_arguments"


async def test_async_function_runs_in_the_loop_and_a_plain_one_in_a_thread() -> None:
    assert await call("soon", text="hi") == Returned("hi")
    elsewhere = await call("where")
    assert isinstance(elsewhere, Returned)
    assert elsewhere.data != get_ident()


async def test_nothing_is_an_empty_reply_and_junk_becomes_text() -> None:
    assert await call("nothing") == Returned("")
    assert await call("junk") == Returned("a\ufffd\x00b")


async def test_exception_gives_its_name_and_the_tools_own_last_frames() -> None:
    failed = await call("broken", key="id-7")
    assert isinstance(failed, Raised)
    assert (failed.error_class, failed.effect) == ("KeyError", "none")
    assert failed.text.endswith("KeyError: 'id-7'")
    assert "in _deep" in failed.text
    assert "actors/executor" not in failed.text.replace("tests/actors/executor", "")


async def test_tool_can_end_neither_the_process_nor_the_call_of_another() -> None:
    left = await call("leaves")
    assert isinstance(left, Raised)
    assert left.error_class == "SystemExit"
    gave_up = await call("gives_up")
    assert isinstance(gave_up, Raised)
    assert gave_up.error_class == "CancelledError"


@pytest.mark.parametrize(
    ("effect", "known"), [("once", "uncertain"), ("idempotent", "uncertain"), ("none", "none")]
)
async def test_function_past_its_deadline_is_answered_and_leaves_doubt_if_it_has_an_effect(
    effect: Effect, known: str
) -> None:
    for function in ("wait_for_ever", "block"):
        late = await call(function, tools(timeout_s=0.05), effect)
        assert isinstance(late, Raised)
        assert (late.error_class, late.effect) == ("timeout", known)


async def test_function_that_hangs_keeps_its_place_until_it_returns(samples: Any) -> None:
    python = tools(threads_max=1, timeout_s=0.05)
    await call("block", python)
    refused = await call("greet", python, name="Ada")
    assert isinstance(refused, Raised)
    assert (refused.error_class, refused.effect) == ("timeout", "none")
    assert "no free thread" in refused.text
    samples.RELEASE.set()
    with anyio.fail_after(20):
        while isinstance(await call("greet", python, name="Ada"), Raised):
            await anyio.lowlevel.checkpoint()


async def test_busy_function_does_not_stop_the_loop(samples: Any) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, "block")
        assert await call("soon", text="meanwhile") == Returned("meanwhile")
        samples.RELEASE.set()


@pytest.mark.parametrize(
    ("reference", "line"),
    [
        pytest.param("no_such_module_x:f", "can't be imported: ModuleNotFoundError", id="no module"),
        pytest.param(f"{MODULE}:absent", "has no `absent`", id="no function"),
        pytest.param(MODULE, "write package.module:function", id="no colon"),
        pytest.param(f"{MODULE}:NOT_A_FUNCTION", "not a function", id="not a function"),
        pytest.param(f"{MODULE}:anything", r"\*args", id="variable arguments"),
        pytest.param(f"{MODULE}:opaque", "no JSON Schema", id="type without a schema"),
        pytest.param(f"{MODULE}:misdeclared", "use one of none, idempotent, once", id="misspelt effect"),
    ],
)
async def test_function_that_can_not_be_a_tool_is_explained_in_one_line(reference: str, line: str) -> None:
    with pytest.raises(UserError, match=line) as failure:
        await tools().find(reference)
    assert "\n" not in str(failure.value)
    refused = await tools().call(reference, {}, effect="once", key="call-1")
    assert isinstance(refused, Raised)
    assert (refused.error_class, refused.effect) == ("unknown_tool", "none")


async def test_only_allowed_modules_and_functions_are_called() -> None:
    with pytest.raises(UserError, match="allow_python"):
        await tools(allow=()).find("os:getcwd")
    with pytest.raises(UserError, match="allow_python"):
        await tools(allow=(f"{MODULE}:greet",)).find(f"{MODULE}:book")
    assert await tools(allow=(MODULE,)).find(f"{MODULE}:book")
    assert await tools(allow=(f"{MODULE}:greet",)).find(f"{MODULE}:greet")
