"""Walk JSON along the type that it is of, to find the objects that are structs and not mappings of names."""

from collections.abc import Iterator
from typing import Any

from msgspec import inspect


def structs_in(data: Any, kind: inspect.Type) -> Iterator[tuple[dict[str, Any], inspect.StructType]]:
    """Yield every struct in `data`, outermost first, with its type; the objects may be changed in place."""
    match kind:
        case inspect.StructType() if isinstance(data, dict):
            yield data, kind
            for field in kind.fields:
                if field.encode_name in data:
                    yield from structs_in(data[field.encode_name], field.type)
        case inspect.DictType() if isinstance(data, dict):
            for value in data.values():
                yield from structs_in(value, kind.value_type)
        case inspect.VarTupleType() if isinstance(data, list):
            for value in data:
                yield from structs_in(value, kind.item_type)
        case inspect.UnionType():
            for option in kind.types:
                if not isinstance(option, inspect.StructType) or is_of(data, option):
                    yield from structs_in(data, option)
        case inspect.Metadata():
            yield from structs_in(data, kind.type)
        case _:
            return


def is_of(data: Any, kind: inspect.StructType) -> bool:
    """Tell whether an object carries the tag of `kind`; without a tag any object does."""
    return isinstance(data, dict) and (kind.tag_field is None or data.get(kind.tag_field) == kind.tag)


def structs_of(kind: inspect.Type) -> Iterator[inspect.StructType]:
    """Yield every struct type that a value of `kind` may hold, itself included; some more than once."""
    match kind:
        case inspect.StructType():
            yield kind
            for field in kind.fields:
                yield from structs_of(field.type)
        case inspect.DictType():
            yield from structs_of(kind.value_type)
        case inspect.VarTupleType():
            yield from structs_of(kind.item_type)
        case inspect.UnionType():
            for option in kind.types:
                yield from structs_of(option)
        case inspect.Metadata():
            yield from structs_of(kind.type)
        case _:
            return
