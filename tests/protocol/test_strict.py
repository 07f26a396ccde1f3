"""What people write is refused where it is wrong: with the place, the fault and what to write instead."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from temporality.protocol.agent import AgentSpec
from temporality.protocol.codec import decode
from temporality.protocol.errors import InvalidMessage, UserError
from temporality.protocol.hint import HintRequest
from temporality.protocol.message import Record
from temporality.protocol.strict import convert_strict

MINIMAL: dict[str, Any] = {"name": "a", "model": {"name": "m"}}


class Circle(Record, frozen=True, kw_only=True, tag="circle"):
    radius: float


class Square(Record, frozen=True, kw_only=True, tag="square"):
    side: Annotated[int, Meta(ge=1, le=9)] = 1
    colour: Literal["red", "green"] = "red"


class Drawing(Record, frozen=True, kw_only=True):
    shapes: tuple[Circle | Square, ...] = ()
    by_name: dict[str, Circle | Square] = msgspec.field(default_factory=dict)
    layers: dict[str, dict[str, tuple[int, ...]]] = msgspec.field(default_factory=dict)
    frame: Square | None = None
    titles: tuple[str, ...] | None = None


def refused(data: object, kind: Any = Drawing) -> tuple[str, str, str]:
    """Return path, fault and suggestion."""
    with pytest.raises(UserError) as raised:
        convert_strict(data, kind, where="f.yaml")
    where, _, path = raised.value.where.partition(": ")
    assert where == "f.yaml"
    return path, raised.value.what, raised.value.do


def faults(data: object, kind: Any) -> list[tuple[str, str]]:
    """Return place and fault of a document that is refused, nothing of one that is read."""
    try:
        convert_strict(data, kind, where="f.yaml")
    except UserError as error:
        return [(error.where, error.what)]
    return []


def agent(**more: Any) -> dict[str, Any]:
    return MINIMAL | more


# --- unknown keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "path", "do"),
    [
        ({"shape": []}, "$", "did you mean 'shapes'?"),
        ({"zzz": 1}, "$", "known keys: by_name, frame, layers, shapes, titles"),
        ({"frame": {"sied": 2}}, "$.frame", "did you mean 'side'?"),
        (
            {"shapes": [{"type": "square"}, {"type": "circle", "radus": 1}]},
            "$.shapes[1]",
            "did you mean 'radius'?",
        ),
        (
            {"by_name": {"a.b c": {"type": "square", "color": "red"}}},
            "$.by_name.a.b c",
            "did you mean 'colour'?",
        ),
        ({1: 2}, "$", "known keys: by_name, frame, layers, shapes, titles"),
    ],
)
def test_unknown_key_is_named_with_its_place_and_a_suggestion(data: Any, path: str, do: str) -> None:
    found = refused(data)
    assert (found[0], found[2]) == (path, do)
    assert found[1].startswith("unknown key ")


def test_key_of_another_member_of_a_union_is_unknown() -> None:
    """The tag decides which member's keys count."""
    assert (
        refused({"frame": None, "shapes": [{"type": "circle", "radius": 1, "side": 2}]})[1]
        == "unknown key 'side'"
    )


def test_keys_of_mappings_are_the_writer_s_own() -> None:
    drawing = convert_strict({"layers": {"any name": {"другое": [1]}}}, Drawing, where="f.yaml")
    assert drawing.layers == {"any name": {"другое": (1,)}}


def test_long_unknown_key_is_cut_in_the_message() -> None:
    assert len(refused({"k" * 10_000: 1})[1]) < 120


# --- wrong values -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "path", "do"),
    [
        ({"shapes": [{"type": "circle", "radius": "wide"}]}, "$.shapes[0].radius", "write a number"),
        ({"frame": {"side": 10}}, "$.frame.side", "write a whole number from 1 up to 9"),
        ({"frame": {"colour": "gren"}}, "$.frame.colour", "did you mean 'green'?"),
        ({"frame": {"colour": "blue"}}, "$.frame.colour", "write one of green, red"),
        ({"layers": {"a": {"x": [1]}, "b": {"y": [1, "2"]}}}, "$.layers.b.y[1]", "write a whole number"),
        ({"layers": {"a": {"x": [1]}, "b": {"y": {}}}}, "$.layers.b.y", "write a list"),
        ({"layers": {"a": [1]}}, "$.layers.a", "write a mapping"),
        ({"titles": "one"}, "$.titles", "write a list"),
        ({"titles": ["one", 2]}, "$.titles[1]", "write text (in quotes)"),
        ({"shapes": [{"type": "circle"}]}, "$.shapes[0]", "add `radius`"),
        ({"by_name": {"ok": {"type": "square"}, "bad": {"type": "circle"}}}, "$.by_name.bad", "add `radius`"),
        ({"layers": {2: {}}}, "$.layers", "put the key into quotes"),
        ([], "$", "write a mapping with the keys shapes, by_name, layers, frame, titles"),
        ("text", "$", "write a mapping with the keys shapes, by_name, layers, frame, titles"),
    ],
)  # fmt: skip
def test_wrong_value_is_named_with_its_exact_place_and_what_to_write(data: Any, path: str, do: str) -> None:
    found = refused(data)
    assert (found[0], found[2]) == (path, do)
    assert found[1]


