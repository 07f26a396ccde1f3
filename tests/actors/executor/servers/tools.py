"""An MCP server with a tool for each way a call can end: `tools.py stdio`, or `tools.py http FD`.

FD is the descriptor of a socket that listens already.

Effects are written to the file named by LEDGER, one line each: tool, idempotency key, process.
"""

import os
import socket
import sys
from pathlib import Path

import anyio
import mcp_types as types
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("tools")
READ_ONLY = types.ToolAnnotations(read_only_hint=True)
IDEMPOTENT = types.ToolAnnotations(idempotent_hint=True)


def write_effect(tool: str, context: Context) -> str:
    meta = context.request_context.meta or {}
    key = meta.get("temporality/idempotency-key", "no key")
    with Path(os.environ["LEDGER"]).open("a", encoding="utf-8") as ledger:
        ledger.write(f"{tool} {key} {os.getpid()}\n")
    return str(key)


@server.tool(annotations=READ_ONLY)
def echo(text: str) -> str:
    """Say it again."""
    return text


@server.tool(annotations=READ_ONLY)
def trace(context: Context) -> str:
    """Tell the trace context of the call."""
    return str((context.request_context.meta or {}).get("traceparent"))


@server.tool(annotations=READ_ONLY)
def environment() -> str:
    """Tell the names of the variables that the server was given."""
    return " ".join(sorted(os.environ))


@server.tool(annotations=READ_ONLY)
def secret() -> str:
    """Tell the length of the secret, and whether it is the right one."""
    return f"{len(os.environ.get('TOKEN', ''))} {os.environ.get('TOKEN') == 's3cr3t-value'}"


@server.tool()
def fail(text: str) -> str:
    """Fail with a text."""
    raise ToolError(text)


@server.tool(annotations=READ_ONLY)
async def hang() -> str:
    """Never answer."""
    await anyio.sleep_forever()
    return ""


@server.tool()
def die(context: Context) -> str:
    """End the server while the call runs."""
    write_effect("die", context)
    os.write(2, b"about to die\n")
    os._exit(3)


@server.tool(annotations=READ_ONLY)
def process() -> str:
    """Tell which process this is."""
    return str(os.getpid())


@server.tool(annotations=READ_ONLY)
def big(size: int) -> str:
    """Answer with that many characters."""
    return "x" * size


@server.tool(annotations=READ_ONLY)
def table() -> dict[str, int]:
    """Answer with structure."""
    return {"rows": 3}


@server.tool(annotations=READ_ONLY, structured_output=False)
def picture() -> list[types.ContentBlock]:
    """Answer with text, a picture and a link."""
    return [
        types.TextContent(text="first"),
        types.ImageContent(data="AAAA", mime_type="image/png"),
        types.TextContent(text="second"),
        types.ResourceLink(name="log", uri="file:///log.txt"),
    ]


@server.tool()
def pay(context: Context) -> str:
    """Do something once."""
    return write_effect("pay", context)


@server.tool(annotations=IDEMPOTENT)
def put(context: Context) -> str:
    """Do something that can be repeated with the same key."""
    return write_effect("put", context)


if __name__ == "__main__":
    if sys.argv[1] == "http":
        listening = socket.socket(fileno=int(sys.argv[2]))
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        uvicorn.Server(config).run(sockets=[listening])
    else:
        server.run("stdio")
