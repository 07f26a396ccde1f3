"""What a model calls a tool: providers allow 64 characters of A-Z a-z 0-9 _ - and nothing else.

A name that fits is left as it is. Any other gets its forbidden characters replaced and a digest of the
original appended, so that it stays unique, and the same in every process and run.
"""

import re

from temporality.protocol.identity import digest

NAME_LENGTH_MAX = 64
"""The shortest limit among providers of function calling."""
_DIGEST_LENGTH = 8
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")


def model_name(tool: str, mcp_server: str | None = None) -> str:
    """Return the name of a tool as a model says it: `<server>__<tool>`, or a Python function's name."""
    full = tool if mcp_server is None else f"{mcp_server}__{tool}"
    safe = _FORBIDDEN.sub("_", full)
    if safe == full and len(full) <= NAME_LENGTH_MAX:
        return full
    return f"{safe[: NAME_LENGTH_MAX - _DIGEST_LENGTH - 1]}_{digest(full.encode())[:_DIGEST_LENGTH]}"
