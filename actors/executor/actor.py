"""The tool executor: takes calls from the queue, runs each as its effect allows, and tells the outcome.

One call goes: claim → run → record → outcome → acknowledge. The host does the last two. A call that comes
again while this process still runs it waits for that run instead of starting another.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence

import anyio
from anyio.abc import TaskStatus
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from temporality.actors import conventions
from temporality.actors.executor.catalog import Catalog
from temporality.actors.executor.content import Result
from temporality.actors.executor.decider import INTERRUPTED, Claimant, Step
from temporality.actors.executor.mcp import McpSessions
from temporality.actors.executor.operations import Operations
from temporality.actors.executor.outcome import outcome_of
from temporality.actors.executor.python import PythonTools
from temporality.actors.executor.settings import ExecutorSettings
from temporality.actors.host import DELIVERIES_MAX, Asked, Host, Received, Send
from temporality.actors.running import Running
from temporality.protocol import subjects
from temporality.protocol.errors import WorldError, fault
from temporality.protocol.message import TRACE_HEADER
from temporality.protocol.streams import WORK
from temporality.protocol.tool import (
    ListTools,
    OperationRecorded,
    ToolCall,
    ToolFailed,
    ToolFinished,
    ToolsAnswer,
    outcome_name,
)

IDEMPOTENCY_META = "temporality/idempotency-key"
"""Key of `_meta` under which an MCP tool is given the call's id: the same at every attempt."""


