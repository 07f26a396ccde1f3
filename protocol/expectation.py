"""What a place in a document must hold, said to the person who filled it in.

A type is written for programs; a suggestion names what to write instead: the words to choose from, the keys
of a mapping, the bounds of a number.
"""

import difflib
from collections.abc import Iterable, Sequence

from msgspec import inspect

Steps = tuple[str | int, ...]
"""The way to a place: keys of mappings and indexes of lists."""


def option_for(kind: inspect.Type, data: object) -> inspect.Type | None:
    """Return what of `kind` the form of `data` means: a union's member, or a plain type itself."""
    kind = _plain(kind)
    if not isinstance(kind, inspect.UnionType):
        return kind
    options = [_plain(option) for option in kind.types]
    is_choice = sum(isinstance(option, inspect.StructType) for option in options) > 1
    for option in options:
        match option:
            case inspect.StructType(tag_field=tag_field, tag=tag) if isinstance(data, dict):
                if not is_choice or data.get(tag_field) == tag:
                    return option
            case inspect.DictType() if isinstance(data, dict):
                return option
            case inspect.ListType() | inspect.VarTupleType() if isinstance(data, list | tuple):
                return option
            case _:
                continue
    return None


def place(kind: inspect.Type, data: object, steps: Steps) -> tuple[inspect.Type | None, bool]:
    """Return the type that the value at `steps` must have (None: unknown), and whether it may be left out."""
    optional = False
    for step in steps:
        found = option_for(kind, data)
        match found:
            case inspect.StructType():
                field = next((field for field in found.fields if field.encode_name == step), None)
                if field is None:
                    return None, False
                kind, optional = field.type, not field.required
            case inspect.DictType():
                kind, optional = found.value_type, False
            case inspect.ListType() | inspect.VarTupleType():
                kind, optional = found.item_type, False
            case _:
                return None, False
        data = value_at(data, (step,))
    return kind, optional


def value_at(data: object, steps: Steps) -> object:
    """Return what `data` holds at `steps`; None if there is nothing."""
    for step in steps:
        if isinstance(data, dict):
            data = data.get(step)
        elif isinstance(data, list | tuple) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            return None
    return data


def wanted(kind: inspect.Type) -> str:
    """Say what a value of `kind` looks like, as the end of a sentence; "" if there is nothing to say."""
    match _plain(kind):
        case inspect.LiteralType(values=values):
            return _one_of(map(str, values))
        case inspect.EnumType(cls=cls):
            return _one_of(str(member.value) for member in cls)
        case inspect.StructType(fields=fields):
            return f"a mapping with the keys {', '.join(field.encode_name for field in fields)}"
        case inspect.DictType():
            return "a mapping"
        case inspect.ListType() | inspect.VarTupleType():
            return "a list"
        case inspect.StrType(max_length=length):
            return (
                "text (in quotes)" if length is None else f"text of at most {length} characters (in quotes)"
            )
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() as number:
            return f"a whole number{_bounds(number)}"
        case inspect.FloatType() as number:
            return f"a number{_bounds(number)}"
        case inspect.UnionType(types=types):
            return " or ".join(dict.fromkeys(text for text in map(wanted, types) if text))
        case _:
            return ""


def closest(word: object, known: Sequence[str]) -> str | None:
    """Return the known word that a mistyped one was probably meant to be."""
    close = difflib.get_close_matches(str(word), known, n=1, cutoff=0.6)
    return close[0] if close else None


def choices(kind: inspect.Type) -> list[str]:
    """Return the words among which a place lets one choose; none if it is not a choice."""
    match _plain(kind):
        case inspect.LiteralType(values=values):
            return [str(value) for value in values]
        case inspect.EnumType(cls=cls):
            return [str(member.value) for member in cls]
        case _:
            return []


def _plain(kind: inspect.Type) -> inspect.Type:
    return _plain(kind.type) if isinstance(kind, inspect.Metadata) else kind


def _one_of(words: Iterable[str]) -> str:
    return f"one of {', '.join(words)}"


def _bounds(number: inspect.IntType | inspect.FloatType) -> str:
    bounds = (("from", number.ge), ("above", number.gt), ("up to", number.le), ("below", number.lt))
    return "".join(f" {word} {bound}" for word, bound in bounds if bound is not None)
