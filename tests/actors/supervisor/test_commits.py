"""The commit protocol under attack: lost acknowledgements, races, crashes between a commit and its messages.

On the model each attack is ordered one by one; `test_commits_on_servers.py` repeats the worst on real ones.
"""

from collections import Counter
from contextlib import asynccontextmanager

import anyio
import msgspec
import pytest

from temporality.actors.bus.memory import MemoryBus
from temporality.actors.bus.port import BusError, PublishRefused, WrongLastSequence
from temporality.actors.supervisor.commits import (
    APPEND_TRIES_MAX,
    READ_TRIES_MAX,
    CommitsMissing,
    CommitUnconfirmed,
    append,
    is_last,
    publish_outgoing,
    read_commits,
)
from temporality.protocol import subjects
from temporality.protocol.run import (
    ModelReplied,
    RunCancelled,
    RunFailed,
    TimerFired,
    ToolReplied,
    commit_id,
    outgoing_id,
)
from temporality.protocol.streams import RUNS, WORK

from .chains import commit, stored
from .scenes import succeeded
from .system import KillAt, system

COMMITS = "temporality.run.*.commit"


# --- one commit, and an answer that gets lost -------------------------------------------------------------


async def test_lost_acknowledgement_of_a_commit_is_a_win_and_not_a_lost_race():
    async with system() as on:
        on.faults.lose_next_ack(COMMITS)
        assert await on.soon(append(on.bus, commit(), traceparent=None)) == 1
        assert await stored(on.bus) == ["mine"]


async def test_commit_repeated_by_a_reconnect_is_refused_and_still_won():
    async with system() as on:
        on.faults.lose_next_ack(COMMITS)
        sequences = []

        async def write():
            sequences.append(await append(on.bus, commit(), traceparent=None))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            await anyio.wait_all_tasks_blocked()
            on.bus.connection.cut()
            on.bus.connection.restore()
        assert sequences == [1]
        assert await stored(on.bus) == ["mine"]


async def test_lost_commit_is_published_again_and_stored_once():
    async with system() as on:
        for _ in range(2):
            on.faults.lose_next_message(COMMITS)
        assert await on.soon(append(on.bus, commit(), traceparent=None)) == 1
        assert await stored(on.bus) == ["mine"]


async def test_refusal_after_which_the_last_commit_is_anothers_is_a_lost_race():
    async with system() as on:
        assert await append(on.bus, commit(what="theirs"), traceparent=None) == 1
        assert await append(on.bus, commit(what="mine"), traceparent=None) is None
        assert await stored(on.bus) == ["theirs"]


async def test_own_commit_already_followed_by_anothers_is_left_to_the_reload_and_not_stored_twice():
    async with system() as on:
        on.faults.lose_next_ack(COMMITS)
        first = await on.soon(append(on.bus, commit(), traceparent=None))
        assert first == 1
        assert await append(on.bus, commit(2, 1, what="theirs"), traceparent=None) == 2
        assert await append(on.bus, commit(), traceparent=None) is None
        assert await stored(on.bus) == ["mine", "theirs"]


class Refusing(MemoryBus):
    """A bus whose leader refuses so many commits although nobody else writes: 10164 of a cluster."""

    refusals = 0

    async def publish(self, subject, payload, **options):
        """Refuse, or publish."""
        if self.refusals:
            self.refusals -= 1
            raise WrongLastSequence(f"{subject}: wrong last sequence (10164)")
        return await super().publish(subject, payload, **options)


async def test_refusal_without_a_newer_commit_is_tried_again():
    async with system() as on:
        bus = Refusing(on.server, "refusing")
        bus.refusals = APPEND_TRIES_MAX - 1
        assert await append(bus, commit(), traceparent=None) == 1
        assert await stored(on.bus) == ["mine"]


async def test_commit_that_is_refused_for_ever_without_a_winner_is_unconfirmed():
    async with system() as on:
        bus = Refusing(on.server, "refusing")
        bus.refusals = APPEND_TRIES_MAX
        with pytest.raises(CommitUnconfirmed):
            await append(bus, commit(), traceparent=None)


async def test_full_disk_is_no_race():
    async with system() as on:
        on.faults.disk_full = True
        with pytest.raises(PublishRefused):
            await append(on.bus, commit(), traceparent=None)


