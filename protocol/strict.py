"""Reading what people write: every unknown key and wrong type refused, with its path and a suggestion.

Messages between our own processes tolerate unknown fields, so that versions can differ. A configuration file,
an agent or a request from outside must not: a mistyped key that is silently ignored is a setting that
silently does not hold.
"""

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from temporality.protocol.errors import UserError


def convert_strict(data: object, kind: Any, *, where: str) -> Any:
    """Return `data` (from YAML or JSON) as `kind`; raise `UserError` naming `where`, the path and what to do.

    `data` that is None counts as an empty mapping, as an empty YAML file is.
    """
    data = {} if data is None else data
    for path, key, known in _unknown_keys(data, _type_info(kind), "$"):
        close = difflib.get_close_matches(str(key), known, n=1, cutoff=0.6)
        do = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(sorted(known)) or 'none'}"
        raise UserError(f"{where}: {path}", f"unknown key {str(key)[:80]!r}", do)
    try:
        return msgspec.convert(data, kind, strict=True)
    except msgspec.ValidationError as error:
        what, _, path = str(error).rpartition(" - at `")
        if not what:
            raise UserError(f"{where}: $", str(error)) from error
        raise UserError(f"{where}: {path.rstrip('`')}", what) from error


@cache
def _type_info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _unknown_keys(data: object, kind: inspect.Type, path: str) -> Iterator[tuple[str, object, list[str]]]:
    match kind:
        case inspect.StructType():
            if not isinstance(data, Mapping):
                return
            fields = {field.encode_name: field.type for field in kind.fields}
            if kind.tag_field:
                fields.setdefault(kind.tag_field, inspect.StrType())
            for key, value in data.items():
                if key not in fields:
                    yield path, key, list(fields)
                else:
                    yield from _unknown_keys(value, fields[key], f"{path}.{key}")
        case inspect.DictType():
            if isinstance(data, Mapping):
                for key, value in data.items():
                    yield from _unknown_keys(value, kind.value_type, f"{path}.{key}")
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            if isinstance(data, list | tuple):
                for index, value in enumerate(data):
                    yield from _unknown_keys(value, kind.item_type, f"{path}[{index}]")
        case inspect.UnionType():
            structs = [option for option in kind.types if isinstance(option, inspect.StructType)]
            others = [
                option for option in kind.types if isinstance(option, inspect.ListType | inspect.DictType)
            ]
            for option in (*structs, *others)[:1]:
                yield from _unknown_keys(data, option, path)
        case inspect.Metadata():
            yield from _unknown_keys(data, kind.type, path)
        case _:
            return