class ExecutorActor:
    """One executor process of a pool; any number of them share the queue."""

    def __init__(
        self,
        host: Host,
        settings: ExecutorSettings,
        *,
        nonce: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._host = host
        self._settings = settings
        self._nonce = nonce
        self._operations = Operations(host.bus, host.clock)
        self._running: Running[ToolFinished | None] = Running()
        self._mcp = McpSessions(settings)
        self._python = PythonTools(
            threads_max=settings.threads_max,
            timeout_s=settings.python_timeout_s,
            allow=settings.allow_python,
        )
        self._catalog = Catalog(self._mcp, self._python)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve calls and questions until cancelled; then calls are given back and servers are closed."""
        pool = self._settings.pool
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._mcp.run)

            async def answer(*, task_status: TaskStatus[None]) -> None:
                await self._host.answer(
                    subject=subjects.ask("executor", "tools"),
                    queue="executor",
                    kind=ListTools,
                    handle=self._list_tools,
                    task_status=task_status,
                )

            async def work(*, task_status: TaskStatus[None]) -> None:
                await self._host.work(
                    stream=WORK,
                    durable=f"tool-{pool}",
                    subject=subjects.tool_pool(pool),
                    kind=ToolCall,
                    handle=self._handle,
                    concurrency=self._settings.concurrency,
                    task_status=task_status,
                )

            await tasks.start(answer)
            await tasks.start(work)
            task_status.started()

    async def _list_tools(self, asked: Asked[ListTools]) -> ToolsAnswer:
        with self._host.tracing.span(
            conventions.spanned(conventions.PROCESS, asked.subject),
            parent=asked.traceparent,
            kind=SpanKind.SERVER,
            attributes={conventions.MESSAGING_OPERATION_NAME: conventions.PROCESS},
        ):
            return await self._catalog.tools(asked.message)

    async def _handle(self, received: Received[ToolCall]) -> Sequence[Send]:
        self._host.crash.reached("executor.received")
        call = received.message
        with self._host.tracing.span(
            f"{conventions.EXECUTE_TOOL} {call.tool}",
            parent=received.traceparent or "",
            attributes=_attributes(received),
        ) as span:
            finished = await self._finished_or_given_up(received)
            if finished is None:
                return ()
            _describe(span, finished)
            return [
                Send(
                    subject=subjects.inbox(call.run, "outcome"),
                    message=finished,
                    id=f"{call.call}.outcome",
                    traceparent=self._host.tracing.traceparent(),
                )
            ]

    async def _finished_or_given_up(self, received: Received[ToolCall]) -> ToolFinished | None:
        """Settle a call; one on which our own code keeps failing is answered before it becomes a dead letter.

        Its run would wait for ever for an answer that nobody will give.
        """
        call = received.message
        try:
            return await self._running.join_or_run(f"{call.run}/{call.call}", self._settling(received))
        except WorldError:
            raise
        except Exception as error:
            if received.delivered < DELIVERIES_MAX:
                raise
            self._host.log.error("call %s is given up: %s", call.call, fault(error))
            return ToolFinished(call=call.call, outcome=INTERRUPTED)

    def _settling(self, received: Received[ToolCall]) -> Callable[[], Awaitable[ToolFinished | None]]:
        async def settle() -> ToolFinished | None:
            if received.message.effect == "none":
                return _finished(received.message, await self._executed(received.message, me=""))
            return await self._settle_with_effect(received)

        return settle

    async def _settle_with_effect(self, received: Received[ToolCall]) -> ToolFinished | None:
        """Run a call as its operation subject allows; None: another copy of the call is still queued."""
        call = received.message
        me = Claimant(self._host.name, received.sequence, self._nonce())
        verdict = await self._operations.claim(call, me, received.subject, seen_before=received.delivered > 1)
        self._host.crash.reached("executor.claimed")
        match verdict.step:
            case Step.LEAVE:
                return None
            case Step.ANSWER:
                assert verdict.recorded is not None
                return _finished(call, verdict.recorded)
            case Step.INTERRUPT:
                record = OperationRecorded(executor=str(me), outcome=INTERRUPTED)
            case _:
                record = await self._executed(call, me=str(me))
                self._host.crash.reached("executor.executed")
        stands = await self._operations.record(call, me, record, after=verdict.after)
        self._host.crash.reached("executor.recorded")
        return _finished(call, stands)

    async def _executed(self, call: ToolCall, *, me: str) -> OperationRecorded:
        began = self._host.clock.monotonic()
        result = await self._run_tool(call)
        duration_ms = round((self._host.clock.monotonic() - began) * 1000)
        outcome = await outcome_of(
            self._host.bus, self._host.clock, result, reply_bytes_max=call.reply_bytes_max
        )
        return OperationRecorded(executor=me, outcome=outcome, duration_ms=duration_ms)

    async def _run_tool(self, call: ToolCall) -> Result:
        if call.python is not None:
            return await self._python.call(call.python, call.arguments, effect=call.effect, key=call.call)
        assert call.mcp is not None
        assert call.mcp_server is not None
        meta = {IDEMPOTENCY_META: call.call}
        if (traceparent := self._host.tracing.traceparent()) is not None:
            meta[TRACE_HEADER] = traceparent
        return await self._mcp.call(
            call.mcp_server, call.mcp, call.run, call.tool, call.arguments, meta=meta, effect=call.effect
        )


def _finished(call: ToolCall, record: OperationRecorded) -> ToolFinished:
    return ToolFinished(call=call.call, outcome=record.outcome, duration_ms=record.duration_ms)


def _attributes(received: Received[ToolCall]) -> dict[str, str | int]:
    call = received.message
    attributes: dict[str, str | int] = {
        conventions.GEN_AI_OPERATION_NAME: conventions.EXECUTE_TOOL,
        conventions.GEN_AI_TOOL_NAME: call.tool,
        conventions.GEN_AI_TOOL_CALL_ID: call.call,
        conventions.GEN_AI_TOOL_TYPE: "function" if call.python else "extension",
        conventions.GEN_AI_CONVERSATION_ID: call.run,
        conventions.RUN_ID: call.run,
        conventions.TURN_NUMBER: call.turn,
        conventions.DELIVERED: received.delivered,
    }
    if call.mcp_server is not None:
        attributes[conventions.MCP_SERVER] = call.mcp_server
    return attributes


def _describe(span: Span, finished: ToolFinished) -> None:
    """Tell in the span how the call ended: names only, never content (A47)."""
    outcome = finished.outcome
    span.set_attribute(conventions.TOOL_OUTCOME, outcome_name(outcome))
    if isinstance(outcome, ToolFailed):
        span.set_attribute(conventions.TOOL_EFFECT, outcome.effect)
        span.set_attribute(conventions.ERROR_TYPE, outcome.error_class)
        span.set_status(Status(StatusCode.ERROR, outcome.error_class))
