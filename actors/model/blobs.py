"""Texts and tool lists that commits name by digest: read once, kept as long as they fit."""

from typing import Final

from temporality.actors.bus.port import Bus
from temporality.actors.model.lru import ByteBounded
from temporality.actors.model.patience import Patience
from temporality.actors.model.provider import CallFailed
from temporality.actors.model.render.openai import render_tools
from temporality.protocol.codec import decode, encode
from temporality.protocol.tool import ToolDefinition

LAG_MAX_S: Final = 5.0
"""How long something that a call refers to may be missing: a replica lags, a leader changes."""

BLOBS_BYTES_MAX: Final = 33_554_432
"""Texts kept: they are needed again only when a run is folded anew."""

TOOL_LISTS_BYTES_MAX: Final = 16_777_216
"""Rendered tool lists kept: one a run, equal for runs of the same agent, so few."""


class Blobs:
    """Read blobs of the bus through caches."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._texts: ByteBounded[str] = ByteBounded(BLOBS_BYTES_MAX)
        self._tools: ByteBounded[bytes | None] = ByteBounded(TOOL_LISTS_BYTES_MAX)

    async def text(self, digest: str, patience: Patience) -> str:
        """Return a text; raises `CallFailed` when patience ends, `BusError` if its bytes are wrong."""
        text = self._texts.get(digest)
        if text is None:
            data = await self._read(digest, patience)
            text = data.decode("utf-8", "replace")
            self._texts.put(digest, text, len(data))
        return text

    async def tools(self, digest: str, patience: Patience) -> bytes | None:
        """Return a tool list as the JSON of a request, None if it is empty; raises as `text` does."""
        tools = self._tools.get(digest)
        if tools is None:
            definitions = decode(await self._read(digest, patience), tuple[ToolDefinition, ...])
            tools = encode(render_tools(definitions)) if definitions else None
            self._tools.put(digest, tools, len(tools or b""))
        return tools

    async def _read(self, digest: str, patience: Patience) -> bytes:
        while (data := await self._bus.get_blob(digest)) is None:
            if not await patience.wait():
                message = f"the content {digest[:12]} that the run refers to is missing"
                raise CallFailed("transcript_mismatch", message, retry="later", retry_after_s=LAG_MAX_S)
        return data
