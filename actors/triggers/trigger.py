"""What a trigger is, to everybody who writes one: a kind, and a pure function from a turn to candidates.

A trigger sees all it needs in the message (the calls of the turn, bounded and redacted, and a digest of the
run's last calls), so it keeps no state: any number of processes may serve the same kind, and a replay gives
the same candidates. It proposes and decides nothing (A4); its text is data to everybody after it (A18).
"""

import importlib
import re
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from temporality.actors.triggers.tool_failed import ToolFailed
from temporality.protocol.errors import UserError
from temporality.protocol.trigger import (
    KIND_LENGTH_MAX,
    PRIMING,
    Candidate,
    EmptyDiagnostic,
    is_kind,
)
from temporality.protocol.turn import TurnSettled

DEFAULT_VERSION = "0.0.0"
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?\Z")

Finding = Candidate | EmptyDiagnostic
"""What `evaluate` may yield: a third party's trigger yields candidates only."""


@runtime_checkable
class Trigger(Protocol):
    """The third party's door (A10): a class without arguments, with a `kind` and a pure `evaluate`.

    `version` (semantic, default 0.0.0) is shown in the roster; raise it when the same turn would give other
    candidates.
    """

    kind: str

    def evaluate(self, turn: TurnSettled) -> Iterable[Finding]:
        """Yield a candidate for each situation that may deserve a look-up; called in a thread of its own.

        Must be pure: no state between calls, no clock, no I/O. An exception costs this answer only.
        """
        ...


def built_in() -> tuple[Trigger, ...]:
    """Return the triggers that every deployment has."""
    return (ToolFailed(),)


def version_of(trigger: Trigger) -> str:
    """Return a trigger's version, 0.0.0 if it names none."""
    return str(getattr(trigger, "version", DEFAULT_VERSION))


def load_trigger(reference: str) -> Trigger:
    """Import `package.module:Class` and return an instance of it.

    Raises `UserError` that says what is wrong with the reference, the module, the class or its kind.
    """
    module_name, _, class_name = reference.partition(":")
    if not module_name or not class_name.isidentifier():
        raise UserError(reference, "is no trigger reference", "write package.module:Class")
    found = getattr(_imported(reference, module_name), class_name, None)
    if found is None:
        raise UserError(reference, f"module {module_name} has no {class_name}", "check the name of the class")
    if not isinstance(found, type):
        raise UserError(reference, f"{class_name} is no class", "name the trigger's class")
    try:
        trigger = found()
    except Exception as error:
        raise UserError(
            reference, f"{class_name}() failed: {_described(error)}", "a trigger's class takes no arguments"
        ) from error
    return checked(trigger, reference)


def checked(trigger: object, where: str) -> Trigger:
    """Return `trigger` if a third party may serve it; raise `UserError` at `where` otherwise."""
    kind = getattr(trigger, "kind", None)
    if not callable(getattr(trigger, "evaluate", None)):
        raise UserError(where, "is no trigger: it has no method `evaluate`", "add evaluate(self, turn)")
    if kind is None:
        raise UserError(where, "has no `kind`", 'add a line like kind = "disk.full"')
    if not isinstance(kind, str) or not (is_kind(kind) or kind == PRIMING):
        raise UserError(
            where,
            f"its kind {str(kind)[:80]!r} is no kind",
            f"use words of a-z 0-9 joined by . _ or -, up to {KIND_LENGTH_MAX} characters",
        )
    if kind in {PRIMING, *(trigger.kind for trigger in built_in())}:
        raise UserError(where, f"its kind {kind!r} is a built-in trigger's", "choose another kind")
    assert isinstance(trigger, Trigger)
    if not _VERSION.match(version_of(trigger)):
        raise UserError(where, f"its version {version_of(trigger)[:80]!r} is none", 'use one like "1.0.0"')
    return trigger


def _imported(reference: str, module_name: str) -> object:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise UserError(
                reference, f"there is no module {error.name}", "check the name, and that it is installed"
            ) from error
        raise UserError(
            reference, f"module {module_name} needs {error.name}", "install what the trigger needs"
        ) from error
    except Exception as error:
        raise UserError(
            reference, f"module {module_name} can't be imported: {_described(error)}", "run it with python"
        ) from error


def _described(error: Exception) -> str:
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
