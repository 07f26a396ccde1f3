"""Spans of two processes, as a real OTLP/HTTP receiver gets them, form one trace through message headers."""

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.streams.text import TextReceiveStream
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.trace import SpanKind
from tests.otlp_receiver import otlp_receiver

from temporality.actors import conventions
from temporality.actors.bus.nats import NatsBus
from temporality.actors.bus.service import service_error
from temporality.actors.tracing import Tracing
from temporality.actors.tracing_export import exporting_provider
from temporality.deploy.embedded import EmbeddedServer
from temporality.protocol import subjects
from temporality.protocol.codec import encode
from temporality.protocol.turn import SettledCall, TurnSettled

SCRIPT = Path(__file__).parent / "triggers" / "trigger_process.py"
WAIT_S = 30.0
SECRET = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
EARLIER = f"00-{'a' * 32}-{'b' * 16}-01"

TRIGGER = """
from temporality.protocol.trigger import Candidate

class Picky:
    kind = "picky"
    def evaluate(self, turn):
        if turn.turn == 2:
            raise ValueError(turn.calls[0].result)
        return [Candidate(situation="s")]
"""


@pytest.fixture
def endpoint() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@asynccontextmanager
async def trigger(folder: Path, url: str, endpoint: str) -> AsyncIterator[None]:
    """Serve the trigger in another process, which sends its spans at its end."""
    (folder / "picky.py").write_text(TRIGGER, encoding="utf-8")
    command = [sys.executable, str(SCRIPT), url, "picky:Picky", endpoint]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    async with await anyio.open_process(command, env=environment, stderr=None) as process:
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            with anyio.fail_after(WAIT_S):
                assert (await TextReceiveStream(process.stdout).receive()).strip() == "ready"
                yield
                await process.stdin.aclose()
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()


def turn(number: int) -> bytes:
    call = SettledCall(call="c1", tool="read", outcome="failed", argument_digest="d", result=f"key {SECRET}")
    return encode(TurnSettled(project="demo", run="r1", turn=number, calls=(call,)))


async def test_spans_of_two_processes_form_one_trace_through_headers(
    nats_server: EmbeddedServer, nats_bus: NatsBus, tmp_path: Path
) -> None:
    with otlp_receiver() as received:
        provider = exporting_provider(received.endpoint, "asker")
        tracing = Tracing(provider)
        async with trigger(tmp_path, nats_server.url, received.endpoint):
            for number in (1, 2):
                with tracing.span(
                    conventions.TURN,
                    kind=SpanKind.CLIENT,
                    attributes={conventions.TURN_NUMBER: number},
                    links=[EARLIER],
                ):
                    answer = await nats_bus.request(
                        subjects.turn_settled("demo"),
                        turn(number),
                        timeout_s=WAIT_S,
                        headers={"traceparent": tracing.traceparent() or ""},
                    )
                    assert (service_error(answer) is None) == (number == 1)
        provider.shutdown()
        await received.until(lambda spans: len(spans) == 4)
    spans = [one.span for one in received.spans]
    asked = {span.attributes[0].value.int_value: span for span in spans if span.name == "turn"}
    evaluated = {span.parent_span_id: span for span in spans if span.name == "evaluate picky"}
    assert (len(asked), len(evaluated)) == (2, 2)
    for number, span in asked.items():
        child = evaluated[span.span_id]
        assert child.trace_id == span.trace_id
        assert (span.kind, child.kind) == (Span.SPAN_KIND_CLIENT, Span.SPAN_KIND_SERVER)
        assert [(link.trace_id.hex(), link.span_id.hex()) for link in span.links] == [("a" * 32, "b" * 16)]
        assert not span.parent_span_id
        failed = child.status.code == Status.STATUS_CODE_ERROR
        assert failed == (number == 2)
    keys = {attribute.key for span in spans for attribute in span.attributes}
    assert keys <= {name.name for name in conventions.ATTRIBUTES}
    assert SECRET not in "".join(map(str, spans))


DEAD_COLLECTOR = """
import sys
from temporality.actors.tracing import Tracing
from temporality.actors.tracing_export import configure_tracing
flush = configure_tracing(sys.argv[1], "worker")
with Tracing().span("work") as span:
    assert span.is_recording()
flush()
flush()
sys.stdout.write("ended")
"""


def test_dead_collector_does_not_keep_a_process_from_ending(endpoint: str) -> None:
    """A43"""
    command = [sys.executable, "-c", DEAD_COLLECTOR, endpoint]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert ran.stdout == "ended"


def test_process_without_an_endpoint_never_imports_the_sdk() -> None:
    program = (
        "import sys\n"
        "from temporality.actors.tracing import Tracing\n"
        "from temporality.actors.tracing_export import configure_tracing\n"
        "configure_tracing(None, 'worker')()\n"
        "assert not [name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'requests'))]\n"
    )
    subprocess.run([sys.executable, "-c", program], timeout=WAIT_S, check=True)
