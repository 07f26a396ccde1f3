"""`${NAME}` references to secrets, resolved by the process that needs them (only here are they values)."""

import re
from collections.abc import Mapping
from typing import Final

from temporality.protocol.errors import WorldError

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class VariableMissing(WorldError):
    """A reference names a variable that this process doesn't have."""

    def __init__(self, field: str, name: str) -> None:
        self.field = field
        self.name = name
        super().__init__(f"`{field}` refers to ${{{name}}}, which is not set where the model caller runs")


def resolve(field: str, text: str, environment: Mapping[str, str]) -> str:
    """Return `text` with every reference replaced; raises `VariableMissing`, which names the variable."""

    def value(match: re.Match[str]) -> str:
        found = environment.get(match.group(1))
        if not found:
            raise VariableMissing(field, match.group(1))
        return found

    return _REFERENCE.sub(value, text)
