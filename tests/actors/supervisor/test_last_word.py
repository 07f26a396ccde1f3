"""A message that our own code can't handle ends its run with a word: nobody would ever go on with it."""

from temporality.protocol.run import RunFailed
from temporality.protocol.tool import ToolSucceeded

from .system import KillAt, model_reply, system


class Fault(KillAt):
    """Our own code fails at a point, once it is armed."""

    def __init__(self, point: str) -> None:
        super().__init__("")
        self.point = point
        self.armed = False

    def reached(self, point: str) -> None:
        """Fail."""
        if self.armed and point == self.point:
            raise ValueError("a fault of ours")


async def test_run_whose_message_is_given_up_is_failed_and_says_where() -> None:
    fault = Fault("supervisor.decided")
    async with system() as on:
        await on.supervisor(kill_at=fault)
        run = await on.start()
        call = await on.model_call()
        fault.armed = True
        await on.tell(run, "reply", model_reply(call, ("look", "{}")))
        await on.until(RunFailed, run, within_s=600.0)
        (failed,) = await on.of(RunFailed)
        assert failed.where == "supervisor"
        assert "ValueError at " in failed.what
        assert "a fault of ours" not in failed.what, "texts of errors may hold secrets"
        assert [reason for reason, _ in await on.dead_letters()] == ["failed"]


async def test_fault_that_passes_costs_the_run_nothing() -> None:
    fault = Fault("supervisor.decided")
    async with system() as on:
        await on.supervisor(kill_at=fault)
        run = await on.start()
        call = await on.model_call()
        fault.armed = True
        await on.tell(run, "reply", model_reply(call, ("look", "{}")))
        await on.quiet(3.0)
        fault.armed = False
        await on.finish(await on.tool_call(), ToolSucceeded(content="fine"))
        assert await on.of(RunFailed) == []
        assert (await on.model_call()).turn == 2
