"""Spans and W3C trace context, as thin as an actor needs them: a parent in, a span, a traceparent out.

A message that arrives says in its `traceparent` header which span caused it. The task that receives it can't
say so: it inherited its context from whoever subscribed, maybe long ago (a span that has nothing to do with
the message). So spans that open a message's work, of the kinds CONSUMER and SERVER, take their parent from
the header or begin a trace of their own, and never look at the context they run in. All other spans continue
the span around them, unless a parent is named.

An exception marks its span by its class alone: messages of exceptions quote arguments and results, and those
stay private (A47). Only opentelemetry-api is used here: while nobody has configured an exporter
(`actors/tracing_export.py`), a span is a no-op that still hands its parent on.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from temporality.actors.conventions import ERROR_TYPE, INSTRUMENTATION, SCHEMA_URL
from temporality.protocol.message import TRACE_HEADER

ENTRY_KINDS = frozenset({SpanKind.CONSUMER, SpanKind.SERVER})
"""Kinds of spans that open the work of a received message: their parent is the message's, or none."""

_W3C = TraceContextTextMapPropagator()


class Tracing:
    """Make the spans of one process; without a configured exporter every call is a no-op."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer(INSTRUMENTATION, tracer_provider=provider, schema_url=SCHEMA_URL)

    @contextmanager
    def span(
        self,
        name: str,
        *,
        parent: str | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Mapping[str, AttributeValue] | None = None,
        links: Sequence[str] = (),
    ) -> Iterator[Span]:
        """Open a span and make it the current one until the block ends.

        `parent` and `links` are traceparents; malformed ones count as absent. Without `parent`, CONSUMER and
        SERVER spans begin a trace, others continue the current span. Names and keys: `actors/conventions.py`.
        An exception sets the status and `error.type`; a cancellation is no error. Both pass through.
        """
        span = self._tracer.start_span(
            name,
            context=_context(parent) if parent is not None or kind in ENTRY_KINDS else None,
            kind=kind,
            attributes=attributes,
            links=[Link(context) for context in map(_span_context, links) if context.is_valid],
        )
        token = contexts.attach(trace.set_span_in_context(span))
        try:
            yield span
        except Exception as error:
            span.set_attribute(ERROR_TYPE, type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR, type(error).__qualname__))
            raise
        finally:
            contexts.detach(token)
            span.end()

    def traceparent(self) -> str | None:
        """Return the W3C traceparent of the current span, for a message's header; None outside of any."""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier)
        return carrier.get(TRACE_HEADER)


def _context(traceparent: str | None) -> Context:
    return _W3C.extract({TRACE_HEADER: traceparent or ""}, Context())


def _span_context(traceparent: str) -> SpanContext:
    return trace.get_current_span(_context(traceparent)).get_span_context()
