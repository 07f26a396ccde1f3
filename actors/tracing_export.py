"""Sends the spans of this process to an OTLP/HTTP endpoint, in batches from a thread of its own.

Called once by whoever starts a process; actors only know `Tracing`. The SDK is imported here, at use, because
a process without an endpoint never pays for it.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from opentelemetry import trace

from temporality.protocol.errors import UserError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

TRACES_PATH = "/v1/traces"
EXPORT_TIMEOUT_S = 2.0
"""One request to the collector: a dead collector costs the exporting thread this, and the actors nothing."""

SHUTDOWN_TIMEOUT_S = 3.0
"""How long the end of a process may wait for its last spans; then they are lost (A43: never the work)."""

SPANS_QUEUED_MAX = 8_192
"""Spans kept while the collector is slow; more are dropped, so that memory stays bounded."""

SPANS_BATCH_MAX = 512
BATCH_DELAY_MS = 1_000


def configure_tracing(endpoint: str | None, service_name: str) -> Callable[[], None]:
    """Export this process's spans to `endpoint` (a base URL); return what ends it, within 3 seconds.

    None or "" configures nothing: spans stay no-ops, and the SDK is never imported. Call once a process.
    The returned function flushes and may be called again without effect; call it outside an event loop or in
    a thread. Raises `UserError` for an endpoint that is no http(s) URL.
    """
    if not endpoint:
        return lambda: None
    provider = exporting_provider(endpoint, service_name)
    trace.set_tracer_provider(provider)
    return lambda: _shutdown(provider)


def exporting_provider(endpoint: str, service_name: str) -> "TracerProvider":
    """Return a tracer provider that exports to `endpoint` in batches, without making it the process's own."""
    if not endpoint.startswith(("http://", "https://")):
        raise UserError("otel.endpoint", f"{endpoint!r} is no URL", "use http://HOST:4318")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from temporality.actors.tracing_redaction import RedactingExporter

    base = endpoint.rstrip("/")
    url = base if base.endswith(TRACES_PATH) else base + TRACES_PATH
    exporter = OTLPSpanExporter(endpoint=url, timeout=EXPORT_TIMEOUT_S)
    provider = TracerProvider(
        resource=Resource.create({SERVICE_NAME: service_name}),
        shutdown_on_exit=False,  # it would wait without a bound of ours
    )
    provider.add_span_processor(
        BatchSpanProcessor(
            RedactingExporter(exporter),
            max_queue_size=SPANS_QUEUED_MAX,
            max_export_batch_size=SPANS_BATCH_MAX,
            schedule_delay_millis=BATCH_DELAY_MS,
        )
    )
    return provider


def _shutdown(provider: "TracerProvider") -> None:
    # In a daemon thread, since the SDK's own shutdown waits for retries of a collector that is gone.
    flushing = threading.Thread(target=provider.shutdown, name="temporality-last-spans", daemon=True)
    flushing.start()
    flushing.join(SHUTDOWN_TIMEOUT_S)
