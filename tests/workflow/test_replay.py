"""The same messages give the same commits, byte for byte, and nothing is injected twice (A28)."""

import pytest
from tests.actors.supervisor.scenes import agent, failed, item, succeeded
from tests.actors.supervisor.system import KillAt, System, system

from temporality.protocol.agent import PrimingSpec
from temporality.protocol.model import ModelFailed
from temporality.protocol.run import CancelRun


async def play(on: System, *, supervisors: int = 1) -> list[bytes]:
    """Play a run with everything in it; return its commits' bytes."""
    await on.triggers()
    await on.retriever(item("k1"), item("k2", "Another way."))
    for _ in range(supervisors):
        await on.supervisor()
    await on.quiet(20.0 - on.clock.monotonic())  # all start at the same moment
    await on.start(spec=agent(priming=PrimingSpec(tokens=600)), task="how do I deploy?")
    call = await on.model_call()
    await on.tell(
        "r1",
        "reply",
        ModelFailed(call=call.call, error_class="rate_limited", message="later", retry_after_s=5.0),
    )
    await on.model_asks(await on.model_call(), ("look", "{}"), ("git__log", "{}"), ("nonsense", "{}"))
    one, two = await on.tool_call(), await on.tool_call()
    await on.finish(two, failed("no such table: users"))
    await on.quiet(1.0)
    await on.finish(one, succeeded("there"))
    await on.model_asks(await on.model_call(), ("look", '{"n": 2}'))
    await on.finish(await on.tool_call(), failed("disk quota exceeded"))
    await on.model_call()
    await on.tell("r1", "command", CancelRun(reason="enough"))
    await on.served()
    return [stored.payload for stored in await on.commits()]


async def test_two_fresh_systems_write_the_same_commits_byte_for_byte():
    async with system() as on:
        one = await play(on)
    async with system() as on:
        other = await play(on)
    assert len(one) == 9
    assert one == other


async def test_another_number_of_supervisors_writes_the_same_commits():
    """Who owns the run leaves no trace in it."""
    async with system() as on:
        one = await play(on)
    async with system() as on:
        other = await play(on, supervisors=3)
    assert one == other


@pytest.mark.parametrize("message", ["the start", "the reply", "an outcome"])
async def test_message_that_comes_again_later_writes_nothing(message: str):
    async with system() as on:
        await on.supervisor()
        await on.start()
        call = await on.model_call()
        await on.model_asks(call, ("look", "{}"))
        tool = await on.tool_call()
        await on.finish(tool, succeeded())
        await on.model_call()
        await on.served()
        before = [stored.payload for stored in await on.commits()]
        await on.quiet(130.0)  # past the server's own memory of ids
        if message == "the start":
            await on.start()
        elif message == "the reply":
            await on.model_asks(call, ("look", "{}"), ("look", "{}"))
        else:
            await on.finish(tool, failed("other than the first time"))
        await on.served()
        assert [stored.payload for stored in await on.commits()] == before
        assert await on.dead_letters() == []


async def test_barrier_that_is_decided_twice_is_written_once_and_injects_once():
    """Killed between decision and commit, the next owner asks evaluators and retriever again."""
    async with system() as on:
        await on.triggers()
        await on.retriever(item("k1"))
        await on.supervisor()
        await on.start()
        await on.model_asks(await on.model_call(), ("look", "{}"))
        tool = await on.tool_call()
        await on.served()
        await on.supervisors[0].stop()
        await on.supervisor(kill_at=KillAt("supervisor.decided"))
        await on.finish(tool, failed("no such table: users"))
        await on.soon(on.supervisors[-1].ended.wait())
        await on.supervisor()
        await on.model_call()
        await on.served()
        assert (await on.state()).activation.issued_knowledge_ids == ("k1",)
        names = [type(fact).__name__ for fact in await on.facts()]
        assert (names.count("BlockInjected"), names.count("TurnClosed")) == (1, 1)
