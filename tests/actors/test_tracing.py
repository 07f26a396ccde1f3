"""Spans take their parent from the message, cost nothing unconfigured, and never carry content."""

import anyio
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.util.types import AttributeValue

from temporality.actors import conventions
from temporality.actors.tracing import Tracing
from temporality.actors.tracing_export import configure_tracing
from temporality.actors.tracing_redaction import RedactingExporter
from temporality.protocol.errors import UserError

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Traced:
    """A tracing whose ended spans can be read, as they would be exported."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(RedactingExporter(self._exporter)))
        self.tracing = Tracing(provider)

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}


def parent_of(span: ReadableSpan) -> str | None:
    return f"{span.parent.span_id:016x}" if span.parent else None


def id_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.span_id:016x}"


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


def test_span_of_a_message_is_a_child_of_the_span_in_its_header() -> None:
    traced = Traced()
    with traced.tracing.span("process", parent=TRACEPARENT, kind=SpanKind.CONSUMER):
        outgoing = traced.tracing.traceparent()
    span = traced.spans()["process"]
    assert (trace_of(span), parent_of(span)) == (TRACE, PARENT)
    assert outgoing == f"00-{TRACE}-{id_of(span)}-01"


def test_span_inside_another_is_its_child() -> None:
    traced = Traced()
    with traced.tracing.span("outer"), traced.tracing.span("inner"):
        pass
    spans = traced.spans()
    assert parent_of(spans["inner"]) == id_of(spans["outer"])
    assert parent_of(spans["outer"]) is None


@pytest.mark.parametrize("kind", [SpanKind.CONSUMER, SpanKind.SERVER])
async def test_callback_task_does_not_inherit_the_span_of_whoever_subscribed(kind: SpanKind) -> None:
    traced = Traced()

    async def callback(parent: str | None, name: str) -> None:
        with traced.tracing.span(name, parent=parent, kind=kind):
            pass

    async with anyio.create_task_group() as tasks:
        with traced.tracing.span("subscribing"):
            tasks.start_soon(callback, None, "headerless")
            tasks.start_soon(callback, TRACEPARENT, "headed")
    spans = traced.spans()
    assert parent_of(spans["headerless"]) is None
    assert trace_of(spans["headerless"]) != trace_of(spans["subscribing"])
    assert (trace_of(spans["headed"]), parent_of(spans["headed"])) == (TRACE, PARENT)


@pytest.mark.parametrize("header", ["", "no traceparent", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-x-01"])
def test_malformed_header_begins_a_trace_instead_of_failing(header: str) -> None:
    traced = Traced()
    with traced.tracing.span("surrounding"), traced.tracing.span("work", parent=header, links=[header]):
        pass
    span = traced.spans()["work"]
    assert span.parent is None
    assert not span.links


def test_continuation_links_to_the_trace_before_it() -> None:
    traced = Traced()
    with traced.tracing.span("invoke_agent", links=[TRACEPARENT]):
        pass
    span = traced.spans()["invoke_agent"]
    assert [(f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") for link in span.links] == [
        (TRACE, PARENT)
    ]
    assert trace_of(span) != TRACE


def test_exception_marks_the_span_by_its_class_and_hides_its_message() -> None:
    traced = Traced()
    with pytest.raises(ValueError, match="quoted"), traced.tracing.span("work"):
        raise ValueError("a quoted result")
    span = traced.spans()["work"]
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})[conventions.ERROR_TYPE] == "ValueError"
    assert "quoted" not in span.to_json()


async def test_cancellation_is_no_error_and_passes_through() -> None:
    traced = Traced()
    with anyio.CancelScope() as scope, traced.tracing.span("work"):
        scope.cancel()
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert traced.spans()["work"].status.status_code is StatusCode.UNSET


def test_without_an_exporter_the_parent_is_handed_on_unchanged() -> None:
    tracing = Tracing()
    with tracing.span("work", parent=TRACEPARENT, kind=SpanKind.CONSUMER) as span:
        assert not span.is_recording()
        assert tracing.traceparent() == TRACEPARENT
    with tracing.span("work"):
        assert tracing.traceparent() is None


def test_secret_that_anybody_puts_into_a_span_is_not_exported() -> None:
    traced = Traced()
    nested: dict[str, AttributeValue] = {
        "url": f"https://u:{SECRET}@host/",
        "list": [SECRET, 1],
        "bytes": SECRET.encode(),
    }
    with traced.tracing.span(f"execute_tool {SECRET}", attributes={"x": SECRET, "y": [SECRET]}) as span:
        span.set_attribute("nested", nested)
        span.add_event("said", {"text": f"token {SECRET}"})
        span.record_exception(ValueError(SECRET))
        span.set_status(StatusCode.ERROR, f"failed with {SECRET}")
    (exported,) = traced.spans().values()
    events = [(event.name, dict(event.attributes or {})) for event in exported.events]
    said = repr((exported.name, dict(exported.attributes or {}), events, exported.status.description))
    assert SECRET not in said
    assert said.count("[redacted:") >= 6


def test_long_text_in_a_span_is_bounded() -> None:
    traced = Traced()
    with traced.tracing.span("work", attributes={"x": "word " * 10_000}):
        pass
    (value,) = (traced.spans()["work"].attributes or {}).values()
    assert len(str(value)) <= 256


def test_ids_of_ours_are_exported_as_they_are() -> None:
    traced = Traced()
    ids = {key: f"act-{number:024x}" for number, key in enumerate(sorted(conventions.DERIVED_IDS))}
    with traced.tracing.span("work", attributes=ids):
        pass
    assert dict(traced.spans()["work"].attributes or {}) == ids


def test_no_endpoint_configures_nothing() -> None:
    configure_tracing(None, "executor")()
    configure_tracing("", "executor")()
    with Tracing().span("work") as span:
        assert not span.is_recording()


def test_endpoint_that_is_no_url_is_the_users_mistake() -> None:
    with pytest.raises(UserError, match=r"otel\.endpoint"):
        configure_tracing("localhost:4318", "executor")
