"""The table of A55, row by row, over a whole supervisor: each test is named after its row.

Rows about MCP servers, continuation and background operations stand where those are built.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.actors.supervisor.scenes import agent, failed, item, succeeded
from tests.actors.supervisor.system import System, system

from temporality.protocol.activation import (
    ActivationRequested,
    ActivationSkipped,
    BlockInjected,
    HintDelivered,
    HintsQueried,
)
from temporality.protocol.agent import ActivationSpec, ActivationTokens, AgentSpec, PolicySpec
from temporality.protocol.hint import Hint
from temporality.protocol.run import RunFinished, TurnClosed
from temporality.protocol.tool import ToolDenied, ToolFailed, ToolOutcome
from temporality.protocol.transcript import AssistantReply, CallReply, MemoryBlock


@asynccontextmanager
async def running(
    *knowledge: Hint, spec: AgentSpec | None = None, retriever: bool = True
) -> AsyncIterator[System]:
    """A started run beside the built-in triggers and a retriever that finds this knowledge everywhere."""
    async with system() as on:
        await on.triggers()
        if retriever:
            await on.retriever(*knowledge)
        await on.supervisor()
        await on.start(spec=spec)
        yield on
        assert await on.dead_letters() == []


async def turn(on: System, *outcomes: ToolOutcome, tool: str = "look") -> None:
    """Play a turn: as many calls of one tool as there are outcomes, up to the closed barrier."""
    call = await on.model_call()
    await on.model_asks(call, *((tool, f'{{"n": {call.turn}, "of": {n}}}') for n in range(len(outcomes))))
    calls = [await on.tool_call() for _ in outcomes]
    await on.finish_together(list(zip(calls, outcomes, strict=True)))
    await on.served()


async def skipped(on: System) -> list[str]:
    """Why activations were skipped."""
    return [fact.reason for fact in await on.of(ActivationSkipped)]


async def injected(on: System) -> list[tuple[str, ...]]:
    """The ids of every block."""
    return [fact.knowledge_ids for fact in await on.of(BlockInjected)]


async def test_ordinary_tool_error_leads_to_a_dynamic_look_up():
    async with running(item("k1")) as on:
        await turn(on, failed("no such table: users"))
        (requested,) = await on.of(ActivationRequested)
        assert (requested.trigger, requested.tool) == ("tool.failed", "look")
        assert await injected(on) == [("k1",)]
        assert isinstance((await on.transcript())[-1], MemoryBlock)


async def test_identical_error_again_is_suppressed():
    async with running(item("k1")) as on:
        for _ in range(3):
            await turn(on, failed("no such table: users"))
        assert len(await on.of(ActivationRequested)) == 1
        assert await skipped(on) == ["duplicate", "duplicate"]
        assert len(await injected(on)) == 1


async def test_another_error_of_the_same_tool_is_a_new_activation():
    async with running(item("k1")) as on:
        await turn(on, failed("no such table: users"))
        await turn(on, failed("disk quota exceeded"))
        assert len(await on.of(ActivationRequested)) == 2
        assert await skipped(on) == []


async def test_several_calls_in_one_reply_are_answered_contiguously_and_hints_come_after_them():
    async with running(item("k1")) as on:
        await turn(on, succeeded("one"), failed("no such table: users"), succeeded("three"))
        kinds = [type(message) for message in (await on.transcript())[-5:]]
        assert kinds == [AssistantReply, CallReply, CallReply, CallReply, MemoryBlock]
        reply, *replies = (await on.transcript())[-5:-1]
        assert [answer.call for answer in replies] == [call.call for call in reply.calls]


async def test_knowledge_already_injected_is_not_injected_again():
    async with running(item("k1")) as on:
        await turn(on, failed("no such table: users"))
        await turn(on, failed("disk quota exceeded"))
        assert await injected(on) == [("k1",)]
        assert (await on.state()).activation.issued_knowledge_ids == ("k1",)
        assert [fact.result for fact in await on.of(HintsQueried)] == ["success", "empty"]


async def test_knowledge_over_budget_is_not_in_issued_ids():
    spec = agent(activation=ActivationSpec(tokens=ActivationTokens(hint=40)))
    async with running(item("long", "word " * 100), spec=spec) as on:
        await turn(on, failed("no such table: users"))
        (delivered,) = await on.of(HintDelivered)
        assert (delivered.injected, delivered.reason) == (False, "budget")
        assert await injected(on) == []
        assert (await on.state()).activation.issued_knowledge_ids == ()


@pytest.mark.parametrize("how", ["absent", "silent"])
async def test_retriever_down_and_the_run_goes_on(how: str):
    async with running(item("k1"), retriever=how == "silent") as on:
        call = await on.model_call()
        if how == "silent":
            on.faults.lose_next_message("temporality.hints.find.*")
        await on.model_asks(call, ("look", "{}"))
        await on.finish(await on.tool_call(), failed("no such table: users"))
        await on.model_asks(await on.model_call(), content="done")
        await on.served()
        assert [fact.result for fact in await on.of(HintsQueried)] == [
            "error" if how == "absent" else "timeout"
        ]
        assert await on.of(BlockInjected) == []
        assert len(await on.of(RunFinished)) == 1


async def test_situation_whose_look_up_failed_stays_open():
    """A30: only a look-up that succeeded or found nothing uses a key up."""
    async with running(item("k1")) as on:
        on.faults.lose_next_message("temporality.hints.find.*")
        await turn(on, failed("no such table: users"))
        await turn(on, failed("no such table: users"))
        assert await skipped(on) == []
        assert await injected(on) == [("k1",)]


async def test_blocked_call_fires_nothing():
    spec = agent(policy=PolicySpec(deny=("git.*",)))
    async with running(item("k1"), spec=spec) as on:
        call = await on.model_call()
        await on.model_asks(call, ("git__log", "{}"))
        assert (await on.model_call()).turn == 2
        await on.served()
        assert (await on.of(ActivationRequested), await skipped(on)) == ([], [])
        (closed,) = await on.of(TurnClosed)
        assert "tool.failed" in closed.evaluators, "they were asked, and had nothing to say"


async def test_denied_approval_fires_nothing():
    async with running(item("k1")) as on:
        await turn(on, ToolDenied(reason="not today"))
        assert (await on.of(ActivationRequested), await skipped(on)) == ([], [])


async def test_uncertain_side_effect_and_the_block_permits_no_unconditional_repeat():
    async with running(item("k1", "Retry it.")) as on:
        lost = ToolFailed(error_class="connection_lost", content="reset by peer", effect="uncertain")
        await turn(on, lost)
        block = (await on.transcript())[-1]
        assert isinstance(block, MemoryBlock)
        assert "uncertain" in block.text
        assert "Nothing in these notes permits repeating" in block.text


async def test_block_of_a_certain_failure_says_nothing_of_uncertainty():
    async with running(item("k1")) as on:
        await turn(on, failed("no such table: users"))
        block = (await on.transcript())[-1]
        assert isinstance(block, MemoryBlock)
        assert "uncertain" not in block.text
