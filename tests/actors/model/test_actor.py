"""The model caller on a real NATS server: commits in, one proven request out, one report back."""

import dataclasses
import hashlib
from pathlib import Path

import anyio
import msgspec
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from temporality.actors.bus.nats import NatsBus
from temporality.actors.clock import SystemClock, VirtualClock
from temporality.actors.model.actor import FAULTS_MAX
from temporality.actors.model.blobs import LAG_MAX_S, Blobs
from temporality.actors.model.provider import CallFailed
from temporality.actors.model.retry import retry_later_s
from temporality.actors.model.transcripts import Transcripts
from temporality.actors.tracing import Tracing
from temporality.protocol import subjects
from temporality.protocol.agent import ModelSpec
from temporality.protocol.codec import decode, encode
from temporality.protocol.identity import digest
from temporality.protocol.message import CAUSE_HEADER, ID_HEADER
from temporality.protocol.model import ModelCompleted, ModelFailed, ModelReport
from temporality.protocol.run import ModelReplied, RequestedCall, ToolReplied
from temporality.protocol.streams import INBOX, RUNS, WORK
from temporality.protocol.tool import BlobRef, ToolDefinition, ToolFailed, ToolSucceeded

from .histories import block, called
from .runs import HELLO, SUCCESS, Run, answer, enqueue, model_actor, received, scripted
from .servers import scripted_model

ALL_REPLIES = f"{subjects.PREFIX}.inbox.*.*.reply"


async def test_call_from_the_queue_is_reported_to_the_inbox_of_its_run(bus: NatsBus) -> None:
    async with anyio.create_task_group() as tasks:
        call = await Run(bus).start(scripted())
        await tasks.start(lambda task_status: model_actor(bus).run(task_status=task_status))
        await enqueue(bus, call, "c-1.0")
        async with bus.consume(INBOX, durable="test", subject=ALL_REPLIES, ack_wait_s=5) as deliveries:
            delivery = await anext(deliveries)
            await delivery.ack()
        report = decode(delivery.payload, ModelReport)
        assert isinstance(report, ModelCompleted)
        assert (report.call, report.content) == ("m-1", "hello")
        assert delivery.headers[ID_HEADER] == "m-1.report"
        assert delivery.headers[CAUSE_HEADER] == "c-1.0"
        tasks.cancel_scope.cancel()


async def test_two_deliveries_of_one_call_leave_one_report(bus: NatsBus) -> None:
    """Whether or not the repeat finds the first still under way, the run hears one answer."""
    async with anyio.create_task_group() as tasks:
        call = await Run(bus).start(scripted())
        for message_id in ("first", "again"):
            await enqueue(bus, call, message_id)
        await tasks.start(lambda task_status: model_actor(bus).run(task_status=task_status))
        with anyio.fail_after(10):
            while await bus.pending(WORK, "model-default") != (0, 0):
                await anyio.lowlevel.checkpoint()
        stored = await bus.last(INBOX, ALL_REPLIES)
        assert stored is not None
        assert stored.sequence == 1
        tasks.cancel_scope.cancel()


