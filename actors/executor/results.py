"""An MCP result as a tool's result: text joined for the model, structure for programs, the rest as notes."""

from typing import Any

import mcp_types as types

from temporality.actors.executor.content import Raised, Result, Returned

VISUALS_MAX = 32
"""Notes on content that is not text, per reply; more of it is counted only."""


def result_of(reply: types.CallToolResult | types.InputRequiredResult) -> Result:
    """Return what a server's reply means; its structure decides, never its text (A7).

    A server that reports an error says itself that the tool did not do its work: the effect is `none`.
    """
    if isinstance(reply, types.InputRequiredResult):
        return Raised("tool_error", "The server asks the user for input, which this client can't give.")
    text = "\n".join(part for part in map(_text_of, reply.content) if part is not None)
    if reply.is_error:
        return Raised("tool_error", text)
    notes = [note for note in map(_note_on, reply.content) if note is not None]
    visual: list[Any] | None = notes[:VISUALS_MAX] or None
    if visual is not None and len(notes) > VISUALS_MAX:
        visual.append({"type": "more", "count": len(notes) - VISUALS_MAX})
    return Returned(text, data=reply.structured_content, visual=visual)


def _text_of(block: types.ContentBlock) -> str | None:
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.EmbeddedResource) and isinstance(block.resource, types.TextResourceContents):
        return block.resource.text
    return None


def _note_on(block: types.ContentBlock) -> dict[str, Any] | None:
    """Describe content that a model can't read as text; the bytes themselves are not kept."""
    match block:
        case types.ImageContent() | types.AudioContent():
            return {
                "type": block.type,
                "mime_type": block.mime_type[:100],
                "bytes": len(block.data) * 3 // 4,
            }
        case types.ResourceLink():
            return {"type": block.type, "uri": str(block.uri)[:500], "name": block.name[:200]}
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            return {
                "type": "resource",
                "uri": str(resource.uri)[:500],
                "mime_type": (resource.mime_type or "")[:100],
                "bytes": len(resource.blob) * 3 // 4,
            }
        case _:
            return None
