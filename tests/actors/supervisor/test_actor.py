"""A whole supervisor from inbox to outgoing messages: what it serves, refuses, batches and gives back."""

from contextlib import asynccontextmanager

import pytest

from temporality.actors.bus.memory import MemoryBus
from temporality.actors.supervisor.state import ENDED, Status
from temporality.protocol import subjects
from temporality.protocol.agent import McpServerSpec, ToolsSpec
from temporality.protocol.codec import decode
from temporality.protocol.identity import RunIdentity
from temporality.protocol.model import ModelFailed
from temporality.protocol.run import (
    CancelRun,
    Commit,
    ModelCalled,
    ModelCallFailed,
    RunCancelled,
    RunFailed,
    RunFinished,
    StartRun,
    TimerFired,
    ToolReplied,
    ToolsFrozen,
    TurnClosed,
)
from temporality.protocol.streams import INBOX, WORK
from temporality.protocol.trigger import Candidate, CandidateProposed
from temporality.storage.snapshots import MemorySnapshots

from .scenes import agent, failed, item, succeeded
from .system import KillAt, system


@asynccontextmanager
async def at_two_tool_calls():
    """A run whose model has called two tools, and the two calls."""
    async with system() as on:
        await on.supervisor()
        await on.start()
        await on.model_asks(await on.model_call(), ("look", '{"n": 1}'), ("look", '{"n": 2}'))
        yield on, await on.tool_call(), await on.tool_call()


async def test_a_run_goes_from_its_start_to_its_answer():
    async with system() as on:
        await on.supervisor()
        await on.start()
        await on.model_asks(await on.model_call(), ("look", "{}"))
        await on.finish(await on.tool_call(), succeeded("there"))
        await on.model_asks(await on.model_call(), content="42")
        await on.served()
        assert await on.of(RunFinished) == [RunFinished(answer="42", turns=2)]
        assert await on.dead_letters() == []


# --- messages that can't be served ----------------------------------------------------------------------


async def test_message_for_an_unknown_run_is_a_dead_letter_and_creates_no_run():
    async with system() as on:
        await on.supervisor()
        await on.tell("nobody", "timer", TimerFired(name="x"))
        await on.served()
        assert [reason for reason, _ in await on.dead_letters()] == ["unknown_run"]
        assert await on.commits("nobody") == []
        await on.start("nobody")
        assert (await on.model_call()).run == "nobody", "the run may still be started"


async def test_wrong_kind_on_a_subject_is_a_dead_letter():
    """A sender that may propose candidates must not start runs."""
    async with system() as on:
        await on.supervisor()
        start = StartRun(identity=RunIdentity(run="r1"), agent=agent(), task="t")
        await on.tell("r1", "candidate", start)
        await on.served()
        assert await on.dead_letters() == [("wrong_kind", "StartRun is no message of kind candidate")]
        assert await on.commits() == []


async def test_malformed_message_is_a_dead_letter_and_others_are_served():
    async with system() as on:
        await on.supervisor()
        for rubbish in (b"", b"{", b'{"type":"run.start"}', b'{"type":"no.such"}', b"\xff\xfe"):
            await on.tell("r1", "command", rubbish)
        await on.start()
        assert (await on.model_call()).run == "r1"
        await on.served()
        assert [reason for reason, _ in await on.dead_letters()] == ["malformed"] * 5


async def test_candidate_of_an_evaluator_that_nobody_vouches_for_is_a_dead_letter():
    """A10: the kind comes from the roster, so an instance that is not there has none."""
    async with system() as on:
        await on.supervisor()
        await on.start()
        await on.model_call()
        await on.tell(
            "r1", "candidate", CandidateProposed(instance="ghost", candidate=Candidate(situation="s"))
        )
        await on.served()
        assert [reason for reason, _ in await on.dead_letters()] == ["unknown_trigger"]


async def test_start_that_no_commit_can_hold_is_a_dead_letter_and_blocks_nothing():
    async with system() as on:
        await on.supervisor()
        await on.start("r1", agent(tools=ToolsSpec(mcp={"big": McpServerSpec(command="x" * 900_000)})))
        await on.start("r2")
        assert (await on.model_call()).run == "r2"
        await on.served()
        assert [reason for reason, _ in await on.dead_letters()] == ["too_large"]


async def test_step_too_large_for_a_commit_fails_the_run_with_a_clear_word():
    async with system() as on:
        await on.supervisor()
        await on.start()
        call = await on.model_call()
        await on.model_asks(call, *[("look", f'{{"n": "{"x" * 20_000}"}}')] * 10)
        await on.served()
        (ended,) = await on.of(RunFailed)
        assert ended.where == "commit"
        assert "at most 262144" in ended.what
        assert on.server.stream(WORK).last(subjects.tool_pool("default")) is None, "no call is made"


