"""Reading a script: YAML or JSON, strict, with the line of what is wrong and a suggestion for a typo."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from temporality.actors.model.script import CallReplied, Capture, Rule, Script, TextTest, When
from temporality.actors.model.template import TURN, names_in
from temporality.protocol.errors import UserError
from temporality.protocol.strict import convert_strict

SCRIPT_BYTES_MAX: Final = 1_048_576
"""Largest script: far above any that a person writes, and a bound for what is read into memory."""

_UNKNOWN_KEY: Final = re.compile(r"unknown key '(.*)'\Z")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def load_script(path: Path) -> Script:
    """Read a script file; raises `UserError` with file and line."""
    try:
        with path.open("rb") as file:
            text = file.read(SCRIPT_BYTES_MAX + 1)
    except OSError as error:
        raise UserError(str(path), f"can't be read: {error.strerror}", "check the path") from error
    if len(text) > SCRIPT_BYTES_MAX:
        raise UserError(str(path), f"a script has at most {SCRIPT_BYTES_MAX} bytes")
    try:
        return parse_script(text.decode(), where=str(path))
    except UnicodeDecodeError as error:
        raise UserError(str(path), "is not UTF-8 text") from error


def parse_script(text: str, *, where: str = "script") -> Script:
    """Return the script that a YAML (or JSON) text holds; raises `UserError` with the line."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None:
            raise UserError(where, "is empty", "begin with `replies:` and a list of rules")
        lines = dict(_lines(root, (), where))
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{where}:{line}", f"is not YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UserError(where, f"is not YAML: {type(error).__name__}") from error
    script = _converted(data, lines, where)
    _check(script, lines, where)
    return script


Path_ = tuple[str | int, ...]


def _lines(node: yaml.Node, path: Path_, where: str) -> Iterator[tuple[Path_, int]]:
    """Yield the line of every key and item, refusing a key that stands twice in one mapping."""
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _lines(item, (*path, index), where)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                line = key.start_mark.line + 1
                raise UserError(f"{where}:{line}", f"`{name}` stands here twice", "remove one of them")
            seen.add(name)
            yield from _lines(value, (*path, name), where)
            yield (*path, name), key.start_mark.line + 1


def _place(path: Path_, lines: dict[Path_, int], where: str) -> str:
    """Return `file:line (path)`; a step that isn't in the file has the line of what should hold it."""
    known = next((path[:length] for length in range(len(path), -1, -1) if path[:length] in lines), ())
    dotted = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    return f"{where}:{lines.get(known, 1)}" + (f" ({dotted})" if dotted else "")


def _steps(path: str) -> Path_:
    """Return the steps of a path such as `$.replies[0].when`."""
    return tuple(int(item) if item else name for name, item in _STEP.findall(path))


def _converted(data: object, lines: dict[Path_, int], where: str) -> Script:
    try:
        script: Script = convert_strict(data, Script, where=where)
    except UserError as error:
        path = error.where.removeprefix(f"{where}: ")
        key = _UNKNOWN_KEY.match(error.what)
        steps = (*_steps(path), key.group(1)) if key else _steps(path)
        raise UserError(_place(steps, lines, where), error.what, error.do) from error
    return script


def _check(script: Script, lines: dict[Path_, int], where: str) -> None:
    """Refuse what the types can't: regexes that don't compile, templates without a value, equal names."""
    names: dict[str, int] = {}
    for index, rule in enumerate(script.replies):
        here: Path_ = ("replies", index)
        name = script.name_of(index)
        if name in names:
            raise UserError(_place((*here, "name"), lines, where), f"two rules are named `{name}`")
        names[name] = index
        for path, pattern in _patterns(rule):
            try:
                re.compile(pattern)
            except re.error as error:
                raise UserError(
                    _place((*here, *path), lines, where), f"is not a regular expression: {error}"
                ) from error
        unknown = _template_names(rule) - rule.capture.keys() - {TURN}
        if unknown:
            name = min(unknown)
            raise UserError(
                _place((*here, "reply"), lines, where),
                f"no capture gives `{{{{{name}}}}}` a value",
                f"add it under `capture` of rule {index + 1}",
            )


def _patterns(rule: Rule) -> Iterator[tuple[Path_, str]]:
    for name, capture in rule.capture.items():
        assert isinstance(capture, Capture)
        yield ("capture", name, "matches"), capture.matches
    for entry in msgspec.structs.fields(When):
        test = getattr(rule.when, entry.name)
        if isinstance(test, TextTest) and test.matches is not None:
            yield ("when", entry.name, "matches"), test.matches


def _template_names(rule: Rule) -> set[str]:
    if rule.reply is None:
        return set()
    calls: tuple[CallReplied, ...] = rule.reply.tool_calls
    values: list[Any] = [rule.reply.content]
    for call in calls:
        values += [call.name, call.arguments, call.raw_arguments]
    return names_in(values)
