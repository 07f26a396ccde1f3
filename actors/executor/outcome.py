"""From what a tool gave to the outcome that is stored: capped for the model, long text kept as blobs.

Blobs are stored before the outcome that names them, so no outcome ever points at nothing. When this runs the
tool has acted, so a bus that is down is waited for.
"""

from typing import Any

from temporality.actors.bus.port import Bus
from temporality.actors.clock import Clock
from temporality.actors.executor.content import DATA_BYTES_MAX, Raised, Result, cap, encodable
from temporality.actors.executor.operations import until_done
from temporality.protocol.codec import encode
from temporality.protocol.identity import digest
from temporality.protocol.tool import (
    CONTENT_INLINE_BYTES_MAX,
    BlobRef,
    ToolFailed,
    ToolSucceeded,
)

ERROR_CLASS_CHARACTERS_MAX = 128
"""An exception's name is chosen by whoever wrote the tool."""


async def outcome_of(
    bus: Bus, clock: Clock, result: Result, *, reply_bytes_max: int
) -> ToolSucceeded | ToolFailed:
    """Return the outcome for a result, after storing what is too long for it.

    Waits for the bus as long as it is down; raises only `BusClosed` and `PermissionDenied`.
    """
    content, blob = await _kept(bus, clock, result.text, reply_bytes_max)
    if isinstance(result, Raised):
        return ToolFailed(
            error_class=encodable(result.error_class)[:ERROR_CLASS_CHARACTERS_MAX],
            content=content,
            content_blob=blob,
            effect=result.effect,
        )
    return ToolSucceeded(
        content=content,
        content_blob=blob,
        data=_bounded(result.data),
        visual=_bounded(result.visual),
    )


async def _kept(bus: Bus, clock: Clock, text: str, reply_bytes_max: int) -> tuple[str, BlobRef | None]:
    capped = cap(encodable(text), reply_bytes_max)
    encoded = capped.encode()
    if len(encoded) <= CONTENT_INLINE_BYTES_MAX:
        return capped, None
    name = digest(encoded)
    await until_done(lambda: bus.put_blob(name, encoded), clock)
    return "", BlobRef(digest=name, bytes=len(encoded))


def _bounded(value: Any) -> Any:
    """Return JSON data that fits into an outcome; None if it is too long or can't be encoded."""
    try:
        return value if len(encode(value)) <= DATA_BYTES_MAX else None
    except (TypeError, ValueError, RecursionError):
        return None
