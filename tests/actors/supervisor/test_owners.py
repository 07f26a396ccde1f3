"""Supervisors come and go: drains, take-overs, and owners that fell behind without knowing it."""

from temporality.actors.supervisor.state import Status
from temporality.protocol.run import CancelRun, RunFinished, ToolReplied

from .scenes import succeeded
from .system import TTL_S, model_reply, system


async def test_stopped_supervisor_gives_back_messages_and_leases_at_once():
    """A drain: nobody waits for a lease or an `ack_wait` to run out."""
    async with system() as on:
        first = await on.supervisor()
        await on.start()
        call = await on.model_call()
        on.faults.delay_next("temporality.run.*.commit", 3.0)
        await on.model_asks(call, ("look", "{}"))
        await on.quiet()
        await on.tell("r1", "command", CancelRun(reason="waits behind it"))
        await on.quiet()
        assert await on.waiting() == 2
        stopped_at = on.clock.monotonic()
        await on.soon(first.stop())
        await on.supervisor()
        await on.served()
        assert on.clock.monotonic() - stopped_at < 1.0
        assert (await on.state()).status is Status.CANCELLED


async def test_killed_supervisors_runs_are_taken_over_within_the_leases_life_and_a_second():
    async with system() as on:
        first = await on.supervisor()
        await on.supervisor()
        await on.quiet(TTL_S)
        runs = [f"r{n}" for n in range(8)]
        for run in runs:
            await on.start(run)
        calls = [await on.model_call() for _ in runs]
        await on.served()
        first.kill()
        killed_at = on.clock.monotonic()
        for call in calls:
            await on.tell(call.run, "reply", model_reply(call, content="done"))
        await on.until(RunFinished, *runs)
        assert on.clock.monotonic() - killed_at <= TTL_S + 1.0


async def test_owner_that_fell_behind_takes_no_news_for_a_repeat():
    """Both believe to own the run; one has seen a turn that the other hasn't, and then the other is asked."""
    async with system() as on:
        await on.supervisor(leases=False)
        await on.start()
        call = await on.model_call()
        await on.served()
        await on.supervisor(leases=False)
        # The queue's members take turns, so the second supervisor gets the reply, the first the outcome.
        await on.model_asks(call, ("look", "{}"))
        tool = await on.tool_call()
        await on.served()
        await on.finish(tool, succeeded())
        assert (await on.model_call()).turn == 2
        assert len(await on.of(ToolReplied)) == 1


async def test_partition_that_was_away_brings_no_old_knowledge_back():
    async with system() as on:
        first = await on.supervisor()
        await on.start()
        call = await on.model_call()
        await on.served()
        first.bus.connection.cut()
        second = await on.supervisor()
        await on.model_asks(call, ("look", "{}"))
        tool = await on.tool_call()
        await on.served()
        first.bus.connection.restore()
        await on.soon(second.stop())
        await on.quiet(TTL_S)
        await on.finish(tool, succeeded())
        assert (await on.model_call()).turn == 2
