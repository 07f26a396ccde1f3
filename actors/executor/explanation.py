"""From the exception that ended a connection to the reason that a person can use."""

from collections.abc import Iterator

import httpx2
from mcp import MCPError
from pydantic import ValidationError

from temporality.actors.executor.failures import NotConnected
from temporality.actors.executor.streamable_http import HttpNote

_DO_FOR_STATUS = {
    401: "check the server's headers: it wants other credentials",
    403: "check the server's headers: these credentials may not use it",
    404: "check the url: there is no MCP server at it",
    405: "check the url: it is no streamable-HTTP MCP server",
}


def not_connected(error: Exception, note: HttpNote) -> NotConnected:
    """Explain what ended a connection, given what the HTTP layer noted."""
    cause = next(_leaves(error))
    if isinstance(cause, MCPError) and note.failure is not None:
        cause = note.failure
    if isinstance(cause, MCPError) and note.status is not None:
        do = _DO_FOR_STATUS.get(note.status, "check the server's log")
        return NotConnected(f"it answered HTTP {note.status}", do)
    match cause:
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return NotConnected(
                f"its url is not usable ({type(cause).__name__})", "write http://host:port/path"
            )
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return NotConnected("no connection: nothing answers there", "start the server or check the url")
        case httpx2.TransportError():
            what = f"what answers there does not speak HTTP as expected ({type(cause).__name__})"
            return NotConnected(what, "check the url")
        case MCPError():
            return NotConnected(f"it did not accept the handshake: {cause}")
        case OSError():
            return NotConnected(f"it can't be started: {cause.strerror or type(cause).__name__}")
        case _:
            return NotConnected(f"the connection failed: {type(cause).__name__}: {cause}")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions of a group, the ones of the transport before those that it caused."""
    if isinstance(error, BaseExceptionGroup):
        inner = [leaf for part in error.exceptions for leaf in _leaves(part)]
        yield from sorted(inner, key=lambda leaf: isinstance(leaf, MCPError))
    else:
        yield error


def first_error(error: ValidationError) -> str:
    """Return where a malformed message is wrong, without its values."""
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
