"""Values in a script's strings: `{{name}}` is replaced; a string that is only `{{name:int}}` is a number."""

import re
from collections.abc import Mapping
from typing import Any, Final

TURN: Final = "turn"
"""The one value that every rule has: the number of the model's reply."""

_VALUE: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_NUMBER: Final = re.compile(r"\{\{\s*(\w+)\s*:\s*int\s*\}\}\Z")


def names_in(value: Any) -> set[str]:
    """Return the names that the strings of a value (of any depth) refer to."""
    match value:
        case str():
            return {*_VALUE.findall(value), *_NUMBER.findall(value)}
        case dict():
            return {name for item in (*value.keys(), *value.values()) for name in names_in(item)}
        case list() | tuple():
            return {name for item in value for name in names_in(item)}
        case _:
            return set()


def filled(value: Any, values: Mapping[str, str]) -> Any:
    """Return the value with every reference replaced; raises `ValueError` if a number isn't one."""
    match value:
        case str():
            number = _NUMBER.match(value)
            if number:
                return int(values[number.group(1)])
            return _VALUE.sub(lambda found: values[found.group(1)], value)
        case dict():
            return {filled(key, values): filled(item, values) for key, item in value.items()}
        case list() | tuple():
            return [filled(item, values) for item in value]
        case _:
            return value
