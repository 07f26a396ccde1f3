"""Reading a YAML file that a person wrote: one meaning a key, text that looks like a date is text.

YAML lets a key stand twice and the last one win, and turns unquoted dates into dates; here the first is an
error, since one of two settings would silently not hold, and the second does not happen.
"""

from pathlib import Path
from typing import Any

import yaml

from temporality.protocol.errors import UserError

_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """The safe loader, without dates and without repeated keys."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # a class attribute of PyYAML's
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Compose a mapping; a key that it holds twice is an error at the second one."""
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} stands here twice", key.start_mark
                )
            seen.add(key.value)
        return node


_Loader.add_constructor(_TIMESTAMP, lambda _, node: str(node.value))


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds; raise `UserError` with file and line."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)  # a safe one
    except OSError as error:
        raise UserError(str(path), error.strerror or type(error).__name__, "check the path") from error
    except UnicodeDecodeError as error:
        raise UserError(str(path), "is not UTF-8 text", "save it as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}:{line}", f"is not valid YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(str(path), f"is not valid YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise UserError(str(path), "is nested too deeply", "write it flat") from error
