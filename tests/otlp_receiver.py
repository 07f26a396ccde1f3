"""Receives spans over OTLP/HTTP on loopback, as any collector does, with the standard library alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread

import anyio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(frozen=True)
class ReceivedSpan:
    """A span, what the process that sent it calls itself, and the instrumentation that made it."""

    service: str
    scope: str
    span: Span

    @property
    def trace_id(self) -> str:
        return self.span.trace_id.hex()

    @property
    def span_id(self) -> str:
        return self.span.span_id.hex()

    @property
    def parent_id(self) -> str:
        return self.span.parent_span_id.hex()

    @property
    def attributes(self) -> dict[str, object]:
        """Its attributes; a list is a tuple of texts."""
        return {attribute.key: _value(attribute.value) for attribute in self.span.attributes}


@dataclass
class OtlpReceiver:
    """What has been received so far, decoded and as it came."""

    endpoint: str
    spans: list[ReceivedSpan] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    news: Condition = field(default_factory=Condition)

    def take(self, body: bytes) -> None:
        """Keep what one request brought."""
        request = ExportTraceServiceRequest.FromString(body)
        with self.news:
            self.bodies.append(body)
            for resource in request.resource_spans:
                told = resource.resource.attributes
                service = next(pair.value.string_value for pair in told if pair.key == "service.name")
                for scope in resource.scope_spans:
                    self.spans.extend(ReceivedSpan(service, scope.scope.name, span) for span in scope.spans)
            self.news.notify_all()

    async def until(self, is_there: Callable[[list[ReceivedSpan]], bool], timeout_s: float = 30.0) -> None:
        """Wait until the spans received are what is waited for."""

        def wait() -> bool:
            with self.news:
                return self.news.wait_for(lambda: is_there(self.spans), timeout_s)

        if not await anyio.to_thread.run_sync(wait):
            raise TimeoutError(sorted(f"{one.service}: {one.span.name}" for one in self.spans))


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    """Receive on a free port while the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.take(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = OtlpReceiver(f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield receiver
        server.shutdown()
        thread.join()


def _value(value: object) -> object:
    kind = value.WhichOneof("value")  # type: ignore[attr-defined]
    if kind == "array_value":
        return tuple(one.string_value for one in value.array_value.values)  # type: ignore[attr-defined]
    return getattr(value, kind)
