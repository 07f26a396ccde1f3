"""Which tools an agent has: asked of its MCP servers and functions, all at once, named for the model."""

import difflib
from itertools import pairwise
from typing import TYPE_CHECKING

import anyio

from temporality.actors.executor.mcp import McpSessions
from temporality.actors.executor.names import model_name
from temporality.actors.executor.python import PythonTools
from temporality.protocol.agent import Effect, McpServerSpec
from temporality.protocol.codec import encode
from temporality.protocol.errors import UserError
from temporality.protocol.tool import (
    ListTools,
    ToolDefinition,
    ToolsAnswer,
    ToolsListed,
    ToolsUnavailable,
)

if TYPE_CHECKING:
    import mcp_types as types

LIST_BYTES_MAX = 900_000
"""The list travels as one message, of at most 1 MiB with its headers."""


class Catalog:
    """Answers which tools there are."""

    def __init__(self, mcp: McpSessions, python: PythonTools) -> None:
        self._mcp = mcp
        self._python = python

    async def tools(self, question: ListTools) -> ToolsAnswer:
        """Return all tools sorted by name, or the first fault in the order of the agent's file.

        Starts servers that don't run yet; takes as long as the slowest of them.
        """
        found: dict[str, list[ToolDefinition]] = {}
        wrong: dict[str, UserError] = {}

        async def ask_server(key: str, spec: McpServerSpec) -> None:
            try:
                found[key] = definitions(key, spec, await self._mcp.tools(key, spec))
            except UserError as error:
                wrong[key] = error

        async def find_function(reference: str) -> None:
            try:
                found[reference] = [(await self._python.find(reference)).definition]
            except UserError as error:
                wrong[reference] = error

        async with anyio.create_task_group() as tasks:
            for key, spec in question.mcp.items():
                tasks.start_soon(ask_server, key, spec)
            for reference in question.python:
                tasks.start_soon(find_function, reference)
        for source in (*question.mcp, *question.python):
            if source in wrong:
                error = wrong[source]
                return ToolsUnavailable(where=error.where, what=error.what, do=error.do)
        return listed([tool for source in found.values() for tool in source])


def definitions(key: str, spec: McpServerSpec, tools: "list[types.Tool]") -> list[ToolDefinition]:
    """Describe a server's tools; raise `UserError` if `effects` names a tool that it doesn't have."""
    names = [tool.name for tool in tools]
    for declared in spec.effects:
        if declared not in names:
            close = difflib.get_close_matches(declared, names, n=1)
            do = f"did you mean {close[0]}?" if close else "remove it"
            raise UserError(f"tools.mcp.{key}.effects.{declared}", "the server has no tool of this name", do)
    return [
        ToolDefinition(
            name=model_name(tool.name, key),
            tool=tool.name,
            description=tool.description or "",
            parameters=tool.input_schema,
            effect=spec.effects.get(tool.name) or effect_of(tool),
            mcp_server=key,
        )
        for tool in tools
    ]


def effect_of(tool: "types.Tool") -> Effect:
    """Return the effect that a tool's annotations claim; without them the careful one."""
    hints = tool.annotations
    if hints is not None and hints.read_only_hint:
        return "none"
    if hints is not None and hints.idempotent_hint:
        return "idempotent"
    return "once"


def listed(tools: list[ToolDefinition]) -> ToolsAnswer:
    """Return the sorted list, unless two tools have one name or the list is too long to be sent."""
    ordered = sorted(tools, key=lambda tool: tool.name)
    for first, second in pairwise(ordered):
        if first.name == second.name:
            both = f"{_source(first)} and {_source(second)}"
            return ToolsUnavailable(
                where="tools", what=f"two tools have the name {first.name}: {both}", do="rename one"
            )
    answer = ToolsListed(tools=tuple(ordered))
    size = len(encode(answer))
    if size > LIST_BYTES_MAX:
        what = f"the descriptions of {len(ordered)} tools take {size} bytes, more than {LIST_BYTES_MAX}"
        return ToolsUnavailable(where="tools", what=what, do="use fewer servers")
    return answer


def _source(tool: ToolDefinition) -> str:
    return tool.python or f"{tool.mcp_server}.{tool.tool}"
