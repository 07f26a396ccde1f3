"""The tables of `docs/configuration.md` name every key, with the default that the code has, and no others."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from temporality.deploy.config import _OVERRIDES, CHILD_VARIABLE, CRASH_VARIABLE, PREFIX, Config
from temporality.protocol.agent import AgentSpec

TEXT = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
AGENTS, _, DEPLOYMENTS = TEXT.partition("\n## Deployments\n")
FIELD_ROW = re.compile(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|(?: ([^|]+) \|)?? ([^|]+) \|$", re.MULTILINE)

Row = tuple[str, str]
"""A key and its default, as a reader sees them."""


def rows(text: str) -> dict[str, tuple[str, str, str | None, str]]:
    """Return default, values, variable and explanation of each key in the tables of `text`."""
    return {
        key: (default.strip(), values, variable, does)
        for key, default, values, variable, does in FIELD_ROW.findall(text)
    }


def keys(kind: inspect.Type, path: str = "") -> Iterator[Row]:
    """Yield every key below a type that holds a value of its own, not those that only group others."""
    match kind:
        case inspect.Metadata():
            yield from keys(kind.type, path)
        case inspect.StructType():
            for field in kind.fields:
                name = f"{path}.{field.encode_name}".lstrip(".")
                if not isinstance(field.type, inspect.StructType):
                    yield name, default_of(field)
                yield from keys(field.type, name)
        case inspect.DictType():
            yield from keys(kind.value_type, f"{path}.<key>")
        case inspect.VarTupleType():
            yield from keys(kind.item_type, f"{path}[]")
        case _:
            return


def default_of(field: inspect.Field) -> str:
    if field.required:
        return "required"
    value: Any = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case "" | () | {}:
            return "empty"
        case _:
            return str(value)


@pytest.mark.parametrize(
    ("text", "kind"), [(AGENTS, AgentSpec), (DEPLOYMENTS, Config)], ids=["agents", "deployments"]
)
def test_every_key_stands_in_the_tables_with_its_default_and_no_other(text: str, kind: type) -> None:
    documented = {key: default for key, (default, *_) in rows(text).items()}
    expected = dict(keys(inspect.type_info(kind)))
    assert len(expected) > 8
    assert documented == expected


def test_every_key_says_what_it_does() -> None:
    for key, (_, _, _, does) in rows(TEXT).items():
        assert len(does.split()) >= 3, key


def test_every_variable_stands_beside_the_key_that_it_overrides() -> None:
    found = {
        key: set(re.findall(r"TEMPORALITY_[A-Z_]+", variable or ""))
        for key, (_, _, variable, _) in rows(DEPLOYMENTS).items()
    }
    expected = {".".join(path): {PREFIX + name} for name, path in _OVERRIDES.items()}
    assert found == expected


def test_no_other_variable_is_named_but_those_of_processes_and_tests() -> None:
    named = set(re.findall(r"TEMPORALITY_[A-Z_]+", TEXT))
    assert named == {PREFIX + name for name in _OVERRIDES} | {CHILD_VARIABLE, CRASH_VARIABLE}