@pytest.mark.parametrize("key", ["shapes", "by_name", "layers"])
def test_nothing_where_a_mapping_or_list_belongs_may_be_left_out_instead(key: str) -> None:
    """An empty value in YAML is null."""
    path, what, do = refused({key: None})
    assert path == f"$.{key}"
    assert "null" in what
    assert do.endswith(", or leave it out")


def test_nothing_where_something_is_required_cannot_be_left_out() -> None:
    path, _, do = refused({"name": "a", "model": None}, AgentSpec)
    assert path == "$.model"
    assert do.startswith("write a mapping with the keys provider, name,")
    assert "leave it out" not in do


def test_unknown_tag_is_refused_at_its_place() -> None:
    path, what, _ = refused({"shapes": [{"type": "triangle"}]})
    assert path == "$.shapes[0].type"
    assert "triangle" in what


@pytest.mark.parametrize(
    ("more", "path", "what"),
    [
        (
            {"tools": {"mcp": {"a": {"command": "x"}, "b": {}}}},
            "$.tools.mcp.b",
            "an MCP server needs exactly one of `command` and `url`",
        ),
        (
            {"tools": {"mcp": {"a__b": {"command": "x"}}}},
            "$.tools",
            "an MCP server's key can't contain `__`: 'a__b'",
        ),
    ],
)
def test_rule_between_fields_is_reported_at_its_mapping(more: Any, path: str, what: str) -> None:
    assert refused(agent(**more), AgentSpec)[:2] == (path, what)


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"knowledge": {"project": "a b"}}, "$.knowledge"),
        ({"tools": {"mcp": {"a.b": {"url": "u"}}}}, "$.tools"),
    ],
)
def test_id_that_cannot_be_part_of_a_subject_is_a_user_s_mistake_with_a_place(more: Any, path: str) -> None:
    found = refused(agent(**more), AgentSpec)
    assert found[0] == path
    assert "use 1 to 128 characters of" in found[1]


def test_limit_of_a_request_names_its_field() -> None:
    """A16."""
    assert refused({"query": "x" * 4_097}, HintRequest)[0] == "$.query"


# --- edges ------------------------------------------------------------------------------------------------


def test_nothing_at_all_is_an_empty_mapping() -> None:
    assert convert_strict(None, Drawing, where="f.yaml") == Drawing()


def test_types_are_not_guessed() -> None:
    """`"5"` is no number and 1 is not true, as in a message."""
    assert refused({"frame": {"side": "5"}})[0] == "$.frame.side"
    assert refused(agent(activation={"rejected_calls": 1}), AgentSpec)[2] == "write true or false"


def test_document_that_holds_itself_is_refused() -> None:
    data: dict[str, Any] = {}
    data["layers"] = data
    assert refused(data)[0].startswith("$")


def test_document_that_is_nested_without_end_is_refused() -> None:
    loop: dict[str, Any] = {"command": "x"}
    loop["env"] = loop
    assert refused(agent(tools={"mcp": {"a": loop}}), AgentSpec)[0].startswith("$.tools.mcp.a")


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "model", "tools", "mcp", "git", "command", "skills", "limits"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(documents, st.sampled_from([AgentSpec, Drawing, HintRequest]))
def test_any_document_is_read_or_refused_with_a_place(data: Any, kind: Any) -> None:
    for place, what in faults(data, kind):
        assert place.startswith("f.yaml: $")
        assert what


def test_message_is_tolerant_where_a_document_is_strict() -> None:
    assert decode(b'{"titles": ["a"], "added": 1}', Drawing) == Drawing(titles=("a",))
    with pytest.raises(InvalidMessage):
        decode(b'{"titles": 1}', Drawing)