# --- batches and barriers -------------------------------------------------------------------------------


async def test_replies_that_come_together_are_one_commit_and_a_turn_is_two():
    """0-architecture: the model's reply is one commit, the replies with the closed barrier the other."""
    async with at_two_tool_calls() as (on, one, two):
        before = len(await on.commits())
        await on.finish_together([(one, succeeded()), (two, failed("no such table"))])
        call = await on.model_call()
        assert len(await on.commits()) == before + 1
        await on.model_asks(call, ("look", "{}"))
        await on.tool_call()
        assert len(await on.commits()) == before + 2


async def test_each_later_batch_of_replies_is_one_commit_more():
    async with at_two_tool_calls() as (on, one, two):
        before = len(await on.commits())
        await on.finish(one, succeeded())
        await on.served()
        await on.finish(two, succeeded())
        await on.model_call()
        assert len(await on.commits()) == before + 2


async def test_barrier_facts_replies_and_next_call_become_true_in_one_commit():
    async with system() as on:
        await on.supervisor()
        await on.triggers()
        await on.retriever(item("k1"))
        await on.quiet(2.0)
        await on.start()
        await on.model_asks(await on.model_call(), ("look", "{}"))
        await on.finish(await on.tool_call(), failed("no such table: users"))
        await on.model_call()
        last = decode((await on.commits())[-1].payload, Commit)
        kinds = [type(fact).__name__ for fact in last.facts]
        assert kinds[0] == "ToolReplied"
        assert kinds[-2:] == ["TurnClosed", "ModelCalled"]
        assert {"ActivationRequested", "HintOffered", "HintDelivered", "BlockInjected"} < set(kinds)
        (closed,) = await on.of(TurnClosed)
        assert closed.evaluators == ("tool.failed",)


@pytest.mark.parametrize("point", ["supervisor.decided", "supervisor.committed", "supervisor.published"])
async def test_message_that_opens_the_barrier_is_acked_only_after_the_closing_commit(point: str):
    """Killed before, the message comes again and re-opens the barrier; after, it is a repeat."""
    async with at_two_tool_calls() as (on, one, two):
        await on.finish(one, succeeded())
        await on.served()
        await on.supervisors[0].stop()
        killer = KillAt(point)
        await on.supervisor(kill_at=killer)
        await on.finish(two, succeeded())
        await on.soon(on.supervisors[-1].ended.wait())
        assert await on.waiting() == 1, "the message is still in its queue"
        await on.supervisor()
        call = await on.model_call()
        assert call.turn == 2
        await on.served()
        assert len(await on.of(TurnClosed)) == 1
        assert len(await on.of(ToolReplied)) == 2
        assert [fact.call for fact in await on.of(ModelCalled)].count(call.call) == 1


async def test_no_unfinished_run_is_ever_without_something_to_wait_for():
    """The invariant of 0-architecture, looked at after every single step of a run with two turns."""
    async with system() as on:
        outstanding: set[str] = set()

        async def looked_at() -> None:
            await on.served()
            state = await on.state()
            if state.status in ENDED or state.status is Status.NEW:
                return
            waits = {missing.call for missing in state.open.missing()}
            if state.status is Status.AWAITING_MODEL:
                waits = {state.model_call or ""}
            timers = on.server.stream(INBOX).last("temporality.timer.r1.*")
            assert waits & outstanding or (state.status is Status.BACKING_OFF and timers is not None)

        await on.supervisor()
        await on.start()
        call = await on.model_call()
        outstanding.add(call.call)
        await looked_at()
        await on.tell(
            "r1",
            "reply",
            ModelFailed(call=call.call, error_class="rate_limited", message="later", retry_after_s=30.0),
        )
        await looked_at()
        call = await on.model_call(within_s=40.0)
        outstanding = {call.call}
        await looked_at()
        await on.model_asks(call, ("look", "{}"), ("look", "{}"))
        one, two = await on.tool_call(), await on.tool_call()
        outstanding = {one.call, two.call}
        await looked_at()
        for tool in (one, two):
            await on.finish(tool, succeeded())
            outstanding.discard(tool.call)
            if outstanding:
                await looked_at()
        call = await on.model_call()
        outstanding = {call.call}
        await looked_at()
        await on.model_asks(call, content="done")
        await looked_at()
        assert (await on.state()).status is Status.FINISHED


class Poisoned(MemoryBus):
    """A bus on which our own code fails whenever a commit holds a certain word."""

    async def publish(self, subject, payload, **options):
        """Fail, or publish."""
        if subject.endswith(".commit") and b"poison" in payload:
            raise ValueError("a fault of ours")
        return await super().publish(subject, payload, **options)


