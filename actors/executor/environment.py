"""Secrets and commands: what an agent's specification may reach of the machine that runs its tools.

A specification travels through the bus, so it names secrets (`${NAME}`) and never holds them; they are filled
in here, at the last moment, from the environment that the executor was given. Errors name the variable, never
a value. A child process inherits what it needs to find its files and programs, not the secrets of others.
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import PurePath

from temporality.protocol.errors import UserError

INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""What a server's process is given of our environment: enough to start, nothing that is a secret."""

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def resolve(text: str, environment: Mapping[str, str], where: str) -> str:
    """Fill in every `${NAME}` of `text`; raise `UserError` naming the first that is not set."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in environment:
            what = f"the variable {name} is not set where the executor runs"
            raise UserError(where, what, f"set {name} in the executor's environment")
        return environment[name]

    return _REFERENCE.sub(value, text)


def child_environment(extra: Mapping[str, str], environment: Mapping[str, str], where: str) -> dict[str, str]:
    """Return the whole environment of a server's process: the inherited part, and `extra` resolved."""
    inherited = {name: environment[name] for name in INHERITED if name in environment}
    return inherited | {
        name: resolve(text, environment, f"{where}.env.{name}") for name, text in extra.items()
    }


def find_command(command: str, *, path: str | None, allow: tuple[str, ...] | None, where: str) -> str:
    """Return the file to start for `command`; raise `UserError` if it may not be started or is not there.

    An allowed bare name permits that bare name only, looked up on PATH; an allowed path that very path: so
    nobody gets `./git` started by calling it `git`.
    """
    if allow is not None and command not in allow:
        shown = ", ".join(allow) or "none"
        what = f"this executor may not start {command!r} (allowed: {shown})"
        raise UserError(where, what, "add it to executor.allow_commands")
    found = shutil.which(command, path=path)
    if found is None:
        raise UserError(
            where, f"command not found: {PurePath(command)}", f"install it or fix {where}.command"
        )
    return found
