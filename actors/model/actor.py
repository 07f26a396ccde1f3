"""The model caller's process: takes calls from its queue, makes the requests, reports the replies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import anyio
from anyio.abc import TaskStatus
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from temporality.actors import conventions
from temporality.actors.host import Host, Received, Send
from temporality.actors.model.blobs import LAG_MAX_S, Blobs
from temporality.actors.model.openai import OpenAIProvider
from temporality.actors.model.patience import Patience
from temporality.actors.model.provider import (
    CallFailed,
    ModelReply,
    ModelRequest,
    Provider,
    require_committable,
)
from temporality.actors.model.retry import Pause, attempt_until_done, retry_later_s
from temporality.actors.model.scripted import ScriptedProvider
from temporality.actors.model.transcripts import (
    TRANSCRIPTS_BYTES_MAX,
    RenderedTranscript,
    Transcripts,
)
from temporality.actors.running import Running
from temporality.protocol import subjects
from temporality.protocol.errors import WorldError, fault
from temporality.protocol.model import ModelCall, ModelCompleted, ModelFailed, ModelReport
from temporality.protocol.streams import WORK

FAULTS_MAX = 3
"""Deliveries on which our own code may fail; then the run is told, so that it doesn't wait for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How one model caller works. `environment` resolves `${NAME}` and is the only source of keys."""

    environment: Mapping[str, str] = field(default_factory=dict)
    pool: str = "default"
    concurrency: int = 128
    """Requests under way at once: each holds a connection and a delivery, and mostly waits."""
    transcripts_bytes_max: int = TRANSCRIPTS_BYTES_MAX


class ModelActor:
    """One model caller of a pool; any number of them share the queue."""

    def __init__(
        self,
        host: Host,
        settings: ModelSettings,
        *,
        random: Random | None = None,
        pause: Pause = anyio.sleep,
    ) -> None:
        self._host = host
        self._settings = settings
        self._random = random or Random()
        self._pause = pause
        self._running: Running[ModelReport] = Running()
        self._blobs = Blobs(host.bus)
        self._transcripts = Transcripts(
            host.bus, host.clock, self._blobs, bytes_max=settings.transcripts_bytes_max
        )
        self._providers: dict[str, Provider] = {
            "openai": OpenAIProvider(settings.environment, now=host.clock.now),
            "scripted": ScriptedProvider(now=host.clock.now),
        }

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve calls until cancelled; those under way are given back to the queue."""
        pool = self._settings.pool
        try:
            await self._host.work(
                stream=WORK,
                durable=f"model-{pool}",
                subject=subjects.model_pool(pool),
                kind=ModelCall,
                handle=self.handle,
                concurrency=self._settings.concurrency,
                task_status=task_status,
            )
        finally:
            with anyio.CancelScope(shield=True):
                for provider in self._providers.values():
                    await provider.aclose()

    async def handle(self, received: Received[ModelCall]) -> Sequence[Send]:
        """Make one call and return its report.

        The report's id is the call's, as a call has one report: of two that a redelivery leads to, the first
        is the one that counts. Another attempt of the supervisor is another call. A repeat that comes while
        this process still asks the provider waits for that answer, so it is paid once.
        """
        call = received.message
        name = conventions.spanned(conventions.CHAT, call.model)
        attributes: dict[str, AttributeValue] = {
            conventions.GEN_AI_OPERATION_NAME: conventions.CHAT,
            conventions.GEN_AI_REQUEST_MODEL: call.model,
            conventions.GEN_AI_CONVERSATION_ID: call.run,
            conventions.RUN_ID: call.run,
            conventions.TURN_NUMBER: call.turn,
            conventions.MODEL_CALL_ID: call.call,
            conventions.DELIVERED: received.delivered,
        }
        with self._host.tracing.span(
            name, parent=received.traceparent, kind=SpanKind.CLIENT, attributes=attributes
        ) as span:
            report = await self._running.join_or_run(
                f"{call.run}/{call.call}", lambda: self._report(call, received.delivered, span)
            )
            _describe(span, report)
            traceparent = self._host.tracing.traceparent()
        return [
            Send(
                subject=subjects.inbox(call.run, "reply"),
                message=report,
                id=f"{call.call}.report",
                traceparent=traceparent,
            )
        ]

    async def _report(self, call: ModelCall, delivered: int, span: Span) -> ModelReport:
        started = self._host.clock.monotonic()
        try:
            transcript = await self._transcripts.of(call)
            span.set_attribute(conventions.GEN_AI_PROVIDER_NAME, transcript.agent.model.provider)
            reply = await self._ask(call, transcript)
        except CallFailed as failure:
            return self._failed(call, failure, started)
        except WorldError:
            raise
        except Exception as error:
            if delivered < FAULTS_MAX:
                raise
            message = f"the model caller failed: {fault(error)}"
            do = "report this with the log of the model caller"
            return self._failed(call, CallFailed("provider_error", message, do=do), started)
        return ModelCompleted(
            call=call.call,
            transcript_digest=transcript.digest,
            content=reply.content,
            tool_calls=reply.tool_calls,
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            duration_ms=self._milliseconds_since(started),
        )

    async def _ask(self, call: ModelCall, transcript: RenderedTranscript) -> ModelReply:
        spec = transcript.agent.model
        provider = self._providers[spec.provider]
        patience = Patience(self._host.clock, LAG_MAX_S)
        request = ModelRequest(
            call=call.call,
            spec=spec,
            messages=transcript.messages,
            encoded=transcript.encoded,
            tools=await self._blobs.tools(call.tools, patience) if call.tools else None,
        )

        async def attempt() -> ModelReply:
            return require_committable(await provider.attempt(request))

        return await attempt_until_done(attempt, random=self._random, pause=self._pause)

    def _failed(self, call: ModelCall, failure: CallFailed, started: float) -> ModelFailed:
        return ModelFailed(
            call=call.call,
            error_class=failure.error_class,
            message=failure.message,
            do=failure.do,
            retry_after_s=retry_later_s(failure),
            duration_ms=self._milliseconds_since(started),
        )

    def _milliseconds_since(self, started: float) -> int:
        return round((self._host.clock.monotonic() - started) * 1000)


def _describe(span: Span, report: ModelReport) -> None:
    match report:
        case ModelCompleted(usage=usage, finish_reason=reason):
            span.set_attribute(conventions.GEN_AI_RESPONSE_FINISH_REASONS, [reason])
            span.set_attribute(conventions.GEN_AI_USAGE_INPUT_TOKENS, usage.input_tokens)
            span.set_attribute(conventions.GEN_AI_USAGE_OUTPUT_TOKENS, usage.output_tokens)
            span.set_attribute(conventions.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, usage.cached_tokens)
        case ModelFailed(error_class=error_class):
            span.set_attribute(conventions.ERROR_TYPE, error_class)
            span.set_status(Status(StatusCode.ERROR, error_class))
