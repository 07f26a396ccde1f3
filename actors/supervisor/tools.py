"""The frozen tool list of a run: what a name means, and whether a call's arguments fit its schema.

The list is fixed before a turn and named by the digest of its bytes, so checking a call against it is as
reproducible as any other decision.

A schema is somebody else's program. It is read here for types, names and numbers only: regular expressions
are left out (one may take hours), references are followed inside the schema only (one may name a URL), and a
schema that can't be applied allows everything, since the tool's own server checks for itself.
"""

import fnmatch
import json
from collections.abc import Mapping
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing import Registry

from temporality.actors.redaction import clean
from temporality.protocol.agent import PolicySpec
from temporality.protocol.codec import decode, encode_canonical
from temporality.protocol.identity import digest
from temporality.protocol.tool import ToolDefinition

DETAIL_CHARACTERS_MAX = 500
"""A schema's complaint repeats the value it complains of; the model needs the path and the beginning."""


class InvalidArguments(Exception):
    """Arguments that don't fit the tool's schema; the text names the path and is for the model."""


class ToolTable:
    """Answer for one frozen list which tool a name means and whether arguments are right."""

    def __init__(self, definitions: tuple[ToolDefinition, ...]) -> None:
        self.definitions = definitions
        self._by_name = {definition.name: definition for definition in definitions}
        self._validators: dict[str, Draft202012Validator] = {}

    @classmethod
    def from_blob(cls, content: bytes) -> "ToolTable":
        """Read a table from the blob that holds it."""
        return cls(decode(content, tuple[ToolDefinition, ...]))

    def blob(self) -> tuple[str, bytes]:
        """Return digest and bytes of the table's blob."""
        content = encode_canonical(self.definitions)
        return digest(content), content

    def find(self, name: str) -> ToolDefinition | None:
        """Return the tool that the model calls `name`."""
        return self._by_name.get(name)

    def names(self) -> tuple[str, ...]:
        """Return all model-visible names, in the list's order."""
        return tuple(self._by_name)

    def arguments(self, tool: ToolDefinition, text: str) -> dict[str, Any]:
        """Parse and check the arguments of a call; `InvalidArguments` names the first fault's path."""
        try:
            parsed = msgspec.json.decode(text.encode() or b"{}")
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise InvalidArguments(f"the arguments are not valid JSON: {error}") from error
        if not isinstance(parsed, dict):
            raise InvalidArguments(f"the arguments must be a JSON object, not {type(parsed).__name__}")
        try:
            fault = best_match(self._validator(tool).iter_errors(parsed))
        except Exception:  # noqa: BLE001
            return parsed  # a schema that breaks while it is applied says nothing about the arguments
        if fault is not None:
            detail = f"{fault.json_path}: {fault.message}"
            if len(detail) > DETAIL_CHARACTERS_MAX:
                # Cut with care for what is cut through: half of a secret can't be known as one later (A17).
                detail = clean(detail, characters_max=DETAIL_CHARACTERS_MAX).text
            raise InvalidArguments(detail)
        return parsed

    def _validator(self, tool: ToolDefinition) -> Draft202012Validator:
        validator = self._validators.get(tool.name)
        if validator is None:
            schema: Mapping[str, Any] = tool.parameters or {"type": "object"}
            try:
                schema = _without_patterns(schema)
                Draft202012Validator.check_schema(schema)
            except (SchemaError, RecursionError):
                schema = {"type": "object"}
            validator = self._validators[tool.name] = Draft202012Validator(schema, registry=Registry())
        return validator


EMPTY_TABLE = ToolTable(())

_PATTERNS = frozenset({"pattern", "patternProperties"})
_MEANT_WITH_PATTERNS = frozenset({"additionalProperties", "unevaluatedProperties"})


def _without_patterns(schema: Any) -> Any:
    """Return the schema without regular expressions, and without what means something only beside them."""
    if isinstance(schema, list):
        return [_without_patterns(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = _PATTERNS | (_MEANT_WITH_PATTERNS if "patternProperties" in schema else frozenset())
    return {
        key: {name: _without_patterns(part) for name, part in value.items()}
        if key == "properties" and isinstance(value, dict)
        else _without_patterns(value)
        for key, value in schema.items()
        if key not in left_out
    }


def policy_name(tool: ToolDefinition) -> str:
    """Return the name by which policy knows a tool: `<server>.<tool>`, or the function's name."""
    return f"{tool.mcp_server}.{tool.tool}" if tool.mcp_server else tool.tool


def denied_by(policy: PolicySpec, tool: ToolDefinition) -> str | None:
    """Return the policy's pattern that forbids the tool, if one does."""
    name = policy_name(tool)
    return next((pattern for pattern in policy.deny if fnmatch.fnmatchcase(name, pattern)), None)


def argument_digest(text: str) -> str:
    """Return a short digest of a call's arguments, equal for equal JSON in any spacing and order."""
    try:
        content = json.dumps(json.loads(text or "{}"), sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        content = text.encode("utf-8", "surrogatepass")
    return digest(content)[:16]
