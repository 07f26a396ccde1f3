"""From a server's specification to a connection: references resolved, command checked, transport chosen."""

from temporality.actors.executor.connection import Connection, Transport
from temporality.actors.executor.environment import child_environment, find_command, resolve
from temporality.actors.executor.settings import ExecutorSettings
from temporality.actors.executor.stdio import StdioTransport
from temporality.actors.executor.streamable_http import HttpTransport
from temporality.protocol.agent import McpServerSpec


def dial(key: str, spec: McpServerSpec, settings: ExecutorSettings) -> Connection:
    """Return a connection to the server `key`, not yet opened.

    Raises `UserError` if a variable is not set, or the command is missing or not allowed.
    """
    return Connection(_transport(key, spec, settings), start_timeout_s=settings.start_timeout_s)


def _transport(key: str, spec: McpServerSpec, settings: ExecutorSettings) -> Transport:
    environment, where = settings.environment, f"tools.mcp.{key}"
    if spec.command is None:
        headers = {
            name: resolve(text, environment, f"{where}.headers.{name}") for name, text in spec.headers.items()
        }
        return HttpTransport(resolve(spec.url or "", environment, f"{where}.url"), headers)
    command = find_command(
        spec.command, path=environment.get("PATH"), allow=settings.allow_commands, where=where
    )
    arguments = [resolve(text, environment, f"{where}.args") for text in spec.args]
    return StdioTransport([command, *arguments], child_environment(spec.env, environment, where))