async def test_message_on_which_our_code_fails_takes_no_other_one_along():
    """After some tries together each is decided alone, and only the one that fails becomes a dead letter."""
    async with at_two_tool_calls() as (on, one, two):
        await on.supervisors[0].stop()
        await on.supervisor(bus_type=Poisoned)
        await on.finish_together([(one, succeeded("poison")), (two, succeeded("well"))])
        await on.quiet(300.0)
        await on.served()
        assert [fact.call for fact in await on.of(ToolReplied)] == [two.call]
        assert [reason for reason, _ in await on.dead_letters()] == ["failed"]


# --- timers, cancel, retries ------------------------------------------------------------------------------


async def test_model_that_asks_to_wait_ten_minutes_is_called_again_then_by_a_durable_timer():
    """The timer is the server's: the supervisor that set it may be gone."""
    async with system() as on:
        first = await on.supervisor()
        await on.start()
        call = await on.model_call()
        failure = ModelFailed(
            call=call.call, error_class="rate_limited", message="slow down", retry_after_s=600.0
        )
        await on.tell("r1", "reply", failure)
        await on.served()
        first.kill()
        await on.supervisor()
        asked_at = on.clock.monotonic()
        again = await on.model_call(within_s=700.0)
        assert 595.0 <= on.clock.monotonic() - asked_at <= 601.0
        assert (again.turn, again.transcript_digest) == (call.turn, call.transcript_digest)
        assert again.call != call.call
        assert len(await on.of(ModelCallFailed)) == 1


async def test_cancelled_run_ends_at_once_and_what_comes_after_changes_nothing():
    async with at_two_tool_calls() as (on, one, two):
        await on.finish(one, succeeded())
        await on.served()
        await on.tell("r1", "command", CancelRun(reason="enough"))
        await on.served()
        before = await on.facts()
        assert before[-1] == RunCancelled(reason="enough")
        await on.finish(two, succeeded())
        await on.tell("r1", "command", CancelRun(reason="again"))
        await on.served()
        assert await on.facts() == before
        assert await on.dead_letters() == []


@pytest.mark.parametrize("executor", ["absent", "silent"])
async def test_run_without_an_executor_that_answers_fails_with_what_to_do(executor: str):
    async with system(executor=executor != "absent") as on:
        await on.supervisor()
        if executor == "silent":
            on.faults.lose_next_message(subjects.ask("executor", "tools"))
        await on.start("r1", agent(tools=ToolsSpec(python=("m:f",))))
        await on.until(RunFailed, "r1")
        (ended,) = await on.of(RunFailed)
        words = "no tool executor is running" if executor == "absent" else "within 60 s"
        assert words in ended.what
        assert ended.do


async def test_run_waits_for_an_executor_that_starts_a_little_later():
    async with system(executor=False) as on:
        await on.supervisor()
        await on.start()
        await on.quiet(5.0)
        await on.executor()
        assert (await on.model_call()).turn == 1


async def test_frozen_tools_that_cannot_be_read_pause_the_run_instead_of_emptying_its_list():
    async with at_two_tool_calls() as (on, one, two):
        await on.supervisors[0].stop()
        (frozen,) = await on.of(ToolsFrozen)
        stored = on.server.stream("temporality_blobs")
        entry = stored.last(f"temporality_blobs.{frozen.digest}.0")
        assert entry is not None
        stored.remove(entry.sequence)
        await on.supervisor()
        before = await on.facts()
        await on.finish_together([(one, succeeded()), (two, succeeded())])
        await on.quiet(20.0)
        assert await on.facts() == before
        assert await on.dead_letters() == []
        await on.bus.publish(entry.subject, entry.payload, message_id="restored", headers=dict(entry.headers))
        assert (await on.model_call()).turn == 2


# --- snapshots that can't be written ----------------------------------------------------------------------


class FullDisk(MemorySnapshots):
    """Snapshots on a disk without room."""

    def __init__(self) -> None:
        super().__init__()
        self.full = True

    async def save(self, snapshots):
        """Refuse while full."""
        if self.full:
            raise OSError(28, "No space left on device")
        await super().save(snapshots)


async def test_snapshots_that_cannot_be_written_stop_no_run_and_are_written_later():
    async with system() as on:
        disk = FullDisk()
        await on.supervisor(snapshots=disk)
        await on.start()
        for turn in range(3):
            await on.model_asks(await on.model_call(), ("look", f'{{"n": {turn}}}'))
            await on.finish(await on.tool_call(), succeeded(f"reply {turn}"))
        call = await on.model_call()
        assert await disk.load("r1") is None
        disk.full = False
        await on.quiet(2.0)
        kept = await disk.load("r1")
        assert kept is not None
        assert kept.number == len(await on.commits())
        assert len(await disk.transcript("r1")) == len(await on.transcript()) == 8
        await on.model_asks(call, content="done")
        await on.served()
        assert len(await on.of(RunFinished)) == 1
