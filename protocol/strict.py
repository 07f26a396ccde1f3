"""Reading what people write: every unknown key and wrong type refused, with its path and a suggestion.

Messages between our own processes tolerate unknown fields, so that versions can differ. A configuration file,
an agent or a request from outside must not: a mistyped key that is silently ignored is a setting that
silently does not hold.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from temporality.protocol.errors import UserError
from temporality.protocol.expectation import Steps, choices, closest, option_for, place, value_at, wanted

_ANY_KEY = "[...]"
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|(\[\.\.\.\])")
_ABOUT_THE_VALUE = ("Expected", "Invalid enum value")
_MISSING = re.compile(r"Object missing required field (`.+`)")


def convert_strict(data: object, kind: Any, *, where: str) -> Any:
    """Return `data` (from YAML or JSON) as `kind`; raise `UserError` naming `where`, the path and what to do.

    `data` that is None counts as an empty mapping, as an empty YAML file is.
    """
    data = {} if data is None else data
    try:
        for path, key, known in _unknown_keys(data, _type_info(kind), "$"):
            close = closest(key, known)
            do = f"did you mean {close!r}?" if close else f"known keys: {', '.join(sorted(known)) or 'none'}"
            raise UserError(f"{where}: {path}", f"unknown key {str(key)[:80]!r}", do)
        return msgspec.convert(data, kind, strict=True)
    except msgspec.ValidationError as error:
        raise _explained(str(error), data, kind, where) from error
    except RecursionError as error:
        raise UserError(f"{where}: $", "is nested too deeply", "write it flat") from error


@cache
def _type_info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _unknown_keys(data: object, kind: inspect.Type, path: str) -> Iterator[tuple[str, object, list[str]]]:
    match option_for(kind, data):
        case inspect.StructType() as struct if isinstance(data, Mapping):
            fields = {field.encode_name: field.type for field in struct.fields}
            if struct.tag_field:
                fields.setdefault(struct.tag_field, inspect.AnyType())
            for key, value in data.items():
                if key not in fields:
                    yield path, key, list(fields)
                else:
                    yield from _unknown_keys(value, fields[key], f"{path}.{key}")
        case inspect.DictType(value_type=value_type) if isinstance(data, Mapping):
            for key, value in data.items():
                yield from _unknown_keys(value, value_type, f"{path}.{key}")
        case (
            inspect.ListType(item_type=item_type)
            | inspect.VarTupleType(item_type=item_type)
            | inspect.SetType(item_type=item_type)
            | inspect.FrozenSetType(item_type=item_type)
        ) if isinstance(data, list | tuple):
            for index, value in enumerate(data):
                yield from _unknown_keys(value, item_type, f"{path}[{index}]")
        case _:
            return


def _explained(text: str, data: object, kind: Any, where: str) -> UserError:
    """Turn msgspec's words into an error that names the exact place and what to write there."""
    what, _, path = text.rpartition(" - at `")
    what = what or text
    about_key = path.startswith("key` in `")
    steps = _named(path.removeprefix("key` in `").rstrip("`"), text, data, kind)
    shown = f"{where}: {_path(steps)}"
    if about_key:
        return UserError(shown, f"a key: {what}", "put the key into quotes")
    if missing := _MISSING.fullmatch(what):
        return UserError(shown, what, f"add {missing.group(1)}")
    expected, optional = place(_type_info(kind), data, steps)
    if expected is None or not what.startswith(_ABOUT_THE_VALUE):
        return UserError(shown, what)
    value = value_at(data, steps)
    meant = closest(value, choices(expected)) if isinstance(value, str) else None
    if meant:
        return UserError(shown, what, f"did you mean {meant!r}?")
    do = f"write {wanted(expected)}" if wanted(expected) else ""
    return UserError(shown, what, f"{do}, or leave it out" if do and value is None and optional else do)


def _named(path: str, text: str, data: object, kind: Any) -> Steps:
    """Return the steps of msgspec's path, which doesn't say under which key of a mapping a wrong value is."""
    steps: Steps = ()
    for name, index, any_key in _STEP.findall(path):
        step: str | int = int(index) if index else name
        if any_key:
            mapping = value_at(data, steps)
            keys = list(mapping) if isinstance(mapping, dict) else []
            step = next((key for key in keys if _fails(_only(data, steps, key), kind, text)), _ANY_KEY)
        steps = (*steps, step)
    return steps


def _fails(data: object, kind: Any, text: str) -> bool:
    try:
        msgspec.convert(data, kind, strict=True)
    except msgspec.ValidationError as error:
        return str(error) == text
    return False


def _only(data: Any, steps: Steps, key: object) -> Any:
    """Return `data` with nothing but `key` in the mapping at `steps`."""
    if not steps:
        return {key: data[key]}
    step, *rest = steps
    inner = _only(data[step], tuple(rest), key)
    if isinstance(data, dict):
        return {**data, step: inner}
    return [inner if index == step else item for index, item in enumerate(data)]


def _path(steps: Steps) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
