"""The source is held to the rules of style that a machine can see and no linter has.

Each rule is a function from one file to what it finds there. A rule that never finds anything proves nothing,
so every one has examples below that break it. Words that a rule looks for in whole texts are made up from
parts, since this file is read by its own rules.
"""

import ast
import io
import os
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("protocol", "storage", "actors", "deploy")
CODE = (*PACKAGES, "tests", "bench")
NOT_OURS = (
    ".git",
    ".venv*",
    ".*_cache",
    ".hypothesis",
    ".temporality",
    "__pycache__",
    "build",
    "dist",
    "src",
)

FUNCTION_LINES_MAX = 60
"""A longer function holds two ideas, and its reader holds neither."""

FILE_LINES_MAX = 400
"""A longer file holds more than one concept; tests are read as well, so they count."""

VAGUE = frozenset({"util", "utils", "common", "helper", "helpers", "misc", "manager", "managers", "base"})
"""Names that say where the author gave up: a function lives beside its noun."""

PURE = ("protocol/*", "actors/*/decider.py", "actors/*/barrier.py", "actors/*/budget.py", "actors/language/*")
"""Where time, chance and the surroundings are arguments; the imports are held by the contract `pure`."""

UNFINISHED = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")) + r")\b")
REGISTRY = re.compile(
    r"\b(?:pypi|python" r"hosted|npmjs|yarnpkg|debian|crates|golang|anaconda|rubygems)\.(?:org|io|com)\b"
)
MACHINE_PATH = re.compile(r"(?<![\w.])/wo" + rf"rk/|{re.escape(str(ROOT))}/")
HIDDEN_INPUT = re.compile(
    r"(?:.*\.)?(?:datetime|date)\.(?:now|utcnow|today)|uuid\.uuid[14]|os\.(?:environ|getenv|urandom|getpid)"
)
SLEEP = re.compile(r"(?:time|asyncio|anyio|trio)\.sleep")
SKIP = re.compile(r"(?:pytest|unittest|(?:.*\.)?mark)\.(?:skip\w*|xfail|importorskip|expectedFailure)")
PROMISES = ("Receives", "Emits", "Guarantees", "Loses")

