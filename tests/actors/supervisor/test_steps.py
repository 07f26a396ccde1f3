"""One step of a run: what the outside is asked between two decisions, and what its answers may be."""

import anyio
import pytest

from temporality.actors.bus.nats import connect
from temporality.actors.clock import SystemClock
from temporality.actors.host import Host, QuestionRefused
from temporality.actors.supervisor.actor import SupervisorActor, SupervisorSettings
from temporality.actors.tracing import Tracing
from temporality.protocol import subjects
from temporality.protocol.agent import RunLimits, ToolsSpec
from temporality.protocol.codec import decode, encode
from temporality.protocol.identity import RunIdentity, digest
from temporality.protocol.message import ID_HEADER, Message
from temporality.protocol.model import ModelCall, ModelFailed
from temporality.protocol.run import ModelCalled, RunFailed, RunFinished, RunStarted, StartRun, ToolsFrozen
from temporality.protocol.streams import WORK, stream_specs
from temporality.protocol.tool import BlobRef, ListTools, ToolFailed, ToolsUnavailable
from temporality.protocol.turn import TurnSettled
from temporality.storage.snapshots import MemorySnapshots

from .scenes import agent, succeeded
from .system import System, model_reply, system

NO_TOOLS = agent(tools=ToolsSpec())


async def answers_tools(on: System, answer: Message) -> None:
    """Have an executor give this answer to the question for tools."""

    async def tools(_: object) -> Message:
        return answer

    await on.answering(subjects.ask("executor", "tools"), ListTools, tools)


async def test_agent_without_tools_asks_no_executor():
    async with system(executor=False) as on:
        await on.supervisor()
        await on.start(spec=NO_TOOLS)
        assert (await on.model_call()).tools is None
        assert await on.of(ToolsFrozen) == [ToolsFrozen(digest=None)]
        assert on.clock.monotonic() < 1.0


async def test_frozen_list_is_a_blob_that_the_model_call_names():
    async with system() as on:
        await on.supervisor()
        await on.start()
        call = await on.model_call()
        (frozen,) = await on.of(ToolsFrozen)
        assert call.tools == frozen.digest
        content = await on.bus.get_blob(frozen.digest or "")
        assert content is not None
        assert digest(content) == frozen.digest


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ToolsUnavailable(where="tools.mcp.git", what="no such command", do="install it"), "no such command"),
        (QuestionRefused(message="internal error: KeyError"), "internal error: KeyError"),
        (ModelFailed(call="c", error_class="e", message="m"), "no list of tools"),
    ],
    ids=["unavailable", "refused", "something else"],
)
async def test_run_whose_tools_cannot_be_had_fails_at_once_and_says_why(answer: Message, words: str):
    async with system(executor=False) as on:
        await answers_tools(on, answer)
        await on.supervisor()
        await on.start()
        await on.served()
        assert [type(fact) for fact in await on.facts()] == [RunStarted, RunFailed]
        (ended,) = await on.of(RunFailed)
        assert words in ended.what
        assert ended.where.startswith("tools")


async def test_run_that_takes_all_its_turns_fails_with_a_word_and_calls_no_model_again():
    async with system() as on:
        await on.supervisor()
        await on.start(spec=agent(limits=RunLimits(turns_max=2)))
        for _ in range(2):
            await on.model_asks(await on.model_call(), ("look", "{}"))
            await on.finish(await on.tool_call(), succeeded())
        await on.served()
        (ended,) = await on.of(RunFailed)
        assert (ended.where, "2 turns" in ended.what) == ("limits.turns_max", True)
        assert len(await on.of(ModelCalled)) == 2


async def test_evaluators_see_long_results_that_lie_in_blobs():
    async with system() as on, on.bus.subscribe(subjects.all_turns_settled()) as seen:
        await on.triggers()
        await on.supervisor()
        await on.start()
        await on.model_asks(await on.model_call(), ("look", "{}"))
        text = ("no such table: users. " * 1_000).encode()
        await on.bus.put_blob(digest(text), text)
        outcome = ToolFailed(
            error_class="tool_error", content_blob=BlobRef(digest=digest(text), bytes=len(text))
        )
        await on.finish(await on.tool_call(), outcome)
        await on.model_call()
        settled = decode((await anext(seen)).payload, TurnSettled)
        assert settled.calls[0].result.startswith("no such table: users.")
        assert len(settled.calls[0].result) <= 8_192


async def test_backoff_timer_of_a_real_server_brings_the_model_call_back(nats_bus, nats_server):
    """On a real server: the schedule is stored, fires into the inbox and is settled there."""
    await nats_bus.declare(stream_specs(2))
    host = Host(
        nats_bus, actor="supervisor", name="s", clock=SystemClock(), tracing=Tracing(), ack_wait_s=1.0
    )
    actor = SupervisorActor(host, SupervisorSettings(partitions=2, lease_ttl_s=1.0), MemorySnapshots())
    async with connect(nats_server.url, name="peer") as peer, anyio.create_task_group() as tasks:
        await tasks.start(actor.run)

        async def tell(kind: str, message: Message, message_id: str) -> None:
            await peer.publish(
                subjects.inbox("r1", kind),
                encode(message),
                message_id=message_id,
                headers={ID_HEADER: message_id},
            )

        model = subjects.model_pool("default")
        async with peer.consume(WORK, durable="model-default", subject=model, ack_wait_s=5.0) as calls:

            async def model_call() -> ModelCall:
                delivery = await anext(calls)
                await delivery.ack()
                return decode(delivery.payload, ModelCall)

            with anyio.fail_after(20.0):
                start = StartRun(identity=RunIdentity(run="r1"), agent=NO_TOOLS, task="t")
                await tell("command", start, "start")
                first = await model_call()
                failure = ModelFailed(
                    call=first.call, error_class="rate_limited", message="later", retry_after_s=0.5
                )
                await tell("reply", failure, "failure")
                again = await model_call()
                assert (again.turn, again.call == first.call) == (1, False)
                await tell("reply", model_reply(again, content="done"), "done")
                async with peer.follow("RUNS", subjects.commit("r1")) as commits:
                    while b'"run.finished"' not in (stored := await anext(commits)).payload:
                        pass
        assert decode(stored.payload, object)["facts"][-1]["type"] == RunFinished.__struct_config__.tag
        tasks.cancel_scope.cancel()
