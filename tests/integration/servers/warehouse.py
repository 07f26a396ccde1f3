"""A warehouse as an MCP server: `warehouse.py stdio`, or `warehouse.py http`, which prints its port first."""

import socket
import sys
from pathlib import Path

import anyio
import mcp_types as types
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("warehouse")
TROUBLES = {
    "1": "carrier rejected parcel: customs code missing for destination Norway",
    "2": "Norway wants a customs code for every parcel, and the tariff table has none",
    "3": "parcel came back from Norway, no valid customs code on it",
    "4": "перевозчик отказался: накладные не были подписаны",
}
READ_ONLY = types.ToolAnnotations(read_only_hint=True)


@server.tool(annotations=READ_ONLY)
def stock(item: str) -> str:
    """Tell how many of an item there are; only bolts can be counted."""
    if item != "bolts":
        raise ToolError("the shelf scanner has no power")
    return "bolts: 12 in stock"


@server.tool(annotations=READ_ONLY)
async def hold(gate: str) -> str:
    """Answer as soon as somebody has written to the named pipe `gate`, with what was written."""
    return await anyio.to_thread.run_sync(Path(gate).read_text)


@server.tool(annotations=READ_ONLY)
def dispatch(order: str) -> str:
    """Dispatch an order: fails for the order's own reason, or for the first one's if it has none."""
    trouble = TROUBLES.get(order, TROUBLES["1"])
    raise ToolError(f"order {order}: {trouble}")


@server.tool(annotations=READ_ONLY)
def whoami(context: Context) -> str:
    """Tell the trace context that came with the call."""
    return str((context.request_context.meta or {}).get("traceparent"))


async def serve_http() -> None:
    """Serve on a free port of this machine, which is told on standard output."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
        await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1] == "http":
        anyio.run(serve_http)
    else:
        server.run("stdio")
