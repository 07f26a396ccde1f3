"""A Python function's signature as a tool: its JSON Schema, and the check of arguments against it.

The type hints are the schema. They become one msgspec struct, which both writes the JSON Schema that the
model sees and converts the JSON arguments that it sends, so the two can't disagree.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

import msgspec

from temporality.protocol.agent import Effect
from temporality.protocol.errors import UserError

IDEMPOTENCY_PARAMETER = "idempotency_key"
"""A function with a parameter of this name is given the call's id; the model never sees it."""
EFFECT_ATTRIBUTE = "temporality_effect"
"""`function.temporality_effect = "none"` declares what calling it twice would do; without it: `once`."""

_EXTRA_MESSAGE = "a tool's parameters must be named; *args and **kwargs can't be described to a model"


class InvalidArguments(Exception):
    """The arguments don't fit the schema; the text holds the path of the first one that doesn't."""


@dataclass(frozen=True, slots=True)
class Signature:
    """How to describe a function to a model, and how to call it."""

    arguments: type[msgspec.Struct]
    parameters: dict[str, Any]
    takes_key: bool

    def bind(self, arguments: Mapping[str, Any], *, key: str) -> dict[str, Any]:
        """Return keyword arguments for the function; raise `InvalidArguments`."""
        try:
            bound = msgspec.convert(arguments, self.arguments, str_keys=True)
        except (msgspec.ValidationError, ValueError) as error:
            raise InvalidArguments(str(error)) from error
        given = {
            name: value
            for name in self.arguments.__struct_fields__
            if (value := getattr(bound, name)) is not msgspec.UNSET
        }
        return {**given, IDEMPOTENCY_PARAMETER: key} if self.takes_key else given


def signature_of(function: Callable[..., Any], where: str) -> Signature:
    """Read a function's signature; raise `UserError` if it can't be described to a model."""
    try:
        parameters = inspect.signature(function).parameters
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise UserError(where, f"its signature can't be read: {error}", "give it plain type hints") from error
    fields: list[Any] = []
    for parameter in parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise UserError(where, _EXTRA_MESSAGE, f"change the parameter `{parameter.name}`")
        if parameter.name != IDEMPOTENCY_PARAMETER:
            hint = hints.get(parameter.name, Any)
            required = parameter.default is parameter.empty
            fields.append(
                (parameter.name, hint)
                if required
                else (parameter.name, hint | msgspec.UnsetType, msgspec.UNSET)
            )
    try:
        arguments = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        schema = _schema_of(arguments, parameters)
    except TypeError as error:
        reason = str(error).splitlines()[-1]
        raise UserError(
            where, f"its type hints have no JSON Schema: {reason}", "use simpler types"
        ) from error
    return Signature(arguments, schema, IDEMPOTENCY_PARAMETER in parameters)


def _schema_of(
    arguments: type[msgspec.Struct], parameters: Mapping[str, inspect.Parameter]
) -> dict[str, Any]:
    (_,), components = msgspec.json.schema_components((arguments,), ref_template="#/$defs/{name}")
    schema = dict(components.pop("Arguments"))
    schema.pop("title", None)
    schema.setdefault("required", [])
    for name, described in schema["properties"].items():
        default = parameters[name].default
        if default is not inspect.Parameter.empty:
            _add_default(described, default)
    if components:
        schema["$defs"] = components
    return schema


def _add_default(described: dict[str, Any], default: object) -> None:
    """Tell the model a default that JSON can express; any other is left out."""
    try:
        described["default"] = msgspec.to_builtins(default)
    except (TypeError, ValueError):
        described.pop("default", None)


def effect_of(function: Callable[..., Any], where: str) -> Effect:
    """Return the effect that a function declares, `once` if it declares none; raise `UserError` on a typo."""
    declared = getattr(function, EFFECT_ATTRIBUTE, "once")
    for effect in get_args(Effect):
        if declared == effect:
            known: Effect = effect
            return known
    raise UserError(
        where, f"its {EFFECT_ATTRIBUTE} is {declared!r}", f"use one of {', '.join(get_args(Effect))}"
    )
