"""An MCP server of the standard library alone, which starts at once: for tests about processes and sessions.

What the official SDK's server says is looked at with `tools.py`. Effects are written to the file named by
LEDGER, one line each: tool, idempotency key, process.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

READ_ONLY = {"readOnlyHint": True}
TOOLS: dict[str, dict[str, bool]] = {
    "echo": READ_ONLY,
    "process": READ_ONLY,
    "environment": READ_ONLY,
    "secret": READ_ONLY,
    "hang": READ_ONLY,
    "put": {"idempotentHint": True},
    "pay": {},
    "die": {},
}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def write_effect(tool: str, meta: dict[str, str]) -> str:
    key = meta.get("temporality/idempotency-key", "no key")
    with Path(os.environ["LEDGER"]).open("a", encoding="utf-8") as ledger:
        ledger.write(f"{tool} {key} {os.getpid()}\n")
    return key


def answer(tool: str, arguments: dict[str, Any], meta: dict[str, str]) -> str:
    if tool == "echo":
        return str(arguments["text"])
    if tool == "process":
        return str(os.getpid())
    if tool == "environment":
        return " ".join(sorted(os.environ))
    if tool == "secret":
        token = os.environ.get("TOKEN", "")
        return f"{len(token)} {token == 's3cr3t-value'}"
    key = write_effect(tool, meta)
    if tool == "die":
        os.write(2, b"about to die\n")
        os._exit(3)
    return key


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        version = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        return {**version, "serverInfo": {"name": "plain", "version": "1"}}
    if method == "tools/list":
        listed = [
            {
                "name": name,
                "description": f"Does {name}.",
                "inputSchema": TEXT if name == "echo" else {"type": "object"},
                "annotations": hints,
            }
            for name, hints in TOOLS.items()
        ]
        return {"tools": listed}
    if method == "tools/call":
        text = answer(params["name"], params["arguments"], params.get("_meta", {}))
        return {"content": [{"type": "text", "text": text}]}
    return None


def response(request: dict[str, Any]) -> dict[str, Any] | None:
    """Return what is answered to a message, None to one that gets no answer (`hang` never gets one)."""
    method, params = request.get("method", ""), request.get("params", {})
    if "id" not in request or params.get("name") == "hang":
        return None
    found = result(method, params)
    unknown = {"error": {"code": -32601, "message": "unknown method"}}
    return {"jsonrpc": "2.0", "id": request["id"], **(unknown if found is None else {"result": found})}


if __name__ == "__main__":
    for line in sys.stdin:
        if said := response(json.loads(line)):
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()
