"""Subjects as the server sees them: filters with wildcards, and the transform of a stream."""

import re
from collections.abc import Callable

_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193
_FUNCTION = re.compile(r"\{\{\s*(?P<name>partition|wildcard)\((?P<arguments>[0-9, ]+)\)\s*\}\}\Z")


def matches(pattern: str, subject: str) -> bool:
    """Say whether a filter (`*` one token, `>` the rest, at least one) matches a subject."""
    if pattern == subject:
        return True
    wanted, given = pattern.split("."), subject.split(".")
    for index, token in enumerate(wanted):
        if token == ">":
            return len(given) > index
        if index >= len(given) or token not in ("*", given[index]):
            return False
    return len(wanted) == len(given)


def overlap(one: str, other: str) -> bool:
    """Say whether some subject is matched by both filters."""
    left, right = one.split("."), other.split(".")
    for a, b in zip(left, right, strict=False):
        if ">" in (a, b):
            return True
        if a != b and "*" not in (a, b):
            return False
    return len(left) == len(right)


def partition(tokens: list[str], count: int) -> int:
    """Return the partition of these tokens, 0 to `count` − 1: FNV-1a of their bytes, as the server does."""
    value = _FNV_OFFSET
    for byte in "".join(tokens).encode():
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value % count


def transform(source: str, destination: str) -> Callable[[str], str]:
    """Return the function that rewrites subjects matching `source`; others stay as they are.

    Raises `ValueError` for a destination with anything but `partition` and `wildcard`.
    """
    places = [index for index, token in enumerate(source.split(".")) if token == "*"]
    parts = [_part(token) for token in destination.split(".")]

    def apply(subject: str) -> str:
        if not matches(source, subject):
            return subject
        tokens = subject.split(".")
        wildcards = [tokens[place] for place in places]
        return ".".join(part(wildcards) for part in parts)

    return apply


def _part(token: str) -> Callable[[list[str]], str]:
    if "{{" not in token:
        return lambda _wildcards: token
    function = _FUNCTION.match(token)
    if function is None:
        raise ValueError(f"{token!r} is no transform this model knows")
    numbers = [int(number) for number in function["arguments"].split(",")]
    if function["name"] == "wildcard":
        return lambda wildcards: wildcards[numbers[0] - 1]
    count, *indexes = numbers
    return lambda wildcards: str(partition([wildcards[index - 1] for index in indexes], count))