async def test_request_holds_the_replies_in_call_order_and_then_the_block_as_the_server_got_it(
    bus: NatsBus,
    tmp_path: Path,
) -> None:
    """A1, A2, A26, A39: read from the bytes that arrived at the HTTP server."""
    record = tmp_path / "requests.jsonl"
    async with scripted_model(HELLO, record=record) as url:
        run = Run(bus)
        await run.start(ModelSpec(name="demo", base_url=url))
        calls = tuple(
            RequestedCall(call=f"c-{i}", provider_call_id=f"p{i}", name="look", arguments="{}")
            for i in range(3)
        )
        await run.commit(ModelReplied(call="m-1", turn=1, content="", calls=calls))
        await run.commit(ToolReplied(call="c-2", turn=1, outcome=SUCCESS))
        failure = ToolFailed(error_class="timeout", content="no answer")
        await run.commit(
            ToolReplied(call="c-1", turn=1, outcome=failure),
            ToolReplied(call="c-0", turn=1, outcome=SUCCESS),
            block("<temporality.memory>\nremember git-scope\n</temporality.memory>"),
            called(2),
        )
        report = await answer(model_actor(bus), run.call(2))
    body = msgspec.json.decode(record.read_bytes())["body"]
    assert [message["role"] for message in body["messages"]] == [
        *("system", "user", "assistant", "tool", "tool", "tool", "user")
    ]
    assert [message.get("tool_call_id") for message in body["messages"][3:6]] == ["p0", "p1", "p2"]
    assert body["messages"][4]["content"] == "Error (timeout):\nno answer"
    assert "git-scope" in body["messages"][6]["content"]
    assert isinstance(report, ModelCompleted)
    assert report.transcript_digest == run.digest


async def test_later_request_begins_with_the_bytes_of_the_earlier_one(bus: NatsBus, tmp_path: Path) -> None:
    """A38: on the wire, over a warm and a cold cache."""
    record = tmp_path / "requests.jsonl"
    async with scripted_model(HELLO, record=record) as url:
        run, actor = Run(bus), model_actor(bus)
        await answer(actor, await run.start(ModelSpec(name="demo", base_url=url)))
        await answer(actor, await run.turn(1, SUCCESS, ToolFailed(error_class="tool_error")))
        await answer(actor, await run.turn(2, SUCCESS))
        await answer(model_actor(bus), run.call(3))
    lines = [line.partition(b'"body":')[2].removesuffix(b"]}}") for line in record.read_bytes().splitlines()]
    assert len(lines) == 4
    assert lines[1].startswith(lines[0] + b",")
    assert lines[2].startswith(lines[1] + b",")
    assert lines[3] == lines[2]


async def test_digest_that_differs_is_a_mismatch_and_nothing_is_sent(bus: NatsBus, tmp_path: Path) -> None:
    """A26: no request without proof."""
    record = tmp_path / "requests.jsonl"
    async with scripted_model(HELLO, record=record) as url:
        call = await Run(bus).start(ModelSpec(name="demo", base_url=url))
        wrong = msgspec.structs.replace(call, transcript_digest=hashlib.sha256(b"other").hexdigest())
        report = await answer(model_actor(bus), wrong)
    assert isinstance(report, ModelFailed)
    assert report.error_class == "transcript_mismatch"
    assert report.retry_after_s is None
    assert record.read_bytes() == b""


async def test_cache_that_went_wrong_is_dropped_and_the_run_folded_anew(bus: NatsBus) -> None:
    """A call for an earlier point of the run is built from the first commit, and later ones still work."""
    run, actor = Run(bus), model_actor(bus)
    first = await run.start(scripted())
    second = await run.turn(1, SUCCESS)
    reports = [await answer(actor, call) for call in (second, first, second)]
    assert [getattr(report, "transcript_digest", report) for report in reports] == [
        second.transcript_digest,
        first.transcript_digest,
        second.transcript_digest,
    ]


async def test_commits_with_a_gap_are_refused(bus: NatsBus) -> None:
    run = Run(bus)
    await run.start(scripted())
    await run.commit(number=3)
    call = msgspec.structs.replace(run.call(2), upto=3)
    report = await answer(model_actor(bus), call)
    assert isinstance(report, ModelFailed)
    assert "commit 3 follows commit 1" in report.message


async def test_commit_that_comes_later_is_waited_for(bus: NatsBus) -> None:
    """A replica that lags."""
    async with anyio.create_task_group() as tasks:
        run = Run(bus)
        first = await run.start(scripted())
        later = msgspec.structs.replace(first, upto=2)
        transcripts = Transcripts(bus, SystemClock(), Blobs(bus))
        done = anyio.Event()

        async def read() -> None:
            await transcripts.of(later)
            done.set()

        tasks.start_soon(read)
        await anyio.lowlevel.checkpoint()
        assert not done.is_set()
        await run.commit()
        with anyio.fail_after(5):
            await done.wait()


