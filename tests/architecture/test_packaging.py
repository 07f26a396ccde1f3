"""What a user installs is what lies in the tree.

The import name is put together from four top-level folders by symlinks and by a rewriting of paths in the
build (docs/adr/0001), so the ways to get the code (the checkout itself, an editable install, a wheel from the
tree, a wheel from the sdist) could come to differ without anybody noticing. Here each is made from a copy of
the checkout, without a network, and compared with the folders.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("protocol", "storage", "actors", "deploy")
NOT_IN_A_CHECKOUT = (
    ".git",
    ".venv*",
    ".*_cache",
    ".hypothesis",
    ".temporality",
    "__pycache__",
    "dist",
    "build",
)
PLANTED = ("storage/planted/0001_first.sql", "deploy/planted/cluster.yaml", "actors/planted/pages/page.html")
"""Files that are not Python, in folders that are no packages: they must travel whatever else there is."""

# Imports the modules named on standard input as JSON, or only looks for them; answers where each is or why it
# is not. Runs without `site`, since the .pth file of an editable install would lead back to the checkout.
IMPORT_ALL = """
import importlib, importlib.util, json, sys
how, first, *others = sys.argv[1:]
sys.path[:0] = [first]
sys.path += others
def where(name):
    try:
        if how == "look":
            return importlib.util.find_spec(name).origin
        return importlib.import_module(name).__file__
    except (ImportError, AttributeError) as error:
        return str(error)
print(json.dumps({name: where(name) for name in json.load(sys.stdin)}))
"""

PIP_INSTALL = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile")

pytestmark = pytest.mark.timeout(240)


@dataclass(frozen=True)
class Built:
    """A copy of the checkout and what was built from it; files are named as in the checkout."""

    checkout: Path
    tree: frozenset[str]
    sdist: frozenset[str]
    wheel_from_sdist: frozenset[str]
    wheel_from_tree: frozenset[str]
    wheel: Path


def run(*command: str | Path, stdin: str = "") -> str:
    """Run a command without any package index; return its standard output, or fail with all it said."""
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(command, input=stdin, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def files_of(checkout: Path) -> frozenset[str]:
    """Return the files of the four packages; what a symlink leads to counts as lying where the symlink is."""
    return frozenset(
        Path(folder, name).relative_to(checkout).as_posix()
        for package in PACKAGES
        for folder, _, names in os.walk(checkout / package, followlinks=True)
        for name in names
        if "__pycache__" not in Path(folder).parts
    )


def names_in_wheel(wheel: Path) -> frozenset[str]:
    with zipfile.ZipFile(wheel) as archive:
        return frozenset(
            name.removeprefix("temporality/")
            for name in archive.namelist()
            if name.startswith("temporality/")
        )


def names_in_sdist(sdist: Path) -> frozenset[str]:
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    return frozenset(name for name in names if name.startswith(tuple(f"{package}/" for package in PACKAGES)))


def modules_of(files: frozenset[str]) -> list[str]:
    """Return the import names of the Python files; a `__main__` is a program, not for importing."""
    dotted = (
        "temporality." + name.removesuffix(".py").replace("/", ".") for name in files if name.endswith(".py")
    )
    return sorted(name.removesuffix(".__init__") for name in dotted if not name.endswith(".__main__"))


def not_found_in(expected: Path, files: frozenset[str], *, path: Path, how: str) -> list[str]:
    """Import or look for all modules, `path` first; return those not in `expected`, and where else or why."""
    modules = modules_of(files)
    site = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    answer = run(sys.executable, "-I", "-S", "-c", IMPORT_ALL, how, path, *site, stdin=json.dumps(modules))
    found: dict[str, str] = json.loads(answer)
    assert sorted(found) == modules
    return [
        f"{name}: {where}"
        for name, where in found.items()
        if not Path(where).resolve().is_relative_to(expected)
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    place = tmp_path_factory.mktemp("packaging")
    checkout = place / "checkout"
    shutil.copytree(ROOT, checkout, symlinks=True, ignore=shutil.ignore_patterns(*NOT_IN_A_CHECKOUT))
    for name in PLANTED:
        planted = checkout / name
        planted.parent.mkdir(parents=True)
        planted.write_text("planted\n", encoding="utf-8")
    build = (sys.executable, "-m", "build", "--no-isolation")
    run(*build, "--outdir", place / "both", checkout)
    run(*build, "--wheel", "--outdir", place / "tree", checkout)
    (sdist,), (wheel,) = (place / "both").glob("*.tar.gz"), (place / "both").glob("*.whl")
    (from_tree,) = (place / "tree").glob("*.whl")
    return Built(
        checkout=checkout,
        tree=files_of(checkout),
        sdist=names_in_sdist(sdist),
        wheel_from_sdist=names_in_wheel(wheel),
        wheel_from_tree=names_in_wheel(from_tree),
        wheel=wheel,
    )


def test_sdist_holds_every_file_of_the_four_packages(built: Built) -> None:
    assert built.sdist == built.tree


def test_wheel_built_from_the_sdist_holds_every_file_of_the_four_packages(built: Built) -> None:
    assert built.wheel_from_sdist == built.tree


def test_wheel_built_from_the_tree_is_no_other_than_the_one_built_from_the_sdist(built: Built) -> None:
    assert built.wheel_from_tree == built.wheel_from_sdist


def test_files_that_are_not_python_travel_too(built: Built) -> None:
    assert built.wheel_from_sdist >= set(PLANTED)


def test_types_reach_whoever_installs_the_wheel(built: Built) -> None:
    assert built.wheel_from_sdist >= {f"{package}/py.typed" for package in PACKAGES}


def test_import_name_has_no_init_of_its_own(built: Built) -> None:
    assert "__init__.py" not in built.wheel_from_sdist | built.wheel_from_tree


def test_every_module_of_the_installed_wheel_imports_without_the_checkout(
    built: Built, tmp_path: Path
) -> None:
    run(*PIP_INSTALL, "--target", tmp_path, built.wheel)
    assert not_found_in(tmp_path, built.tree, path=tmp_path, how="import") == []


def test_every_module_of_an_editable_install_is_read_from_the_checkout(built: Built, tmp_path: Path) -> None:
    run(*PIP_INSTALL, "--no-build-isolation", "--target", tmp_path, "--editable", built.checkout)
    (pth,) = tmp_path.glob("*.pth")
    path = Path(pth.read_text(encoding="utf-8").strip())
    assert not_found_in(built.checkout, built.tree, path=path, how="look") == []
