"""A scripted model on a loopback port, and requests to it, for the tests of this folder."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from temporality.actors.model.openai import OpenAIProvider
from temporality.actors.model.provider import ModelRequest
from temporality.actors.model.script_file import parse_script
from temporality.actors.model.scripted_server import serve_scripted
from temporality.protocol.agent import ModelSpec
from temporality.protocol.codec import encode

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


@asynccontextmanager
async def scripted_model(
    script: str, *, record: Path | None = None, api_key: str | None = None
) -> AsyncIterator[str]:
    """Serve a script; gives the base URL for clients."""
    async with anyio.create_task_group() as tasks:
        port = await tasks.start(
            lambda task_status: serve_scripted(
                parse_script(script), record=record, api_key=api_key, task_status=task_status
            )
        )
        yield f"http://127.0.0.1:{port}/v1"
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def openai_provider(environment: Mapping[str, str] | None = None) -> AsyncIterator[OpenAIProvider]:
    """Give a provider whose wall clock stands at noon."""
    provider = OpenAIProvider(environment or {}, now=lambda: NOON)
    try:
        yield provider
    finally:
        await provider.aclose()


def request(messages: Sequence[Mapping[str, Any]], spec: ModelSpec) -> ModelRequest:
    """Return a request of already rendered messages."""
    return ModelRequest(
        call="m-1", spec=spec, messages=messages, encoded=[encode(message) for message in messages]
    )


def user(text: str) -> dict[str, Any]:
    """Return a person's chat message."""
    return {"role": "user", "content": text}


def assistant(*calls: tuple[str, str], content: str | None = None) -> dict[str, Any]:
    """Return a model's chat message with calls given as (id, tool's name)."""
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {"id": call, "type": "function", "function": {"name": name, "arguments": "{}"}}
            for call, name in calls
        ],
    }


def tool(call: str, text: str) -> dict[str, Any]:
    """Return a tool's chat message."""
    return {"role": "tool", "tool_call_id": call, "content": text}
