"""One trace shows a whole run across its processes, as a collector receives it over OTLP/HTTP."""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import msgspec
import yaml
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from tests.otlp_receiver import ReceivedSpan, otlp_receiver

from temporality.actors import conventions
from temporality.deploy.assembly import ACTORS
from temporality.deploy.watching import RunResult
from temporality.protocol.editorial import KnowledgeItem

from .stage import UNHURRIED_LEASE_S, Stage, data_of, stage

SERVER = Path(__file__).with_name("servers") / "warehouse.py"
TRACE_ID, CALLER_ID = "5a" * 16, "7b" * 8
TRACEPARENT = f"00-{TRACE_ID}-{CALLER_ID}-01"
COMMAND_S = 50.0

KNOWLEDGE = (
    KnowledgeItem(
        knowledge_id="customs-code",
        proposition="Parcels to Norway need a customs code: look it up in the tariff table first.",
        tools=("dispatch",),
        example_errors=("order 7: carrier rejected parcel: customs code missing for destination Norway",),
    ),
)

SCRIPT = """
replies:
  - when: {turn: 1}
    reply:
      tool_calls:
        - {name: warehouse__whoami, arguments: {}}
        - {name: warehouse__dispatch, arguments: {order: "1"}}
  - reply: {content: done}
"""


async def run_command(on: Stage, folder: Path, endpoint: str) -> RunResult:
    """Run the agent as a person does, from a program that is traced itself."""
    agent = {
        "name": "tester",
        "model": msgspec.to_builtins(on.model),
        "tools": {"mcp": {"warehouse": {"command": sys.executable, "args": [str(SERVER), "stdio"]}}},
    }
    (folder / "agent.yaml").write_text(yaml.safe_dump(agent), encoding="utf-8")
    environment = {
        **os.environ,
        "TEMPORALITY_NATS_URL": on.running.url,
        "TEMPORALITY_OTEL_ENDPOINT": endpoint,
        "TRACEPARENT": TRACEPARENT,
    }
    command = [sys.executable, "-m", "temporality.deploy.cli", "run", "agent.yaml", "Write a poem.", "--json"]
    with anyio.fail_after(COMMAND_S):
        ran = await anyio.run_process(command, cwd=folder, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    return msgspec.json.decode(ran.stdout, type=RunResult)


EXPECTED = {
    "temporality-run": {"invoke_agent tester"},
    "temporality-supervisor": {"turn", "retrieval", "inject"},
    "temporality-model": {"chat scripted"},
    "temporality-executor": {
        "process temporality.ask.executor.tools",
        "execute_tool whoami",
        "execute_tool dispatch",
    },
    "temporality-triggers": {"evaluate tool.failed"},
    "temporality-retriever": {"find_hints"},
    "temporality-telemetry": {"send temporality.fact.>"},
}
"""Spans of a run, by the process that sends them."""

PARENTS = {
    "turn": "invoke_agent",
    "chat": "turn",
    "execute_tool": "turn",
    "process": "turn",
    "evaluate": "turn",
    "retrieval": "turn",
    "find_hints": "retrieval",
    "inject": "turn",
    "send": "turn",
}
"""What each span is a part of."""


@dataclass
class Trace:
    """The spans of a run, with the way from each to its root."""

    spans: list[ReceivedSpan]

    def __post_init__(self) -> None:
        self.by_id = {one.span_id: one for one in self.spans}

    def path(self, span_id: str) -> list[str]:
        """The first words of a span's name and those above it, up to the caller's span."""
        path = []
        while span_id != CALLER_ID:
            one = self.by_id[span_id]
            path.append(one.span.name.split()[0])
            span_id = one.parent_id
        return path

    @property
    def ours(self) -> list[ReceivedSpan]:
        """The spans that we make; the SDK of MCP adds some, one a message to a server."""
        return [one for one in self.spans if one.scope == conventions.INSTRUMENTATION]


async def test_run_is_one_trace_from_the_callers_span_into_the_tool_server(tmp_path: Path) -> None:
    """0-architecture, "OpenTelemetry": the caller's `TRACEPARENT` begins it, a server's `_meta` ends it."""
    with otlp_receiver() as received:
        async with stage(
            tmp_path,
            SCRIPT,
            processes=tuple(ACTORS),
            knowledge=KNOWLEDGE,
            lease_ttl_s=UNHURRIED_LEASE_S,
            otel=received.endpoint,
        ) as on:
            result = await run_command(on, tmp_path, received.endpoint)
            facts = await on.public_facts(result.run)
            told = next(message for message in on.recorded[-1].messages if message["role"] == "tool")
        # The processes of the actors have ended, and have sent their last spans before.
    trace = Trace(received.spans)
    assert {one.trace_id for one in trace.spans} == {TRACE_ID}
    assert names_by_service(trace.ours) == EXPECTED
    assert all(one.parent_id in trace.by_id for one in trace.spans if one.parent_id != CALLER_ID)
    for one in trace.ours:
        first, *above = trace.path(one.span_id)
        assert above[0] == PARENTS[first] if above else first == "invoke_agent"
    assert one_of(data_of(facts, "run.started"))["trace_id"] == TRACE_ID
    assert_server_was_told_of_its_call(trace, told["content"])
    assert_spans_say_what_they_are_about(trace.ours, result.run)


def names_by_service(spans: Iterable[ReceivedSpan]) -> dict[str, set[str]]:
    names: dict[str, set[str]] = {}
    for one in spans:
        names.setdefault(one.service, set()).add(one.span.name)
    return names


def assert_server_was_told_of_its_call(trace: Trace, traceparent: str) -> None:
    """The server received, in `_meta`, a span of this trace that belongs to the call's own span."""
    _, trace_id, span_id, _ = traceparent.split("-")
    path = trace.path(span_id)
    assert trace_id == TRACE_ID
    assert path[-3:] == ["execute_tool", "turn", "invoke_agent"]
    (call,) = [one for one in trace.ours if one.span.name == "execute_tool whoami"]
    assert span_id == call.span_id or trace.by_id[span_id].parent_id == call.span_id


def assert_spans_say_what_they_are_about(spans: list[ReceivedSpan], run: str) -> None:
    known = {name.name for name in conventions.ATTRIBUTES}
    assert {key for one in spans for key in one.attributes} <= known
    for one in spans:
        about_a_run = one.span.name.split()[0] in {"invoke_agent", "turn", "chat", "execute_tool", "evaluate"}
        assert not about_a_run or one.attributes[conventions.RUN_ID] == run
    by_name = {one.span.name: one for one in spans}
    failed, chat = by_name["execute_tool dispatch"], by_name["chat scripted"]
    assert failed.attributes[conventions.TOOL_OUTCOME] == "failed"
    assert failed.attributes[conventions.MCP_SERVER] == "warehouse"
    assert failed.span.status.code == Status.STATUS_CODE_ERROR
    assert chat.attributes[conventions.GEN_AI_PROVIDER_NAME] == "openai"
    assert by_name["inject"].attributes[conventions.HINTS_INJECTED] == 1
    results = {one.attributes[conventions.RETRIEVAL_RESULT] for one in spans if one.span.name == "retrieval"}
    assert results == {"empty", "success"}


def one_of(values: list[dict[str, Any]]) -> dict[str, Any]:
    (value,) = values
    return value
