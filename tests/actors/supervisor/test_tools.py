"""A tool's schema is somebody else's program: whatever it says, a call is checked or let through at once."""

import pytest

from temporality.actors.supervisor.tools import InvalidArguments, ToolTable
from temporality.protocol.tool import ToolDefinition

BROKEN = {
    "a reference that leads nowhere": {"properties": {"a": {"$ref": "#/definitions/missing"}}},
    "a reference to itself": {"$ref": "#"},
    "a reference to a foreign host": {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}},
    "a type that does not exist": {"type": "thing"},
    "a schema that is no schema": {"type": {"a": 1}},
}

ARGUMENTS = '{"a": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "b": 1}'


def check(schema: dict[str, object], arguments: str = ARGUMENTS) -> dict[str, object]:
    tool = ToolDefinition(name="t", tool="t", python="m:t", parameters=schema)
    return ToolTable((tool,)).arguments(tool, arguments)


@pytest.mark.parametrize("schema", BROKEN.values(), ids=BROKEN)
def test_schema_that_cannot_be_applied_lets_the_call_through(schema: dict[str, object]) -> None:
    assert check(schema)["b"] == 1


def test_regular_expressions_are_not_run() -> None:
    """One may take hours: this one would need 2^40 steps."""
    hostile = "^(a+)+$"
    schema = {
        "properties": {"a": {"type": "string", "pattern": hostile}},
        "patternProperties": {hostile: {"type": "string"}},
        "additionalProperties": False,
    }
    assert check(schema)["b"] == 1


def test_everything_else_of_the_schema_holds() -> None:
    schema = {"properties": {"b": {"type": "string", "pattern": "x"}}, "additionalProperties": False}
    with pytest.raises(InvalidArguments, match=r"\$\.b: 1 is not of type 'string'"):
        check(schema, '{"b": 1}')
    with pytest.raises(InvalidArguments, match="Additional properties are not allowed"):
        check(schema, '{"c": 1}')


def test_property_that_is_called_pattern_is_a_property() -> None:
    schema = {"properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}
    with pytest.raises(InvalidArguments, match=r"\$\.pattern"):
        check(schema, '{"pattern": 1}')
