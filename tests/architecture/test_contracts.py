"""The import contracts hold what they say, and break when they should.

`make check` runs them on the code itself. Here they are run on a copy with one forbidden import planted,
since a contract that has come to match nothing (a folder renamed, a wildcard misspelt) is kept for ever.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("protocol", "storage", "actors", "deploy")
CONTRACTS = {
    contract["id"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
}

PLANTED = [
    pytest.param(
        {"protocol/planted.py": "temporality.storage"},
        "layers",
        "temporality.protocol.planted -> temporality.storage",
        id="protocol imports storage",
    ),
    pytest.param(
        {"storage/planted.py": "temporality.actors"},
        "layers",
        "temporality.storage.planted -> temporality.actors",
        id="storage imports an actor",
    ),
    pytest.param(
        {"actors/bus/planted.py": "temporality.deploy"},
        "layers",
        "temporality.actors.bus.planted -> temporality.deploy",
        id="an actor imports deploy",
    ),
    pytest.param(
        {
            "actors/executor/planted.py": "temporality.actors.supervisor.planted",
            "actors/supervisor/planted.py": "re",
        },
        "actors",
        "temporality.actors.executor.planted -> temporality.actors.supervisor.planted",
        id="an actor imports another",
    ),
    pytest.param(
        {
            "actors/bus/planted.py": "temporality.actors.telemetry.planted",
            "actors/telemetry/planted.py": "re",
        },
        "actors",
        "temporality.actors.bus.planted -> temporality.actors.telemetry.planted",
        id="the bus imports an actor",
    ),
    pytest.param(
        {"actors/planted/__init__.py": "re"},
        "actors",
        "- temporality.actors.planted",
        id="a folder of actors has no place in the contract",
    ),
    pytest.param(
        {"actors/supervisor/decider.py": "time"},
        "pure",
        "temporality.actors.supervisor.decider -> time",
        id="a decider reads the clock",
    ),
    pytest.param(
        {"actors/supervisor/barrier.py": "random"},
        "pure",
        "temporality.actors.supervisor.barrier -> random",
        id="the barrier draws lots",
    ),
    pytest.param(
        {"actors/supervisor/budget.py": "logging"},
        "pure",
        "temporality.actors.supervisor.budget -> logging",
        id="the budget logs",
    ),
    pytest.param(
        {"actors/retriever/selection.py": "time"},
        "pure",
        "temporality.actors.retriever.selection -> time",
        id="the selection of hints reads the clock",
    ),
    pytest.param(
        {"actors/model/render/openai.py": "logging"},
        "pure",
        "temporality.actors.model.render.openai -> logging",
        id="rendering a request logs",
    ),
    pytest.param(
        {"actors/language/planted.py": "opentelemetry.trace"},
        "pure",
        "temporality.actors.language.planted -> opentelemetry",
        id="the language layer opens a span",
    ),
    pytest.param(
        {"actors/executor/decider.py": "temporality.actors.bus.planted", "actors/bus/planted.py": "anyio"},
        "pure",
        "temporality.actors.executor.decider is not allowed to import anyio",
        id="a decider waits, by way of the bus",
    ),
    pytest.param(
        {"protocol/planted.py": "asyncio"},
        "pure",
        "temporality.protocol.planted -> asyncio",
        id="protocol waits",
    ),
    pytest.param(
        {"protocol/planted.py": "mcp.types"},
        "protocol",
        "temporality.protocol.planted -> mcp",
        id="protocol needs a third party's package",
    ),
]


def copy_to(folder: Path) -> None:
    """Copy the four packages to where they are imported from."""
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / "temporality" / package, ignore=ignored)


def plant(imports: dict[str, str], folder: Path) -> None:
    """Add one import to each file; folders in between become packages."""
    for name, imported in imports.items():
        file = folder / "temporality" / name
        file.parent.mkdir(exist_ok=True)
        (file.parent / "__init__.py").touch()
        with file.open("a", encoding="utf-8") as stream:
            stream.write(f"\nimport {imported}\n")


def broken_contracts(folder: Path) -> dict[str, str]:
    """Return what is said of each contract that the code in `folder` breaks, by the contract's id."""
    lint_imports = Path(sys.executable).with_name("lint-imports")
    command = (lint_imports, "--no-cache", "--no-logo", ROOT / "pyproject.toml")
    environment = {**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert re.search(r"^Contracts: \d+ kept, \d+ broken\.$", said, re.MULTILINE), said
    broken = [key for key, contract in CONTRACTS.items() if f"{contract['name']} BROKEN" in done.stdout]
    names = "|".join(re.escape(CONTRACTS[key]["name"]) for key in broken)
    sections = re.split(rf"^(?:{names})\n-+$", done.stdout, flags=re.MULTILINE)[1:] if broken else []
    return dict(zip(broken, sections, strict=True))


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Plant all at once, since every run reads all code; each finding is then looked for by its name."""
    folder = tmp_path_factory.mktemp("planted")
    copy_to(folder)
    for case in PLANTED:
        imports = case.values[0]
        assert isinstance(imports, dict)
        plant(imports, folder)
    return broken_contracts(folder)


def test_contracts_are_kept_by_the_code_as_it_is(tmp_path: Path) -> None:
    copy_to(tmp_path)
    assert broken_contracts(tmp_path) == {}


@pytest.mark.parametrize(("planted", "contract", "told"), PLANTED)
def test_contract_is_broken_when(
    broken: dict[str, str], planted: dict[str, str], contract: str, told: str
) -> None:
    assert re.search(rf"{re.escape(told)}(?: \(l\.\d+\)|:)?$", broken[contract], re.MULTILINE), planted


def test_every_contract_is_seen_to_break() -> None:
    assert {str(case.values[1]) for case in PLANTED} == set(CONTRACTS)


def test_every_actor_is_kept_apart_from_the_others() -> None:
    kept_apart = set(re.findall(r"\w+", CONTRACTS["actors"]["layers"][0]))
    actors = {file.parent.name for file in (ROOT / "actors").glob("*/actor.py")}
    assert actors - kept_apart == set()
