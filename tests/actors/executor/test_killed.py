"""An executor as a process, killed or paused inside a call, and what the outside world saw.

The ledger is a file that the tools write to: what stands in it has happened, whatever the executor remembers.
Whoever takes over is an executor of the test's own process: nobody kills that one. How a whole run survives a
kill between any two steps of its executor is shown in `tests/integration/test_kills.py`.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from temporality.actors.bus.nats import NatsBus
from temporality.actors.executor.decider import INTERRUPTED
from temporality.deploy.embedded import EmbeddedServer
from temporality.protocol.agent import Effect, McpServerSpec
from temporality.protocol.tool import (
    OperationClaimed,
    OperationRecorded,
    ToolCall,
    ToolOutcome,
    ToolSucceeded,
)

from . import ledger_tools

HERE = Path(__file__).parent
REPOSITORY = Path(__file__).parents[3]
ACK_WAIT_S = 0.5
"""So long after a kill the call is delivered again; on a slow machine more often, which changes nothing."""
ACTED = ToolSucceeded(content="acted")


@dataclass
class Site:
    """A NATS server, the supervisor's desk, and a ledger; executors are started on it."""

    url: str
    desk: Any
    ledger: Path

    @asynccontextmanager
    async def process(self, name: str, crash: str = "") -> AsyncIterator["Executor"]:
        """Run an executor process until the context is left; it serves when the context is entered."""
        command = [
            sys.executable,
            str(HERE / "servers" / "executor_process.py"),
            self.url,
            name,
            str(ACK_WAIT_S),
            crash,
        ]
        environment = {**os.environ, "LEDGER": str(self.ledger), "PYTHONPATH": str(REPOSITORY)}
        async with await anyio.open_process(command, env=environment, stderr=None) as process:
            assert process.stdout is not None
            executor = Executor(process, BufferedByteReceiveStream(process.stdout))
            try:
                await executor.says("ready")
                yield executor
            finally:
                if process.returncode is None:
                    process.send_signal(signal.SIGCONT)
                    process.kill()

    def successor(self) -> AbstractAsyncContextManager[Any]:
        """Run an executor that takes over."""
        successor: AbstractAsyncContextManager[Any] = self.desk.executor("executor-b", ack_wait_s=ACK_WAIT_S)
        return successor

    def call_of(self, function: str, effect: Effect) -> ToolCall:
        """Return a call of one of the tools with a ledger."""
        return ToolCall(
            run="run-1",
            call="call-1",
            turn=1,
            tool=function,
            arguments={"ledger": str(self.ledger)},
            effect=effect,
            reply_bytes_max=4_096,
            python=f"{ledger_tools.__name__}:{function}",
        )

    def effects(self) -> list[str]:
        """Return the keys under which something was done, in order."""
        return self.ledger.read_text(encoding="utf-8").split() if self.ledger.exists() else []


@dataclass
class Executor:
    """A running executor process."""

    process: Process
    output: BufferedByteReceiveStream

    async def says(self, word: str) -> None:
        """Wait until the process says `word`."""
        with anyio.fail_after(30):
            while await self.output.receive_until(b"\n", 1_000) != word.encode():
                pass

    async def is_killed(self) -> None:
        """Wait until the process has died by SIGKILL."""
        with anyio.fail_after(30):
            assert await self.process.wait() == -signal.SIGKILL


@pytest.fixture
async def site(
    nats_server: EmbeddedServer, nats_bus: NatsBus, tmp_path: Path, open_desk: Any
) -> AsyncIterator[Site]:
    async with open_desk(nats_bus) as desk:
        yield Site(nats_server.url, desk, tmp_path / "ledger")


async def outcome_after_a_kill(site: Site, call: ToolCall, point: str) -> ToolOutcome:
    """Let one executor die at a point of a call, another take over, and return the only outcome told."""
    async with site.process("executor-a", f"executor.{point}") as doomed:
        await site.desk.send(call)
        await doomed.is_killed()
    async with site.successor():
        await site.desk.finished()
        await site.desk.queue_is_empty()
        told = [finished.outcome for finished in await site.desk.finished()]
    assert all(outcome == told[0] for outcome in told)
    outcome: ToolOutcome = told[0]
    return outcome


@pytest.mark.parametrize(
    ("point", "outcome", "effects"),
    [
        pytest.param("claimed", INTERRUPTED, [], id="before it acts"),
        pytest.param("executed", INTERRUPTED, ["call-1"], id="before it records"),
        pytest.param("recorded", ACTED, ["call-1"], id="before it tells"),
    ],
)
async def test_once_call_acts_at_most_once_and_doubt_is_told(
    site: Site, point: str, outcome: ToolOutcome, effects: list[str]
) -> None:
    assert await outcome_after_a_kill(site, site.call_of("act", "once"), point) == outcome
    assert site.effects() == effects


async def test_idempotent_call_succeeds_and_acts_under_one_key_only(site: Site) -> None:
    assert await outcome_after_a_kill(site, site.call_of("act", "idempotent"), "executed") == ACTED
    assert site.effects() == ["call-1", "call-1"]


async def test_call_without_an_effect_succeeds(site: Site) -> None:
    call = site.call_of("act", "none")
    assert await outcome_after_a_kill(site, call, "handled") == ACTED
    assert await site.desk.operation(call) == []


async def test_executor_killed_in_an_mcp_call_leaves_one_effect_and_a_told_doubt(site: Site) -> None:
    server = McpServerSpec(
        command=sys.executable, args=(str(HERE / "servers" / "plain.py"),), env={"LEDGER": "${LEDGER}"}
    )
    call = ToolCall(
        run="run-1",
        call="call-1",
        turn=1,
        tool="pay",
        arguments={},
        effect="once",
        reply_bytes_max=4_096,
        mcp=server,
        mcp_server="bank",
    )
    assert await outcome_after_a_kill(site, call, "executed") == INTERRUPTED
    tool, key, _ = site.effects()
    assert (tool, key) == ("pay", "call-1")


async def test_paused_owner_that_wakes_up_late_can_not_replace_what_was_told(site: Site) -> None:
    call = site.call_of("act_and_wait", "once")
    async with site.process("executor-a", "executor.recorded") as owner:
        await site.desk.send(call)
        await owner.says("acting")
        owner.process.send_signal(signal.SIGSTOP)
        async with site.successor():
            (finished,) = await site.desk.finished()
            assert finished.outcome == INTERRUPTED
        owner.process.send_signal(signal.SIGCONT)
        assert owner.process.stdin is not None
        await owner.process.stdin.send(b"go on\n")
        await owner.is_killed()  # where it believed to have recorded
    claimed, recorded = await site.desk.operation(call)
    assert isinstance(claimed, OperationClaimed)
    assert claimed.executor.startswith("executor-a/")
    assert isinstance(recorded, OperationRecorded)
    assert recorded.executor.startswith("executor-b/")
    assert recorded.outcome == INTERRUPTED
    assert site.effects() == ["call-1"]
