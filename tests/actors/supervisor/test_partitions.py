"""Who serves which partition: shares, newcomers, the dead, and what happens while the bus is away."""

from collections import Counter
from contextlib import asynccontextmanager

import anyio
import pytest

from temporality.actors.bus.memory import MemoryBus
from temporality.actors.bus.port import BusError
from temporality.actors.supervisor.partitions import Partitions

from .system import TTL_S, System, system

COUNT = 8


class Member:
    """One process that wants its share; `serving` is what it really serves."""

    def __init__(self, on: System, name: str) -> None:
        self.bus = MemoryBus(on.server, name)
        self.serving: set[int] = set()
        self.refuses: set[int] = set()
        self.scope = anyio.CancelScope()
        self.partitions = Partitions(
            on.host(self.bus, "supervisor", name), count=COUNT, ttl_s=TTL_S, serve=self.serve
        )

    async def serve(self, partition: int, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        if partition in self.refuses:
            raise BusError("no such consumer")
        self.serving.add(partition)
        task_status.started()
        try:
            await anyio.sleep_forever()
        finally:
            self.serving.discard(partition)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with self.scope:
            await self.partitions.run(task_status=task_status)


async def join(on: System, name: str) -> Member:
    """Start a member."""
    member = Member(on, name)
    await on.soon(on.tasks.start(member.run))
    return member


def served_by(*members: Member) -> Counter[int]:
    """How many members serve each partition; each serves exactly what it holds."""
    for member in members:
        assert member.serving == member.partitions.held
    return Counter(partition for member in members for partition in member.serving)


ONCE = Counter(range(COUNT))


@pytest.mark.parametrize(("members", "shares"), [(1, [8]), (2, [4, 4]), (3, [2, 3, 3]), (9, [0] + [1] * 8)])
async def test_every_partition_is_served_by_exactly_one_and_shares_are_fair(members: int, shares: list[int]):
    async with system() as on:
        joined = [await join(on, f"m{n}") for n in range(members)]
        await on.quiet(2 * TTL_S)
        assert served_by(*joined) == ONCE
        assert sorted(len(member.serving) for member in joined) == shares


async def test_newcomer_gets_its_share_and_nobody_serves_a_partition_twice_on_the_way():
    async with system() as on:
        first = await join(on, "m1")
        assert len(first.serving) == COUNT
        second = await join(on, "m2")
        for _ in range(30):
            await on.quiet(0.2)
            assert max(served_by(first, second).values()) == 1
        assert (len(first.serving), len(second.serving)) == (4, 4)


async def test_member_that_leaves_hands_over_at_once():
    async with system() as on:
        first, second = await join(on, "m1"), await join(on, "m2")
        await on.quiet(2 * TTL_S)
        first.scope.cancel()
        await on.quiet(0.6)
        assert first.serving == set()
        assert served_by(second) == ONCE


async def test_partitions_of_the_dead_are_taken_within_the_leases_life_and_a_second():
    async with system() as on:
        first, second = await join(on, "m1"), await join(on, "m2")
        await on.quiet(2 * TTL_S)
        first.bus.connection.close()
        first.scope.cancel()
        await on.quiet(TTL_S + 1.0)
        assert served_by(second) == ONCE


async def test_lease_lost_to_expiry_stops_serving():
    """A process that stood still for longer than its leases live finds that they are others' now."""
    async with system() as on:
        first = await join(on, "m1")
        first.bus.connection.cut()
        second = await join(on, "m2")
        await on.quiet(TTL_S + 1.0)
        assert served_by(second) == ONCE
        assert len(first.serving) == COUNT, "it can't know yet; expected sequences refuse its commits"
        first.bus.connection.restore()
        await on.quiet(2 * TTL_S)
        assert served_by(first, second) == ONCE
        assert len(first.serving) == 4


async def test_bus_that_is_away_for_a_moment_costs_no_partition():
    async with system() as on:
        member = await join(on, "m1")
        await on.quiet(1.0)
        member.bus.connection.cut()
        await on.quiet(2.5)
        member.bus.connection.restore()
        served = set(member.serving)
        await on.quiet(0.5)
        assert served == member.serving == set(range(COUNT))


async def test_bus_that_is_away_for_long_is_waited_for_and_everything_is_taken_again():
    async with system() as on:
        member = await join(on, "m1")
        member.bus.connection.cut()
        await on.quiet(60.0)
        member.bus.connection.restore()
        await on.quiet(2 * TTL_S)
        assert served_by(member) == ONCE


async def test_full_disk_is_waited_for():
    """Trap 14: without room leases can't be renewed either."""
    async with system() as on:
        member = await join(on, "m1")
        on.faults.disk_full = True
        await on.quiet(3 * TTL_S)
        on.faults.disk_full = False
        await on.quiet(2 * TTL_S)
        assert served_by(member) == ONCE


async def test_lease_of_a_partition_that_cannot_be_served_is_given_back():
    """Held and not served it would stop its runs for everybody."""
    async with system() as on:
        first = Member(on, "m1")
        first.refuses = {3}
        await on.soon(on.tasks.start(first.run))
        await on.quiet(TTL_S)
        assert 3 not in first.partitions.held
        assert first.serving == set(first.partitions.held)
        first.refuses = set()
        await on.quiet(TTL_S)
        assert served_by(first) == ONCE


@asynccontextmanager
async def cluster(count: int):
    """Some members in balance."""
    async with system() as on:
        members = [await join(on, f"m{n}") for n in range(count)]
        await on.quiet(2 * TTL_S)
        yield on, members


async def test_in_balance_nothing_moves():
    async with cluster(3) as (on, members):
        before = [set(member.serving) for member in members]
        for _ in range(10):
            await on.quiet(1.0)
            assert [member.serving for member in members] == before
