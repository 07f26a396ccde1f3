"""The AsyncAPI document holds together, says all there is, and is the one in the docs."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from jsonschema import Draft202012Validator

from temporality.protocol import asyncapi, subjects
from temporality.protocol.message import CAUSE_HEADER, ID_HEADER, SCHEMA_HEADER, TRACE_HEADER
from temporality.protocol.run import INBOX_KIND_TYPES, InboxMessage
from temporality.protocol.tool import ToolsAnswer

from .golden_files import golden_file
from .sample_messages import SAMPLES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The document as a reader in another language has it: decoded from its bytes."""
    decoded: dict[str, Any] = msgspec.json.decode(asyncapi.rendered())
    return decoded


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def resolved(document: dict[str, Any], reference: str) -> Any:
    node: Any = document
    for part in reference.removeprefix("#/").split("/"):
        node = node[part]
    return node


def messages_of(document: dict[str, Any], address: str) -> set[str]:
    channels = [channel for channel in document["channels"].values() if channel["address"] == address]
    assert len(channels) == 1
    return set(channels[0]["messages"])


def test_document_has_the_parts_that_its_version_asks_for(document: dict[str, Any]) -> None:
    assert document["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= set(document["info"])
    assert {operation["action"] for operation in document["operations"].values()} <= {"send", "receive"}
    assert set(document) <= {
        "asyncapi", "id", "info", "servers", "defaultContentType", "channels", "operations", "components",
    }  # fmt: skip


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    found = list(references(document))
    assert len(found) > 100
    for reference in found:
        assert isinstance(resolved(document, reference), dict), reference


def test_every_schema_and_every_message_is_used(document: dict[str, Any]) -> None:
    used = set(references(document))
    for kind in ("schemas", "messages"):
        named = {f"#/components/{kind}/{name}" for name in document["components"][kind]}
        assert named - used == set()


def test_every_member_of_the_unions_that_cross_the_bus_is_a_message(document: dict[str, Any]) -> None:
    members = {kind.__name__ for union in (InboxMessage, ToolsAnswer) for kind in get_args(union)}
    assert members <= set(document["components"]["messages"])


def test_every_sent_message_has_a_golden_file_and_the_same_tag_in_both(document: dict[str, Any]) -> None:
    for name in document["components"]["messages"]:
        schema = document["components"]["schemas"][name]
        tag = msgspec.json.decode(msgspec.json.encode(SAMPLES[name])).get("type")
        assert schema["properties"].get("type", {}).get("enum", [None]) == [tag]


def test_golden_bytes_are_valid_by_the_schemas_that_others_read(document: dict[str, Any]) -> None:
    for name in document["components"]["messages"]:
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        validator = Draft202012Validator(schema)
        validator.validate(msgspec.json.decode(golden_file(name).read_bytes()))
        assert not validator.is_valid([])


@pytest.mark.parametrize("kind", sorted(INBOX_KIND_TYPES))
def test_channel_of_an_inbox_kind_carries_its_messages_and_no_others(
    document: dict[str, Any], kind: str
) -> None:
    address = subjects.inbox("RUN", kind).replace("RUN", "{run}")
    assert messages_of(document, address) == {message.__name__ for message in INBOX_KIND_TYPES[kind]}


def test_addresses_are_those_that_subjects_builds(document: dict[str, Any]) -> None:
    built = {
        subjects.commit("run"),
        subjects.operation("run", "call"),
        *(subjects.inbox("run", kind) for kind in INBOX_KIND_TYPES),
        subjects.tool_pool("pool"),
        subjects.model_pool("pool"),
        subjects.fact("project", "run", "kind"),
        subjects.knowledge("project", "item"),
        subjects.turn_settled("project"),
        subjects.hints_find("project"),
    }
    addresses = {channel["address"] for channel in document["channels"].values() if channel["address"]}
    plain = {address.replace("{", "").replace("}", "") for address in addresses}
    assert built <= plain
    assert all(address.startswith(f"{subjects.PREFIX}.ask.") for address in plain - built)


def test_parameters_of_a_channel_are_those_of_its_address(document: dict[str, Any]) -> None:
    for channel in document["channels"].values():
        if channel["address"]:
            in_address = {token[1:-1] for token in channel["address"].split(".") if token.startswith("{")}
            assert set(channel["parameters"]) == in_address


def test_every_question_names_the_channel_of_its_answer(document: dict[str, Any]) -> None:
    asked = [operation for operation in document["operations"].values() if "reply" in operation]
    assert len(asked) == len(asyncapi.ASKED)
    for operation in asked:
        assert resolved(document, operation["reply"]["channel"]["$ref"])["address"] is None


def test_every_message_has_the_headers_and_a_sentence(document: dict[str, Any]) -> None:
    for message in document["components"]["messages"].values():
        assert set(message["headers"]["properties"]) == {ID_HEADER, CAUSE_HEADER, SCHEMA_HEADER, TRACE_HEADER}
        assert message["description"].endswith((".", ").", "…"))


# --- drift ------------------------------------------------------------------------------------------------


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "temporality.protocol.asyncapi", "--check"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_document_in_the_docs_is_today_s() -> None:
    assert check(ROOT).returncode == 0


def test_document_that_differs_by_one_character_fails_the_check_and_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / asyncapi.DOCUMENT).write_text(asyncapi.rendered().replace("3.0.0", "3.0.1"), encoding="utf-8")
    done = check(tmp_path)
    assert done.returncode == 1
    assert f"python -m temporality.protocol.asyncapi > {asyncapi.DOCUMENT}" in done.stderr


def test_document_that_is_missing_fails_the_check_without_a_traceback(tmp_path: Path) -> None:
    done = check(tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_program_without_arguments_prints_the_document() -> None:
    command = [sys.executable, "-m", "temporality.protocol.asyncapi"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == asyncapi.rendered()
