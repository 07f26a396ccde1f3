"""What was once written can be read for ever, and what is written today is what was agreed on."""

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import inspect

import temporality.protocol
from temporality.protocol import asyncapi
from temporality.protocol.codec import decode
from temporality.protocol.errors import InvalidMessage
from temporality.protocol.fingerprint import FingerprintAnswer, FingerprintRequest
from temporality.protocol.message import Message, Record
from temporality.protocol.run import INBOX_KIND_TYPES, InboxMessage, RunFact
from temporality.protocol.streams import StreamSpec
from temporality.protocol.tool import OperationRecord, ToolOutcome, ToolsAnswer
from temporality.protocol.transcript import TranscriptMessage

from .golden_files import all_golden_files, golden_bytes, golden_file, main, replace, write_missing
from .json_shapes import structs_in, structs_of
from .sample_messages import SAMPLES

ROOT = Path(__file__).parents[2]
PACKAGES = ("protocol", "storage", "actors", "deploy")
TAGGED = re.compile(r"^class (\w+)\(\w+, [^)]*\btag=", re.MULTILINE)
UNIONS = [RunFact, InboxMessage, ToolOutcome, OperationRecord, ToolsAnswer, TranscriptMessage]

NEVER_SENT = {FingerprintRequest, FingerprintAnswer, StreamSpec}
"""Structs of the protocol that cross no bus and are kept in no store: lines of `probe`, declarations."""

BOUND = {
    ("McpServerSpec", "command"),
    ("McpServerSpec", "url"),
    ("ToolCall", "mcp"),
    ("ToolCall", "mcp_server"),
    ("HintDelivered", "reason"),
    ("ToolCall", "python"),
    ("HintResult", "hints"),
    ("ItemDecided.item", "knowledge_id"),
    ("Outgoing", "at"),
    ("Outgoing", "target"),
}
"""Fields with a default that go only together with another one: a message without one of them is refused."""

NAMES = sorted(SAMPLES)


def kind_of(name: str) -> type:
    kind: type = type(SAMPLES[name])
    return kind


def struct_types() -> dict[type, inspect.StructType]:
    """Every struct type that a sample's type may hold."""
    found = (kind for name in NAMES for kind in structs_of(inspect.type_info(kind_of(name))))
    return {kind.cls: kind for kind in found}


def protocol_structs() -> set[type]:
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(temporality.protocol.__path__, "temporality.protocol.")
    ]
    return {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and value not in (Message, Record)
    } - {msgspec.Struct}


def tagged_in_the_source() -> Iterator[str]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield from TAGGED.findall(path.read_text(encoding="utf-8"))


# --- there is a file for everything -----------------------------------------------------------------------


def test_every_message_in_the_source_has_a_sample() -> None:
    tagged = set(tagged_in_the_source())
    assert {"Commit", "ToolFailed", "QuestionRefused"} <= tagged
    assert tagged <= set(SAMPLES)


def test_every_member_of_every_union_and_every_message_of_the_document_has_a_sample() -> None:
    members = {kind for union in UNIONS for kind in get_args(union)}
    inboxes = {kind for kinds in INBOX_KIND_TYPES.values() for kind in kinds}
    stored = {kind for _, kinds in asyncapi.STORED.values() for kind in kinds}
    asked = {kind for _, asks, answers in asyncapi.ASKED.values() for kind in (*asks, *answers)}
    assert {kind.__name__ for kind in members | inboxes | stored | asked} <= set(SAMPLES)


def test_every_struct_of_the_protocol_is_a_part_of_some_sample() -> None:
    assert protocol_structs() - NEVER_SENT <= set(struct_types())


def test_samples_and_golden_files_are_the_same_set() -> None:
    assert {name for name, _ in all_golden_files()} == set(SAMPLES)
    assert all(golden_file(name).is_file() for name in NAMES)


def test_every_field_of_every_struct_stands_in_some_golden_file() -> None:
    """A new field has a golden file that holds it, also deep inside of a message."""
    seen: set[tuple[str, str]] = set()
    for name in NAMES:
        data = json.loads(golden_file(name).read_bytes())
        for found, kind in structs_in(data, inspect.type_info(kind_of(name))):
            seen |= {(kind.cls.__name__, key) for key in found}
    fields = {
        (cls.__name__, field.encode_name) for cls, kind in struct_types().items() for field in kind.fields
    }
    assert fields - seen == set()


