"""Loading a third party's trigger: each mistake gets one line that says where and what."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from temporality.actors.triggers.trigger import KIND_LENGTH_MAX, built_in, load_trigger, version_of
from temporality.protocol.errors import UserError
from temporality.protocol.trigger import PRIMING, TOOL_FAILED

MODULE = f"""
kind_less = 1

class Good:
    kind = "disk.full"
    def evaluate(self, turn):
        return []

class Versioned(Good):
    version = "1.2.3"

class BadVersion(Good):
    version = "newest"

class NoKind:
    def evaluate(self, turn):
        return []

class NoEvaluate:
    kind = "x"

class Clash(Good):
    kind = "{TOOL_FAILED}"

class Priming(Good):
    kind = "{PRIMING}"

class LongKind(Good):
    kind = "{"k" * (KIND_LENGTH_MAX + 1)}"

class Arguments(Good):
    def __init__(self, path):
        self.path = path
"""
KINDS = ["Disk.Full", "disk full", "", "disk..full", ".disk", "*", "a>", "дискъ", "disk\\n"]


@pytest.fixture
def module(tmp_path: Path) -> Iterator[str]:
    """The name of a module that can be imported."""
    name = f"triggers_of_{tmp_path.name.replace('-', '_')}"
    kinds = "\n".join(f'class Kind{index}(Good):\n    kind = "{kind}"' for index, kind in enumerate(KINDS))
    (tmp_path / f"{name}.py").write_text(MODULE + kinds, encoding="utf-8")
    (tmp_path / f"{name}_needy.py").write_text("import a_package_that_is_missing", encoding="utf-8")
    (tmp_path / f"{name}_broken.py").write_text("1 / 0", encoding="utf-8")
    sys.path.insert(0, str(tmp_path))
    yield name
    sys.path.remove(str(tmp_path))


def test_trigger_is_loaded_by_its_reference(module: str) -> None:
    trigger = load_trigger(f"{module}:Good")
    assert (trigger.kind, version_of(trigger)) == ("disk.full", "0.0.0")
    assert version_of(load_trigger(f"{module}:Versioned")) == "1.2.3"


@pytest.mark.parametrize(
    ("reference", "what"),
    [
        ("{}", "no trigger reference"),
        (":Good", "no trigger reference"),
        ("{}:", "no trigger reference"),
        ("{}:Go od", "no trigger reference"),
        ("a_module_nobody_has:Good", "there is no module a_module_nobody_has"),
        ("a_package_nobody_has.part:Good", "there is no module a_package_nobody_has"),
        ("{}_needy:Good", "needs a_package_that_is_missing"),
        ("{}_broken:Good", "can't be imported: ZeroDivisionError"),
        ("{}:Better", "has no Better"),
        ("{}:kind_less", "kind_less is no class"),
        ("{}:NoEvaluate", "no method `evaluate`"),
        ("{}:NoKind", "has no `kind`"),
        ("{}:Clash", "built-in trigger's"),
        ("{}:Priming", "built-in trigger's"),
        ("{}:LongKind", "is no kind"),
        ("{}:BadVersion", "its version 'newest' is none"),
        ("{}:Arguments", "Arguments() failed: TypeError"),
        *(("{}:Kind" + str(index), "is no kind") for index in range(len(KINDS))),
    ],
)
def test_mistake_is_told_with_its_place(module: str, reference: str, what: str) -> None:
    reference = reference.replace("{}", module)
    with pytest.raises(UserError) as raised:
        load_trigger(reference)
    assert raised.value.where == reference
    assert what in raised.value.what
    assert raised.value.do
    assert "\n" not in str(raised.value)


def test_built_in_kinds_are_distinct() -> None:
    kinds = [trigger.kind for trigger in built_in()]
    assert len(set(kinds)) == len(kinds)
    assert TOOL_FAILED in kinds