Finding = tuple[int, str]
"""A line, and what is wrong with it."""


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` as it is written."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
        case _:
            return ast.unparse(node)


@dataclass(frozen=True)
class Source:
    """One file, named as in the checkout."""

    path: str
    text: str

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(ast.parse(self.text, self.path)))

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    @property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in self.nodes if isinstance(node, ast.ClassDef)]

    @cached_property
    def names(self) -> tuple[Finding, ...]:
        """Every `a.b.c` that the file uses, also as part of a longer one, or imports from `a.b`."""
        return tuple(self._names())

    def _names(self) -> Iterator[Finding]:
        for node in self.nodes:
            if isinstance(node, ast.Attribute | ast.Name):
                yield node.lineno, dotted(node)
            elif isinstance(node, ast.ImportFrom):
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)


Rule = Callable[[Source], Iterator[Finding]]


def function_is_short(source: Source) -> Iterator[Finding]:
    for function in source.functions:
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            yield function.lineno, f"{function.name} has {lines} lines, more than {FUNCTION_LINES_MAX}"


def file_is_short(source: Source) -> Iterator[Finding]:
    lines = source.text.count("\n")
    if lines > FILE_LINES_MAX:
        yield lines, f"more than {FILE_LINES_MAX} lines"


def name_says_something(source: Source) -> Iterator[Finding]:
    for part in source.path.removesuffix(".py").split("/"):
        if VAGUE & set(part.strip("_").split("_")):
            yield 1, f"{part} says nothing"
    for node in source.classes:
        words = [word.lower() for word in re.findall(r"[A-Z][a-z]*", node.name)]
        if VAGUE & set(words) - {"base"} or words[:1] == ["base"]:
            yield node.lineno, f"{node.name} says nothing"


def nothing_is_left_for_later(source: Source) -> Iterator[Finding]:
    if UNFINISHED.search(source.text):  # else no comment has it, and taking a file apart takes long
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type == tokenize.COMMENT and UNFINISHED.search(token.string):
                yield token.start[0], token.string
    yield from ((line, name) for line, name in source.names if name == "NotImplementedError")


def no_test_sleeps(source: Source) -> Iterator[Finding]:
    if not source.path.startswith("tests/"):
        return
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute() as function) if SLEEP.fullmatch(ast.unparse(function)):
                only_lets_others_run = [ast.unparse(argument) for argument in node.args] == ["0"]
                if not only_lets_others_run:
                    yield node.lineno, ast.unparse(node)
            case ast.ImportFrom(module=module) if any(
                SLEEP.fullmatch(f"{module}.{name.name}") for name in node.names
            ):
                yield node.lineno, ast.unparse(node)


def no_test_is_left_out(source: Source) -> Iterator[Finding]:
    if source.path.startswith("tests/"):
        yield from ((line, name) for line, name in source.names if SKIP.fullmatch(name))


def no_test_patches(source: Source) -> Iterator[Finding]:
    if not source.path.startswith("tests/"):
        return
    for function in source.functions:
        patching = {argument.arg for argument in function.args.args} & {"monkeypatch", "mocker"}
        yield from ((function.lineno, f"{function.name} asks for {name}") for name in sorted(patching))
    yield from ((line, name) for line, name in source.names if name.startswith("unittest.mock"))


def protocol_is_documented(source: Source) -> Iterator[Finding]:
    if not source.path.startswith("protocol/"):
        return
    module = ast.parse(source.text)
    for node in (module, *module.body):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        name = "the module" if isinstance(node, ast.Module) else node.name
        if not name.startswith("_") and not ast.get_docstring(node):
            yield getattr(node, "lineno", 1), f"{name} has no docstring"


def decider_takes_no_hidden_input(source: Source) -> Iterator[Finding]:
    if any(fnmatch(source.path, pattern) for pattern in PURE):
        yield from ((line, name) for line, name in source.names if HIDDEN_INPUT.fullmatch(name))


def registry_is_not_named(source: Source) -> Iterator[Finding]:
    yield from every_match(REGISTRY, source)


def machine_is_not_named(source: Source) -> Iterator[Finding]:
    yield from every_match(MACHINE_PATH, source)


def every_match(pattern: re.Pattern[str], source: Source) -> Iterator[Finding]:
    for match in pattern.finditer(source.text):
        yield source.text.count("\n", 0, match.start()) + 1, match.group()


TEXT_RULES: list[Rule] = [registry_is_not_named, machine_is_not_named]
CODE_RULES: list[Rule] = [
    function_is_short,
    file_is_short,
    name_says_something,
    nothing_is_left_for_later,
    no_test_sleeps,
    no_test_is_left_out,
    no_test_patches,
    protocol_is_documented,
    decider_takes_no_hidden_input,
]


def read(patterns: tuple[str, ...], *, roots: tuple[str, ...]) -> list[Source]:
    """Return all text files under `roots` whose names match; folders that are not ours are left out."""
    found: list[Source] = []
    for folder, folders, files in (step for root in roots for step in os.walk(ROOT / root)):
        folders[:] = sorted(
            name for name in folders if not any(fnmatch(name, pattern) for pattern in NOT_OURS)
        )
        for name in sorted(files):
            if any(fnmatch(name, pattern) for pattern in patterns):
                path = Path(folder, name)
                text = path.read_text(encoding="utf-8", errors="ignore")
                found.append(Source(path.relative_to(ROOT).as_posix(), text))
    return found


def listed(found: list[str]) -> str:
    return "\n".join(["", *found])


def findings(rule: Rule, sources: list[Source]) -> list[str]:
    return [f"{source.path}:{line}: {what}" for source in sources for line, what in rule(source)]


@pytest.fixture(scope="module")
def code() -> list[Source]:
    return read(("*.py",), roots=CODE)


@pytest.fixture(scope="module")
def texts() -> list[Source]:
    return read(("*",), roots=(".",))


@pytest.mark.parametrize("rule", CODE_RULES, ids=lambda rule: rule.__name__)
def test_all_code_keeps_the_rule(rule: Rule, code: list[Source]) -> None:
    found = findings(rule, code)
    assert not found, listed(found)


@pytest.mark.parametrize("rule", TEXT_RULES, ids=lambda rule: rule.__name__)
def test_all_files_keep_the_rule(rule: Rule, texts: list[Source]) -> None:
    found = findings(rule, texts)
    assert not found, listed(found)


def test_code_and_other_files_are_really_read(code: list[Source], texts: list[Source]) -> None:
    assert {"protocol/subjects.py", "tests/architecture/test_source.py"} <= {source.path for source in code}
    assert {"Makefile", ".ci/run", "pyproject.toml", "requirements.lock"} <= {source.path for source in texts}


def test_every_folder_with_code_is_a_package() -> None:
    """The import contracts do not see a module whose folder has no `__init__.py`."""
    folders = {Path(source.path).parent for source in read(("*.py",), roots=PACKAGES)}
    found = sorted(str(folder) for folder in folders if not (ROOT / folder / "__init__.py").is_file())
    assert not found, listed(found)


def test_every_actor_says_what_it_promises() -> None:
    actors = [actor.with_name("__init__.py") for actor in sorted((ROOT / "actors").glob("*/actor.py"))]
    said = {
        actor.parent.name: ast.get_docstring(ast.parse(actor.read_text(encoding="utf-8"))) for actor in actors
    }
    found = [
        f"{name}: {word}" for name, text in said.items() for word in PROMISES if word not in (text or "")
    ]
    assert not found, listed(found)


LONG = "def f():\n" + "    pass\n" * FUNCTION_LINES_MAX
BREAKS = [
    (function_is_short, "actors/a.py", LONG),
    (file_is_short, "actors/a.py", "pass\n" * (FILE_LINES_MAX + 1)),
    (name_says_something, "actors/bus/utils.py", ""),
    (name_says_something, "tests/bus_helpers/test_a.py", ""),
    (name_says_something, "actors/a.py", "class RunManager: ..."),
    (name_says_something, "actors/a.py", "class BaseActor: ..."),
    (nothing_is_left_for_later, "actors/a.py", "x = 1  # TO" + "DO: two"),
    (nothing_is_left_for_later, "actors/a.py", "def f():\n    raise NotImplementedError"),
    (no_test_sleeps, "tests/test_a.py", "import time\ntime.sleep(1)"),
    (no_test_sleeps, "tests/test_a.py", "async def f():\n    await anyio.sleep(0.1)"),
    (no_test_sleeps, "tests/test_a.py", "from asyncio import sleep"),
    (no_test_is_left_out, "tests/test_a.py", "@pytest.mark.skipif(True, reason='')\ndef test_f(): ..."),
    (no_test_is_left_out, "tests/test_a.py", "@pytest.mark.xfail\ndef test_f(): ..."),
    (no_test_is_left_out, "tests/test_a.py", "numpy = pytest.importorskip('numpy')"),
    (no_test_patches, "tests/test_a.py", "def test_f(monkeypatch): ..."),
    (no_test_patches, "tests/test_a.py", "from unittest.mock import Mock"),
    (protocol_is_documented, "protocol/a.py", '"""A module."""\nclass Turn: ...'),
    (protocol_is_documented, "protocol/a.py", "x = 1"),
    (decider_takes_no_hidden_input, "actors/supervisor/decider.py", "now = datetime.datetime.now()"),
    (decider_takes_no_hidden_input, "protocol/a.py", "import os\nhome = os.environ['HOME']"),
    (registry_is_not_named, "Makefile", "pip install --index-url https://py" + "pi.org/simple"),
    (machine_is_not_named, "docs/a.md", "see /wo" + "rk/notes"),
    (machine_is_not_named, "bench/a.py", f"DATA = '{ROOT}/data'"),
]


@pytest.mark.parametrize(("rule", "path", "text"), BREAKS)
def test_rule_finds_what_breaks_it(rule: Rule, path: str, text: str) -> None:
    assert len(findings(rule, [Source(path, text)])) == 1


def test_every_rule_is_seen_to_find_something() -> None:
    assert {rule for rule, _, _ in BREAKS} == {*CODE_RULES, *TEXT_RULES}


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (function_is_short, "actors/a.py", LONG.removesuffix("    pass\n")),
        (no_test_sleeps, "tests/test_a.py", "async def f():\n    await anyio.sleep(0)"),
        (no_test_sleeps, "actors/a.py", "async def f():\n    await anyio.sleep(1)"),
        (name_says_something, "storage/database.py", "class KnowledgeBase: ..."),
        (protocol_is_documented, "protocol/a.py", '"""A module."""\ndef _f(): ...'),
        (machine_is_not_named, "docs/a.md", "the network/ folder and its teamwork/ notes"),
    ],
)
def test_rule_lets_pass_what_keeps_it(rule: Rule, path: str, text: str) -> None:
    assert findings(rule, [Source(path, text)]) == []
