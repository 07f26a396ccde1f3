"""One run with every actor in a process of its own, started as a person starts it, and seen from all sides.

It takes seconds of starting processes, so it is made once; several files of tests look at it.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec
import yaml
from tests.otlp_receiver import ReceivedSpan, otlp_receiver

from temporality.actors.bus.port import Bus
from temporality.deploy.assembly import ACTORS
from temporality.deploy.watching import RunResult
from temporality.protocol import subjects
from temporality.protocol.codec import decode
from temporality.protocol.editorial import KnowledgeItem
from temporality.protocol.fact import PublicFact
from temporality.protocol.run import Commit, ToolReplied
from temporality.protocol.streams import RUNS

from .recorded import Recorded
from .stage import UNHURRIED_LEASE_S, Stage, stage

SERVER = Path(__file__).with_name("servers") / "warehouse.py"
TRACE_ID, CALLER_ID = "5a" * 16, "7b" * 8
TRACEPARENT = f"00-{TRACE_ID}-{CALLER_ID}-01"
"""What the program that starts the run tells of its own span."""

COMMAND_S = 50.0

KNOWLEDGE = (
    KnowledgeItem(
        knowledge_id="customs-code",
        proposition="Parcels to Norway need a customs code: look it up in the tariff table first.",
        tools=("dispatch",),
        example_errors=("order 7: carrier rejected parcel: customs code missing for destination Norway",),
    ),
    KnowledgeItem(
        knowledge_id="waybill",
        proposition="Пока накладная не подписана кладовщиком, перевозчик откажет: сначала подпиши накладную.",
        tools=("dispatch",),
    ),
)

SCRIPT = """
replies:
  - when: {turn: 1}
    reply:
      tool_calls:
        - {name: warehouse__hold, arguments: {gate: "GATE"}}
        - {name: warehouse__stock, arguments: {item: bolts}}
        - {name: warehouse__whoami, arguments: {}}
  - when: {turn: 2}
    reply: {tool_calls: [{name: warehouse__stock, arguments: {item: cogs}}]}
  - when: {turn: 3}
    reply:
      tool_calls:
        - {name: warehouse__dispatch, arguments: {order: "1"}}
        - {name: warehouse__stock, arguments: {item: bolts}}
  - when: {block: customs-code}
    reply: {content: I set the customs code.}
"""


@dataclass(frozen=True)
class WholeRun:
    """What the command said, the model's server received, the streams hold and the collector got."""

    result: RunResult
    requests: list[Recorded]
    commits: list[Commit]
    facts: list[PublicFact]
    spans: list[ReceivedSpan]


async def whole_run(folder: Path) -> WholeRun:
    """Make the run."""
    gate = folder / "gate"
    os.mkfifo(gate)
    with otlp_receiver() as received:
        async with stage(
            folder,
            SCRIPT.replace("GATE", str(gate)),
            processes=tuple(ACTORS),
            knowledge=KNOWLEDGE,
            lease_ttl_s=UNHURRIED_LEASE_S,
            otel=received.endpoint,
        ) as on:
            assert set(on.running.processes) == set(ACTORS)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(open_gate, on.bus, gate)
                result = await run_command(on, folder, received.endpoint)
            commits, facts = await on.commits(result.run), await on.public_facts(result.run)
        # The processes of the actors have ended, and have sent their last spans before.
        return WholeRun(result, on.recorded, commits, facts, received.spans)


async def open_gate(bus: Bus, gate: Path) -> None:
    """Let the held call answer once another call's reply is in a commit."""
    async with bus.follow(RUNS, subjects.all_commits()) as commits:
        async for stored in commits:
            if any(isinstance(fact, ToolReplied) for fact in decode(stored.payload, Commit).facts):
                await anyio.to_thread.run_sync(gate.write_text, "open")
                return


async def run_command(on: Stage, folder: Path, endpoint: str) -> RunResult:
    """Run the agent from a program that is traced itself."""
    agent = {
        "name": "tester",
        "instructions": "You work in a warehouse.",
        "model": msgspec.to_builtins(on.model),
        "tools": {"mcp": {"warehouse": {"command": sys.executable, "args": [str(SERVER), "stdio"]}}},
    }
    (folder / "agent.yaml").write_text(yaml.safe_dump(agent), encoding="utf-8")
    environment = {
        **os.environ,
        "TEMPORALITY_NATS_URL": on.running.url,
        "TEMPORALITY_OTEL_ENDPOINT": endpoint,
        "TRACEPARENT": TRACEPARENT,
    }
    task = "Write a short poem about autumn."
    command = [sys.executable, "-m", "temporality.deploy.cli", "run", "agent.yaml", task, "--json"]
    with anyio.fail_after(COMMAND_S):
        ran = await anyio.run_process(command, cwd=folder, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    return msgspec.json.decode(ran.stdout, type=RunResult)
