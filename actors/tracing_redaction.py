"""What leaves this process as a span is redacted and bounded here, whoever set it (A47).

Our own spans carry ids, names and counts; but names may come from a model or a tool, and a library that is
instrumented too may put URLs, arguments or the message of an exception into a span. So every text of every
span passes the same rules as a public fact, in the exporting thread, off the path of the work.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Link, Status
from opentelemetry.util.types import Attributes, AttributeValue

from temporality.actors.conventions import DERIVED_IDS
from temporality.actors.redaction import clean

NAME_CHARACTERS_MAX = 128
TEXT_CHARACTERS_MAX = 256
"""Longest text of an attribute: longer than any name, shorter than an output."""

TEXTS_REMEMBERED_MAX = 4_096
"""Names and subjects come again with every span: most are looked over once."""


class RedactingExporter(SpanExporter):
    """Export what another exporter exports, without secrets and long texts."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export the spans as `redacted` returns them."""
        return self._exporter.export([redacted(span) for span in spans])

    def shutdown(self) -> None:
        """Shut the exporter behind it down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the exporter behind it."""
        return self._exporter.force_flush(timeout_millis)


def redacted(span: ReadableSpan) -> ReadableSpan:
    """Return a span like `span` whose name, attributes, events, links and status hold no secret."""
    return ReadableSpan(
        name=_text(span.name, NAME_CHARACTERS_MAX),
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=_attributes(span.attributes),
        events=[
            Event(_text(event.name, NAME_CHARACTERS_MAX), _attributes(event.attributes), event.timestamp)
            for event in span.events
        ],
        links=[Link(link.context, _attributes(link.attributes)) for link in span.links],
        kind=span.kind,
        status=_status(span.status),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _status(status: Status) -> Status:
    if status.description is None:
        return status
    return Status(status.status_code, _text(status.description, TEXT_CHARACTERS_MAX))


def _attributes(attributes: Attributes) -> Mapping[str, AttributeValue]:
    return {key: value if key in DERIVED_IDS else _value(value) for key, value in (attributes or {}).items()}


def _value(value: AttributeValue) -> AttributeValue:
    match value:
        case str():
            return _text(value, TEXT_CHARACTERS_MAX)
        case bytes():
            return b""  # no attribute of ours is binary, and no rule looks into bytes
        case Mapping():
            return {key: _value(inner) for key, inner in value.items()}
        case Sequence():
            return [_value(inner) for inner in value]
        case _:
            return value


@lru_cache(maxsize=TEXTS_REMEMBERED_MAX)
def _text(text: str, characters_max: int) -> str:
    return clean(text, characters_max=characters_max).text
