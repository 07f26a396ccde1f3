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
    pytest.param({"protocol/planted.py": "temporality.storage"}, "layers", id="protocol imports storage"),
    pytest.param({"storage/planted.py": "temporality.actors"}, "layers", id="storage imports an actor"),
    pytest.param({"actors/bus/planted.py": "temporality.deploy"}, "layers", id="an actor imports deploy"),
    pytest.param(
        {
            "actors/executor/planted.py": "temporality.actors.supervisor.planted",
            "actors/supervisor/planted.py": "re",
        },
        "actors",
        id="an actor imports another",
    ),
    pytest.param(
        {
            "actors/bus/planted.py": "temporality.actors.telemetry.planted",
            "actors/telemetry/planted.py": "re",
        },
        "actors",
        id="the bus imports an actor",
    ),
    pytest.param(
        {"actors/planted/__init__.py": "re"}, "actors", id="a folder of actors has no place in the contract"
    ),
    pytest.param({"actors/supervisor/decider.py": "time"}, "pure", id="a decider reads the clock"),
    pytest.param({"actors/supervisor/barrier.py": "random"}, "pure", id="the barrier draws lots"),
    pytest.param({"actors/supervisor/budget.py": "logging"}, "pure", id="the budget logs"),
    pytest.param(
        {"actors/language/planted.py": "opentelemetry.trace"}, "pure", id="the language layer opens a span"
    ),
    pytest.param(
        {"actors/executor/decider.py": "temporality.actors.bus.planted", "actors/bus/planted.py": "anyio"},
        "pure",
        id="a decider waits, by way of the bus",
    ),
    pytest.param({"protocol/planted.py": "asyncio"}, "pure", id="protocol waits"),
    pytest.param(
        {"protocol/planted.py": "mcp.types"}, "protocol", id="protocol needs a third party's package"
    ),
]


def copy_with(planted: dict[str, str], folder: Path) -> None:
    """Copy the four packages, each planted file with one import more; folders in between become packages."""
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / "temporality" / package, ignore=ignored)
    for name, imported in planted.items():
        file = folder / "temporality" / name
        file.parent.mkdir(exist_ok=True)
        (file.parent / "__init__.py").touch()
        with file.open("a", encoding="utf-8") as stream:
            stream.write(f"\nimport {imported}\n")


def broken_contracts(folder: Path) -> set[str]:
    """Return the ids of the contracts that the code in `folder` breaks."""
    lint_imports = Path(sys.executable).with_name("lint-imports")
    command = (lint_imports, "--no-cache", "--no-logo", ROOT / "pyproject.toml")
    environment = {**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert re.search(r"^Contracts: \d+ kept, \d+ broken\.$", said, re.MULTILINE), said
    return {key for key, contract in CONTRACTS.items() if f"{contract['name']} BROKEN" in done.stdout}


def test_contracts_are_kept_by_the_code_as_it_is(tmp_path: Path) -> None:
    copy_with({}, tmp_path)
    assert broken_contracts(tmp_path) == set()


@pytest.mark.parametrize(("planted", "contract"), PLANTED)
def test_contract_is_broken_when(planted: dict[str, str], contract: str, tmp_path: Path) -> None:
    copy_with(planted, tmp_path)
    assert contract in broken_contracts(tmp_path)


def test_every_contract_is_seen_to_break() -> None:
    assert {str(case.values[1]) for case in PLANTED} == set(CONTRACTS)


def test_every_actor_is_kept_apart_from_the_others() -> None:
    kept_apart = set(re.findall(r"\w+", CONTRACTS["actors"]["layers"][0]))
    actors = {file.parent.name for file in (ROOT / "actors").glob("*/actor.py")}
    assert actors - kept_apart == set()
