"""One trace shows a whole run across its processes, as a collector receives it over OTLP/HTTP."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Status
from tests.otlp_receiver import ReceivedSpan

from temporality.actors import conventions

from .stage import data_of
from .whole_run import CALLER_ID, TRACE_ID, WholeRun

EXPECTED = {
    "temporality-run": {"invoke_agent tester"},
    "temporality-supervisor": {"turn", "retrieval", "inject"},
    "temporality-model": {"chat scripted"},
    "temporality-executor": {
        "process temporality.ask.executor.tools",
        "execute_tool hold",
        "execute_tool stock",
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


async def test_run_is_one_trace_from_the_callers_span_into_the_tool_server(seen: WholeRun) -> None:
    """0-architecture, "OpenTelemetry": the caller's `TRACEPARENT` begins it, a server's `_meta` ends it."""
    trace = Trace(seen.spans)
    assert {one.trace_id for one in trace.spans} == {TRACE_ID}
    assert names_by_service(trace.ours) == EXPECTED
    assert all(one.parent_id in trace.by_id for one in trace.spans if one.parent_id != CALLER_ID)
    for one in trace.ours:
        first, *above = trace.path(one.span_id)
        assert above[0] == PARENTS[first] if above else first == "invoke_agent"
    assert one_of(data_of(seen.facts, "run.started"))["trace_id"] == TRACE_ID
    last = seen.requests[-1].messages
    (told,) = [message["content"] for message in last if str(message["content"]).startswith("00-")]
    assert_server_was_told_of_its_call(trace, told)
    assert_spans_say_what_they_are_about(trace.ours, seen.result.run)


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
