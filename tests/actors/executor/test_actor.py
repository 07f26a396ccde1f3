"""Calls from the queue to the inbox, on the bus in memory and on a real NATS server."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from temporality.actors.executor.decider import INTERRUPTED
from temporality.actors.tracing import Tracing
from temporality.protocol import subjects
from temporality.protocol.codec import encode
from temporality.protocol.identity import digest
from temporality.protocol.message import CAUSE_HEADER, ID_HEADER, TRACE_HEADER
from temporality.protocol.tool import (
    BlobRef,
    OperationClaimed,
    OperationRecorded,
    ToolCall,
    ToolFailed,
    ToolFinished,
    ToolSucceeded,
)

CallOf = Callable[..., ToolCall]


def outcomes(finished: list[ToolFinished]) -> list[ToolSucceeded | ToolFailed]:
    found = [message.outcome for message in finished]
    assert all(isinstance(outcome, ToolSucceeded | ToolFailed) for outcome in found)
    return found  # type: ignore[return-value]


async def claimed_by_another(desk: Any, call: ToolCall, *, copy: int) -> None:
    """Store the claim of an executor that is not there any more."""
    claim = OperationClaimed(executor=f"executor-gone/{copy}/n", effect=call.effect)
    await desk.bus.publish(subjects.operation(call.run, call.call), encode(claim), expected_last=0)


@pytest.mark.usefixtures("samples")
async def test_outcome_goes_to_the_runs_inbox_under_an_id_made_from_the_call(
    desk: Any, call_of: CallOf
) -> None:
    async with desk.executor():
        await desk.send(call_of("greet", effect="none", arguments={"name": "Ada"}))
        (finished,) = await desk.finished()
        assert finished.call == "call-1"
        assert finished.outcome == ToolSucceeded(content="hello Ada")
        delivery = desk.arrived[0]
        assert delivery.subject.endswith(".run-1.outcome")
        assert delivery.headers[ID_HEADER] == "call-1.outcome"
        assert delivery.headers[CAUSE_HEADER] == "call-1"
        await desk.queue_is_empty()


@pytest.mark.usefixtures("samples")
async def test_call_without_an_effect_leaves_nothing_on_its_operation_subject(
    desk: Any, call_of: CallOf
) -> None:
    call = call_of("greet", effect="none", arguments={"name": "Ada"})
    async with desk.executor():
        await desk.send(call)
        await desk.finished()
        assert await desk.operation(call) == []


@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize("effect", ["idempotent", "once"])
async def test_call_with_an_effect_is_claimed_and_recorded(desk: Any, call_of: CallOf, effect: str) -> None:
    call = call_of("act", effect=effect)
    async with desk.executor():
        await desk.send(call)
        (finished,) = await desk.finished()
        claimed, recorded = await desk.operation(call)
        assert isinstance(claimed, OperationClaimed)
        assert (claimed.effect, claimed.executor.split("/")[0]) == (effect, "executor-a")
        assert isinstance(recorded, OperationRecorded)
        assert recorded.executor == claimed.executor
        assert recorded.outcome == finished.outcome == ToolSucceeded(content="acted call-1")


async def test_claim_is_stored_before_the_function_runs(desk: Any, call_of: CallOf, samples: Any) -> None:
    call = call_of("block")
    async with desk.executor():
        await desk.send(call)
        await anyio.to_thread.run_sync(samples.RUNNING.wait, 30)
        (claimed,) = await desk.operation(call)
        assert isinstance(claimed, OperationClaimed)
        samples.RELEASE.set()
        await desk.finished()


async def test_recorded_call_is_answered_again_without_acting(
    desk: Any, call_of: CallOf, samples: Any
) -> None:
    call = call_of("act")
    async with desk.executor("executor-a"):
        await desk.send(call)
        await desk.finished()
        await desk.queue_is_empty()
    async with desk.executor("executor-b"):
        await desk.send(call, copy=".again")
        await desk.queue_is_empty()
    assert samples.ACTED == ["call-1"]
    assert len(await desk.operation(call)) == 2


async def test_once_call_whose_owner_is_gone_is_uncertain_and_not_repeated(
    desk: Any, call_of: CallOf, samples: Any
) -> None:
    call = call_of("act", effect="once")
    await claimed_by_another(desk, call, copy=await desk.send(call))
    async with desk.executor():
        (finished,) = await desk.finished()
        assert finished.outcome == INTERRUPTED
        assert samples.ACTED == []
        assert len(await desk.operation(call)) == 2


async def test_idempotent_call_whose_owner_is_gone_runs_again_under_the_same_key(
    desk: Any, call_of: CallOf, samples: Any
) -> None:
    call = call_of("act", effect="idempotent")
    await claimed_by_another(desk, call, copy=await desk.send(call))
    async with desk.executor():
        (finished,) = await desk.finished()
        assert finished.outcome == ToolSucceeded(content="acted call-1")
        assert samples.ACTED == ["call-1"]


async def test_second_copy_of_a_call_that_another_holds_is_left_to_him(
    desk: Any, call_of: CallOf, samples: Any
) -> None:
    call = call_of("act", effect="once")
    first = await desk.send(call)
    async with desk.bus.consume(
        "WORK",
        durable="tool-default",
        subject=subjects.tool_pool("default"),
        ack_wait_s=5.0,
        in_flight_max=1,
    ) as deliveries:
        held = await anext(aiter(deliveries))
        assert held.sequence == first
    await claimed_by_another(desk, call, copy=first)
    second = await desk.send(call, copy=".again")
    async with desk.executor():
        with anyio.fail_after(30):
            while await desk.bus.read("WORK", subjects.tool_pool("default"), after=second - 1):
                await held.in_progress()
        assert desk.arrived == []
        assert samples.ACTED == []
        await held.nak()  # the holder is gone after all
        (finished,) = await desk.finished()
        assert finished.outcome == INTERRUPTED


@pytest.mark.parametrize("effect", ["none", "once"])
async def test_copy_that_comes_while_the_call_runs_here_joins_it(
    desk: Any, call_of: CallOf, samples: Any, effect: str
) -> None:
    call = call_of("block", effect=effect)
    async with desk.executor():
        await desk.send(call)
        await desk.send(call, copy=".again")
        await anyio.to_thread.run_sync(samples.RUNNING.wait, 30)
        samples.RELEASE.set()
        await desk.finished()
        await desk.queue_is_empty()
        assert samples.RUNS == ["block"]
        released = ToolSucceeded(content="released")
        assert all(finished.outcome == released for finished in await desk.finished())


async def test_outcome_that_another_recorded_first_is_the_one_that_is_told(
    desk: Any, call_of: CallOf, samples: Any
) -> None:
    call = call_of("act_after_release")
    async with desk.executor():
        await desk.send(call)
        await anyio.to_thread.run_sync(samples.RUNNING.wait, 30)
        subject = subjects.operation(call.run, call.call)
        claim = await desk.bus.last("RUNS", subject)
        record = OperationRecorded(executor="executor-b/1/n", outcome=INTERRUPTED)
        await desk.bus.publish(subject, encode(record), expected_last=claim.sequence)
        samples.RELEASE.set()
        (finished,) = await desk.finished()
        assert finished.outcome == INTERRUPTED
        assert (await desk.operation(call))[1:] == [record]


@pytest.mark.usefixtures("samples")
async def test_failing_function_is_an_outcome_and_does_not_come_again(desk: Any, call_of: CallOf) -> None:
    async with desk.executor():
        await desk.send(call_of("broken", arguments={"key": "id-7"}))
        (failed,) = outcomes(await desk.finished())
        assert isinstance(failed, ToolFailed)
        assert failed.error_class == "KeyError"
        await desk.queue_is_empty()


@pytest.mark.usefixtures("samples")
async def test_long_reply_travels_as_a_blob(desk: Any, call_of: CallOf) -> None:
    async with desk.executor():
        await desk.send(call_of("long_text", effect="none", arguments={"size": 20_000}))
        (succeeded,) = outcomes(await desk.finished())
        text = b"x" * 20_000
        assert succeeded.content == ""
        assert succeeded.content_blob == BlobRef(digest=digest(text), bytes=20_000)
        assert await desk.bus.get_blob(digest(text)) == text


@pytest.mark.usefixtures("samples")
async def test_structure_too_long_for_a_commit_is_left_out_and_its_text_stays(
    desk: Any, call_of: CallOf
) -> None:
    async with desk.executor():
        await desk.send(call_of("rows", call="few", effect="none", arguments={"count": 3}))
        await desk.send(call_of("rows", call="many", effect="none", arguments={"count": 9_000}))
        contents = {message.call: message.outcome for message in await desk.finished(2)}
        assert contents["few"] == ToolSucceeded(content="[0,1,2]", data=[0, 1, 2])
        assert contents["many"].data is None
        text = await desk.bus.get_blob(contents["many"].content_blob.digest)
        assert text.endswith(b"8998,8999]")


@pytest.mark.usefixtures("samples")
async def test_reply_over_the_runs_cap_is_cut_and_points_at_nothing_kept(desk: Any, call_of: CallOf) -> None:
    async with desk.executor():
        await desk.send(
            call_of("long_text", effect="none", arguments={"size": 2_000_000}, reply_bytes_max=2_000)
        )
        (succeeded,) = outcomes(await desk.finished())
        whole = digest(b"x" * 2_000_000)
        assert len(succeeded.content.encode()) <= 2_000
        assert "bytes left out" in succeeded.content
        assert whole not in succeeded.content
        assert await desk.bus.get_blob(whole) is None


@pytest.mark.usefixtures("samples")
async def test_reply_that_is_no_text_arrives_all_the_same(desk: Any, call_of: CallOf) -> None:
    async with desk.executor():
        await desk.send(call_of("junk", call="call-1", effect="none"))
        await desk.send(call_of("halves", call="call-2", effect="none"))
        contents = {message.call: message.outcome for message in await desk.finished(2)}
        assert contents["call-1"] == ToolSucceeded(content="a\ufffd\x00b")
        assert contents["call-2"] == ToolSucceeded(content="a\ufffd")


@pytest.mark.usefixtures("samples")
async def test_call_is_a_span_of_the_runs_trace_and_tells_names_but_no_content(
    desk: Any, call_of: CallOf
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace = "0af7651916cd43dd8448eb211c80319c"
    async with desk.executor(tracing=Tracing(provider)):
        await desk.send(
            call_of("broken", arguments={"key": "private"}),
            traceparent=f"00-{trace}-b7ad6b7169203331-01",
        )
        await desk.finished()
    (span,) = exporter.get_finished_spans()
    assert span.name == "execute_tool broken"
    assert span.attributes is not None
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "broken",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.tool.type": "function",
        "gen_ai.conversation.id": "run-1",
        "temporality.run.id": "run-1",
        "temporality.turn": 1,
        "temporality.message.delivered": 1,
        "temporality.tool.outcome": "failed",
        "temporality.tool.effect": "none",
        "error.type": "KeyError",
    }
    assert span.context is not None
    assert span.parent is not None
    assert f"{span.context.trace_id:032x}" == trace
    assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"
    assert desk.arrived[0].headers[TRACE_HEADER] == f"00-{trace}-{span.context.span_id:016x}-01"
