"""An MCP server, and a Python function, that say what the variable LEAKS, a JSON object, holds for them."""

import json
import os
import sys

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("leaky")


@server.tool()
def say(what: str, token: str = "") -> str:
    """Say it; the token is for nothing."""
    return leak(what) if token else ""


@server.tool()
def fail(what: str) -> str:
    """Fail with it."""
    raise ToolError(leak(what))


@server.tool()
def die(what: str) -> str:
    """Print it on standard error, and end the server."""
    sys.stderr.write(leak(what) + "\n")
    sys.stderr.flush()
    os._exit(3)


def leak(what: str) -> str:
    """Return what is to be said."""
    return str(json.loads(os.environ["LEAKS"])[what])


def explode(what: str) -> str:
    """Raise an exception of which nobody has heard."""
    raise LookupError(leak(what))


if __name__ == "__main__":
    server.run("stdio")