async def test_call_for_a_run_without_commits_may_be_made_again_later(bus: NatsBus) -> None:
    """The wait for them has a deadline, which passes here in no time."""
    clock = VirtualClock()
    failures: list[CallFailed] = []
    async with anyio.create_task_group() as tasks:
        transcripts = Transcripts(bus, clock, Blobs(bus))

        async def read() -> None:
            with pytest.raises(CallFailed) as raised:
                await transcripts.of(msgspec.structs.replace(Run(bus).call(1), upto=1))
            failures.append(raised.value)

        tasks.start_soon(read)
        while not failures:
            await anyio.lowlevel.checkpoint()
            clock.advance((clock.next_due() or clock.monotonic()) - clock.monotonic())
    assert "commit 1 can't be read" in failures[0].message
    assert retry_later_s(failures[0]) == LAG_MAX_S
    assert clock.monotonic() == LAG_MAX_S


async def test_reply_kept_in_a_blob_is_read_from_there(bus: NatsBus, tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    text = "long " * 5000
    blob = BlobRef(digest=digest(text.encode()), bytes=len(text))
    async with scripted_model(HELLO, record=record) as url:
        await bus.put_blob(blob.digest, text.encode())
        run = Run(bus)
        await run.start(ModelSpec(name="demo", base_url=url))
        await answer(model_actor(bus), await run.turn(1, ToolSucceeded(content_blob=blob)))
    assert msgspec.json.decode(record.read_bytes())["body"]["messages"][-1]["content"] == text


async def test_frozen_tools_are_offered_in_their_order(bus: NatsBus, tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = encode(
        [
            ToolDefinition(name="fs__read", tool="read", description="Read.", parameters=schema),
            ToolDefinition(name="a", tool="a"),
        ]
    )
    async with scripted_model(HELLO, record=record) as url:
        await bus.put_blob(digest(tools), tools)
        run = Run(bus)
        await run.start(ModelSpec(name="demo", base_url=url))
        await answer(model_actor(bus), run.call(1, tools=digest(tools)))
    sent = msgspec.json.decode(record.read_bytes())["body"]["tools"]
    assert [tool["function"]["name"] for tool in sent] == ["fs__read", "a"]
    assert sent[0]["function"] == {"name": "fs__read", "description": "Read.", "parameters": schema}


async def test_failure_of_the_provider_is_reported_with_what_to_do(bus: NatsBus) -> None:
    call = await Run(bus).start(ModelSpec(name="demo", api_key="${MY_KEY}"))
    report = await answer(model_actor(bus), call)
    assert isinstance(report, ModelFailed)
    assert report.error_class == "unauthorized"
    assert "MY_KEY" in report.message
    assert "MY_KEY" in report.do


async def test_call_is_a_chat_span_under_the_trace_that_asked_for_it(bus: NatsBus) -> None:
    """A47 too: ids, names and counts only, no text of the conversation."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    asked_in = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    run = Run(bus)
    actor = model_actor(bus, tracing=Tracing(provider))
    call = await run.start(scripted(), task="secret task")
    wrong = msgspec.structs.replace(call, transcript_digest="0")
    (send,) = await actor.handle(dataclasses.replace(received(call), traceparent=asked_in))
    await actor.handle(received(wrong))
    good, bad = exporter.get_finished_spans()
    assert good.name == "chat demo"
    assert good.parent is not None
    assert good.context is not None
    assert f"{good.parent.trace_id:032x}-{good.parent.span_id:016x}" == asked_in[3:-3]
    assert send.traceparent == f"00-{good.context.trace_id:032x}-{good.context.span_id:016x}-01"
    assert good.attributes is not None
    assert good.attributes["gen_ai.provider.name"] == "scripted"
    assert good.attributes["gen_ai.request.model"] == "demo"
    assert good.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert bad.attributes is not None
    assert bad.attributes["error.type"] == "transcript_mismatch"
    assert bad.status.status_code is StatusCode.ERROR
    assert "secret" not in good.to_json() + bad.to_json()


async def test_reply_too_large_for_a_commit_is_a_failure_not_a_stuck_run(bus: NatsBus) -> None:
    call = await Run(bus).start(scripted(f"replies:\n- reply: {{content: {'x' * 100_000}}}\n"))
    report = await answer(model_actor(bus), call)
    assert isinstance(report, ModelFailed)
    assert "100000 bytes" in report.message


async def test_fault_of_our_own_is_told_to_the_run_after_a_few_deliveries(bus: NatsBus) -> None:
    """A run must not wait for ever for a call that became a dead letter."""
    await bus.publish(subjects.commit("run-1"), b'{"type":"commit"}', expected_last=0)
    call = msgspec.structs.replace(Run(bus).call(1), upto=1)
    actor = model_actor(bus)
    with pytest.raises(Exception, match="Object missing"):
        await actor.handle(received(call))
    report = await answer(actor, call, delivered=FAULTS_MAX)
    assert isinstance(report, ModelFailed)
    assert "InvalidMessage" in report.message


async def test_thousand_turns_are_read_and_rendered_once(bus: NatsBus) -> None:
    """A38 and the cost of a turn: after turn 1,000 only what is new is read, folded, rendered and encoded."""
    run = Run(bus)
    call = await run.start(scripted())
    transcripts = Transcripts(bus, SystemClock(), Blobs(bus))
    for turn in range(1, 1000):
        call = await run.turn(turn, SUCCESS)
    before = await transcripts.of(call)
    # What was read before is gone from the server: only new commits can be read now.
    last = await bus.last(RUNS, subjects.commit(run.run))
    assert last is not None
    await bus.purge(RUNS, subjects.commit(run.run), below=last.sequence)
    after = await transcripts.of(await run.turn(1000, SUCCESS))
    assert len(before.messages) == 2 + 2 * 999
    assert len(after.messages) == len(before.messages) + 2
    assert all(new is old for new, old in zip(after.encoded, before.encoded, strict=False))


async def test_caches_are_bounded_by_bytes(bus: NatsBus) -> None:
    transcripts = Transcripts(bus, SystemClock(), Blobs(bus), bytes_max=100)
    calls = [await Run(bus, name).start(scripted(), task="x" * 60) for name in ("run-1", "run-2")]
    first = await transcripts.of(calls[0])
    await transcripts.of(calls[1])
    again = await transcripts.of(calls[0])
    assert again.encoded == first.encoded
    assert again.encoded[1] is not first.encoded[1]


async def test_repeat_of_a_call_that_is_being_answered_waits_for_that_answer(
    bus: NatsBus, tmp_path: Path
) -> None:
    """What a supervisor sends again after a reconnect is paid once."""
    record = tmp_path / "requests.jsonl"
    release = anyio.Event()

    async def held_pause(_: float) -> None:
        await release.wait()

    script = 'replies: [{fail: {status: 503, times: 1}}, {reply: {content: "hello"}}]'
    async with scripted_model(script, record=record) as url:
        call = await Run(bus).start(ModelSpec(name="demo", base_url=url))
        actor = model_actor(bus, pause=held_pause)
        reports: list[ModelCompleted | ModelFailed] = []

        async def deliver() -> None:
            reports.append(await answer(actor, call))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deliver)
            with anyio.fail_after(10):
                while not record.exists() or not record.read_bytes():
                    await anyio.lowlevel.checkpoint()
            tasks.start_soon(deliver)
            await anyio.wait_all_tasks_blocked()
            release.set()
    first, repeat = reports
    assert isinstance(first, ModelCompleted)
    assert first == repeat
    assert len(record.read_text(encoding="utf-8").splitlines()) == 2
