"""The commit protocol on real servers whose answers a proxy loses.

One node refuses the repeat of one's own commit, a cluster of three acknowledges it (trap 11).
"""

import anyio
import pytest
from tests.actors.bus.proxy import lossy_proxy

from temporality.actors.bus.nats import connect
from temporality.actors.supervisor.commits import append
from temporality.protocol import subjects
from temporality.protocol.streams import RUNS, stream_specs

from .chains import commit, stored

DEADLINE_S = 45.0
"""Forming a cluster and changing a leader take seconds; twice that is a failure."""


@pytest.fixture
async def one_node(nats_bus, nats_server):
    await nats_bus.declare(stream_specs(2))
    return nats_bus, nats_server


@pytest.fixture
async def three_nodes(nats_cluster):
    urls = [server.url for server in nats_cluster]
    async with connect(urls, name="test", timeout_s=DEADLINE_S) as bus:
        await bus.declare(stream_specs(2), replicas=3)
        await bus.purge(RUNS, ">")
        yield bus, nats_cluster[0]


@pytest.fixture(params=["one_node", "three_nodes"])
def real(request):
    """A connection to real servers with this system's streams; and one of them to put a proxy before."""
    return request.getfixturevalue(request.param)


async def test_commit_whose_acknowledgement_a_real_server_loses_is_won(real):
    bus, server = real
    async with lossy_proxy(server.port) as proxy:
        # One address only: a cluster tells the client of its other servers, past the proxy.
        url = server.url.replace(f":{server.port}", f":{proxy.port}")
        async with connect(url, name="lossy") as lossy:
            proxy.swallow_answers()
            sequences = []

            async def write():
                sequences.append(await append(lossy, commit(), traceparent=None))

            with anyio.fail_after(DEADLINE_S):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(write)
                    await proxy.swallowed(b'"seq"')
                    proxy.cut()
    last = await bus.last(RUNS, subjects.commit("r1"))
    assert sequences == [last.sequence]
    assert await stored(bus) == ["mine"]


async def test_of_two_writers_at_a_real_server_exactly_one_wins_each_commit(real):
    bus, _ = real
    won: list[str] = []
    predecessor = 0

    async def write(who: str) -> None:
        sequence = await append(bus, commit(len(won) + 1, predecessor, what=who), traceparent=None)
        if sequence is not None:
            winners.append((who, sequence))

    with anyio.fail_after(DEADLINE_S):
        for _ in range(5):
            winners: list[tuple[str, int]] = []
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write, "a")
                tasks.start_soon(write, "b")
            assert len(winners) == 1
            won.append(winners[0][0])
            predecessor = winners[0][1]
    assert await stored(bus) == won