# --- ids ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"run": "r2"},
        {"number": 2},
        {"predecessor": 7},
        {"at": "2026-05-01T12:00:01+00:00"},
        {"facts": (RunCancelled(reason="other"),)},
        {"facts": (RunCancelled(reason="mine"), RunFailed(where="w", what="w"))},
        {"outgoing": ()},
        {"causes": ("m1", "m2")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_commits_of_different_content_have_different_ids(change):
    """Two owners of one message may hold different barrier results: the message's id is not enough."""
    mine = commit(outgoing=1)
    assert commit_id(msgspec.structs.replace(mine, **change)) != mine.id


def test_commits_of_equal_content_have_equal_ids_whatever_id_they_carry():
    assert commit(outgoing=2).id == commit(outgoing=2).id
    assert commit_id(msgspec.structs.replace(commit(), id="another")) == commit().id


async def test_what_a_commit_owes_has_an_id_a_message_and_is_stored_once_however_often_it_is_sent():
    async with system() as on:
        owing = commit(outgoing=3)
        for _ in range(3):
            await publish_outgoing(on.bus, owing, traceparent=None)
        messages = await on.bus.read(WORK, subjects.tool_pool("default"))
        assert [m.headers["Nats-Msg-Id"] for m in messages] == [outgoing_id(owing.id, n) for n in range(3)]


async def test_outage_while_sending_several_messages_is_the_worlds_and_keeps_none_of_the_others_back():
    async with system() as on:
        on.faults.lose_next_message(subjects.tool_pool("default"))
        with pytest.raises(BusError):
            await on.soon(publish_outgoing(on.bus, commit(outgoing=3), traceparent=None))
        assert len(await on.bus.read(WORK, subjects.tool_pool("default"))) == 2


# --- reading --------------------------------------------------------------------------------------------


class Lagging(MemoryBus):
    """A bus whose replica shows nothing for so many reads."""

    reads = 0

    async def read(self, stream, subject, *, after=0, count_max=256):
        """Show nothing, or read."""
        if stream == RUNS and self.reads:
            self.reads -= 1
            return []
        return await super().read(stream, subject, after=after, count_max=count_max)


async def test_replica_that_lags_is_waited_for():
    async with system() as on:
        bus = Lagging(on.server, "lagging")
        for number in (1, 2):
            await append(on.bus, commit(number, number - 1), traceparent=None)
        bus.reads = 3
        commits = await read_commits(bus, "r1", after=0, upto=2)
        assert [stored.sequence for stored in commits] == [1, 2]


async def test_replica_that_never_shows_what_its_leader_has_is_an_error_of_the_world():
    async with system() as on:
        bus = Lagging(on.server, "lagging")
        await append(on.bus, commit(), traceparent=None)
        bus.reads = READ_TRIES_MAX
        with pytest.raises(CommitsMissing):
            await read_commits(bus, "r1", after=0, upto=1)


async def test_commits_beyond_the_one_asked_for_are_not_read():
    async with system() as on:
        for number in (1, 2, 3):
            await append(on.bus, commit(number, number - 1), traceparent=None)
        commits = await read_commits(on.bus, "r1", after=1, upto=2)
        assert [stored.commit.number for stored in commits] == [2]


async def test_last_commit_is_told_from_an_earlier_one_and_from_none():
    async with system() as on:
        assert await is_last(on.bus, "r1", 0)
        await append(on.bus, commit(), traceparent=None)
        assert await is_last(on.bus, "r1", 1)
        assert not await is_last(on.bus, "r1", 0)


# --- whole supervisors ------------------------------------------------------------------------------------


async def test_supervisor_whose_acknowledgement_gets_lost_goes_on_with_its_run():
    """Without the comparison of ids the run would hang: its reply would look like a repeat."""
    async with system() as on:
        await on.supervisor()
        await on.start()
        on.faults.lose_next_ack(COMMITS)
        await on.model_asks(await on.model_call(), ("look", "{}"))
        on.faults.lose_next_ack(COMMITS)
        await on.finish(await on.tool_call(), succeeded())
        assert (await on.model_call()).turn == 2
        await on.served()
        assert [len(await on.of(kind)) for kind in (ModelReplied, ToolReplied)] == [1, 1]


async def test_of_two_writers_at_once_one_writes_and_the_other_steps_back_and_decides_again():
    """One holds one outcome, the other both and so the barrier's end: the same moment, two decisions."""
    async with system() as on, on.bus.subscribe(COMMITS) as attempts:
        await on.supervisor()
        await on.start()
        for turn in range(1, 6):
            await on.model_asks(await on.model_call(), ("look", f'{{"n": {turn}}}'), ("look", "{}"))
            one, two = await on.tool_call(), await on.tool_call()
            for supervisor in on.supervisors:
                await supervisor.stop()
            for _ in range(2):
                await on.supervisor(leases=False)
            on.faults.repeat_next_delivery("temporality.inbox.*.r1.outcome")
            await on.finish_together([(one, succeeded("one")), (two, succeeded("two"))])
            await on.served()
        assert len(attempts) >= len(await on.commits()) + 5, "somebody was refused in every turn"
        replies = Counter(fact.call for fact in await on.of(ToolReplied))
        assert len(replies) == 10
        assert set(replies.values()) == {1}
        assert (await on.model_call()).turn == 6
        await on.quiet(20.0)
        assert len(on.taken) == 6 + 10, "no call was made twice"


async def test_message_delivered_to_two_owners_at_once_counts_once():
    async with system() as on:
        await on.supervisor(leases=False)
        await on.supervisor(leases=False)
        await on.start()
        call = await on.model_call()
        on.faults.repeat_next_delivery("temporality.inbox.*.r1.reply")
        await on.model_asks(call, ("look", "{}"))
        tool = await on.tool_call()
        on.faults.repeat_next_delivery("temporality.inbox.*.r1.outcome")
        await on.finish(tool, succeeded())
        assert (await on.model_call()).turn == 2
        await on.quiet(20.0)
        assert [len(await on.of(kind)) for kind in (ModelReplied, ToolReplied)] == [1, 1]
        assert len(on.taken) == 3


@asynccontextmanager
async def killed_between_commit_and_its_messages():
    """A run whose owner died when its model's reply was committed and the two tool calls not yet sent."""
    async with system() as on:
        await on.supervisor()
        await on.start()
        call = await on.model_call()
        await on.served()
        await on.supervisors[0].stop()
        await on.supervisor(kill_at=KillAt("supervisor.committed"))
        await on.model_asks(call, ("look", "{}"), ("look", "{}"))
        await on.soon(on.supervisors[-1].ended.wait())
        assert len(await on.of(ModelReplied)) == 1
        assert on.server.stream(WORK).last(subjects.tool_pool("default")) is None
        yield on


async def test_commit_whose_messages_were_never_sent_is_made_good_by_the_next_owner():
    """Also though the message that leads to it proves a repeat: it commits nothing, and yet it sends."""
    async with killed_between_commit_and_its_messages() as on:
        before = len(await on.commits())
        await on.supervisor()
        one, two = await on.tool_call(), await on.tool_call()
        assert len(await on.commits()) == before
        await on.finish_together([(one, succeeded()), (two, succeeded())])
        assert (await on.model_call()).turn == 2
        await on.quiet(20.0)
        assert len(on.taken) == 4, "nothing is sent twice"


async def test_message_of_somebody_else_makes_good_what_the_last_commit_owes_before_it_is_decided():
    """So only the last commit can ever have messages that were not sent."""
    async with killed_between_commit_and_its_messages() as on:
        inbox = on.server.stream("INBOX")
        entry = inbox.last("temporality.inbox.*.r1.reply")
        assert entry is not None
        inbox.remove(entry.sequence)
        await on.supervisor()
        await on.tell("r1", "timer", TimerFired(name="of nothing"))
        assert {(await on.tool_call()).call, (await on.tool_call()).call} == {
            missing.call for missing in (await on.state()).open.missing()
        }


async def test_what_the_last_commits_owe_is_sent_again_when_the_connection_is_back():
    """Trap 18: a server that restarted may have forgotten what it took, and the ids of it."""
    async with system() as on:
        supervisor = await on.supervisor()
        await on.start()
        call = await on.model_call()
        await on.quiet(130.0)
        supervisor.bus.connection.cut()
        supervisor.bus.connection.restore()
        assert await on.model_call() == call
        supervisor.bus.connection.cut()
        supervisor.bus.connection.restore()
        await on.quiet(1.0)
        assert len(on.taken) == 2, "within the dedupe window it is the same message"