# --- today's code and the files agree ---------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_today_s_code_writes_exactly_the_golden_bytes(name: str) -> None:
    assert golden_bytes(SAMPLES[name]) == golden_file(name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_golden_bytes_are_read_as_the_value_that_was_written(name: str) -> None:
    assert decode(golden_file(name).read_bytes(), kind_of(name)) == SAMPLES[name]


@pytest.mark.parametrize("union", UNIONS, ids=lambda union: get_args(union)[0].__module__.split(".")[-1])
def test_member_of_a_union_is_told_from_the_others_by_its_tag(union: Any) -> None:
    for kind in get_args(union):
        assert decode(golden_file(kind.__name__).read_bytes(), union) == SAMPLES[kind.__name__]


@pytest.mark.parametrize(
    ("name", "path"), [*all_golden_files()], ids=lambda value: getattr(value, "name", "of")
)
def test_bytes_of_every_version_are_read_and_nothing_they_say_is_lost(name: str, path: Path) -> None:
    before = path.read_bytes()
    value = decode(before, kind_of(name))
    assert contains(msgspec.json.decode(golden_bytes(value)), json.loads(before))


def contains(now: Any, before: Any) -> bool:
    if isinstance(now, dict) and isinstance(before, dict):
        return all(key in now and contains(now[key], value) for key, value in before.items())
    if isinstance(now, list) and isinstance(before, list):
        return len(now) == len(before) and all(map(contains, now, before))
    return bool(now == before)


# --- other versions' bytes --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_unknown_fields_at_every_level_change_nothing(name: str) -> None:
    data = json.loads(golden_file(name).read_bytes())
    for found, _ in list(structs_in(data, inspect.type_info(kind_of(name)))):
        found |= {"added_later": {"type": "unknown", "list": [1, None]}, "": 0.5}
    assert decode(msgspec.json.encode(data), kind_of(name)) == SAMPLES[name]


@pytest.mark.parametrize("name", NAMES)
def test_any_field_with_a_default_may_be_missing_at_any_level(name: str) -> None:
    """What an older version wrote, which did not know the field."""
    info = inspect.type_info(kind_of(name))
    whole = golden_file(name).read_bytes()
    places = [
        (index, field)
        for index, (_, kind) in enumerate(structs_in(json.loads(whole), info))
        for field in kind.fields
        if not field.required
    ]
    for index, field in places:
        data = json.loads(whole)
        found, kind = list(structs_in(data, info))[index]
        if found.pop(field.encode_name, None) is None:
            continue
        owner = kind.cls.__name__ if kind.cls.__name__ != "KnowledgeItem" else f"{name}.item"
        if (owner, field.encode_name) in BOUND:
            with pytest.raises(InvalidMessage):
                decode(msgspec.json.encode(data), kind_of(name))
        else:
            assert decode(msgspec.json.encode(data), kind_of(name)) != SAMPLES[name]


def test_message_of_a_type_that_is_not_known_is_refused_by_its_union() -> None:
    with pytest.raises(InvalidMessage, match="type"):
        decode(b'{"type": "run.renamed"}', RunFact)


# --- the writer -------------------------------------------------------------------------------------------


def test_writer_writes_what_is_missing_and_touches_nothing_else(tmp_path: Path) -> None:
    one = {"FoldPosition": SAMPLES["FoldPosition"]}
    assert write_missing(one, tmp_path) == [golden_file("FoldPosition", tmp_path)]
    golden_file("FoldPosition", tmp_path).write_bytes(b"{}")
    assert write_missing(one, tmp_path) == []
    assert golden_file("FoldPosition", tmp_path).read_bytes() == b"{}"


def test_replaced_file_keeps_its_old_bytes_beside_it(tmp_path: Path) -> None:
    path = golden_file("RunCancelled", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"type":"run.cancelled"}')
    kept = replace("RunCancelled", SAMPLES["RunCancelled"], tmp_path)
    again = replace("RunCancelled", SAMPLES["RunCancelled"], tmp_path)
    assert (kept.name, again.name) == ("RunCancelled.1.json", "RunCancelled.2.json")
    assert kept.read_bytes() == b'{"type":"run.cancelled"}'
    assert path.read_bytes() == again.read_bytes() == golden_bytes(SAMPLES["RunCancelled"])


def test_file_that_today_s_code_cannot_read_is_not_replaced(tmp_path: Path) -> None:
    path = golden_file("FoldPosition", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"type":"position"}')
    with pytest.raises(InvalidMessage, match="sequence"):
        replace("FoldPosition", SAMPLES["FoldPosition"], tmp_path)
    assert path.read_bytes() == b'{"type":"position"}'


def test_writer_that_is_asked_for_nonsense_explains_itself() -> None:
    said: list[str] = []
    assert main(["--replace", "NoSuchMessage"], said.append) == 2
    assert "--replace NAME" in "".join(said)
