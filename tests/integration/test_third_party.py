"""A third party's trigger takes part by being started: no line of the supervisor changes for it (A10)."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.streams.text import TextReceiveStream

from temporality.actors.bus.port import Bus
from temporality.actors.bus.service import service_infos
from temporality.actors.host import headers_of
from temporality.protocol import subjects
from temporality.protocol.activation import CandidateReceived
from temporality.protocol.codec import encode
from temporality.protocol.editorial import KnowledgeItem
from temporality.protocol.identity import new_run_id
from temporality.protocol.run import ToolCalled
from temporality.protocol.trigger import TRIGGER_SERVICE, Candidate, CandidateProposed

from .faulty_tools import GATED, TOOLS
from .stage import UNHURRIED_LEASE_S, data_of, roster_renewed, stage, until

START_S = 30.0

TRIGGER = """
from temporality.protocol.trigger import Candidate

class FewLeft:
    kind = "stock.few_left"

    def evaluate(self, turn):
        for call in turn.calls:
            if call.outcome == "succeeded" and "bolts left" in call.result:
                yield Candidate(call=call.call, situation="few bolts are left on the shelf")
"""

KNOWLEDGE = (
    KnowledgeItem(
        knowledge_id="order-bolts",
        proposition="When few bolts are left on the shelf, order them with form 12.",
    ),
    KnowledgeItem(knowledge_id="ladder", proposition="The ladder for the top shelf stands behind gate four."),
)


@asynccontextmanager
async def third_party(folder: Path, url: str) -> AsyncIterator[None]:
    """Run the trigger with the command that its author would use, in the folder where it lies."""
    (folder / "few_left.py").write_text(TRIGGER, encoding="utf-8")
    command = [sys.executable, "-m", "temporality.deploy.cli", "trigger", "run", "few_left:FewLeft"]
    environment = {**os.environ, "TEMPORALITY_NATS_URL": url}
    async with await anyio.open_process(command, env=environment, cwd=folder, stdout=None) as process:
        try:
            assert process.stderr is not None
            told = ""
            with anyio.fail_after(START_S):
                while "serving stock.few_left" not in told:
                    told += await TextReceiveStream(process.stderr).receive()
            yield
        finally:
            process.kill()


async def test_third_partys_trigger_takes_part_by_being_started(tmp_path: Path) -> None:
    """A10: it answers at the barrier, or proposes at any time and waits for the next one."""
    run, gate = new_run_id(), tmp_path / "gate"
    os.mkfifo(gate)
    async with (
        stage(tmp_path, GATED.format(gate=gate), knowledge=KNOWLEDGE, lease_ttl_s=UNHURRIED_LEASE_S) as on,
        third_party(tmp_path, on.running.url),
    ):
        await roster_renewed(on.bus)
        infos = await service_infos(on.bus, TRIGGER_SERVICE, timeout_s=0.5)
        (instance,) = [info.id for info in infos if info.metadata["kind"] == "stock.few_left"]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(propose_while_a_tool_runs, on.bus, run, instance, gate)
            result = await on.run(on.agent(tools={"python": TOOLS}), run=run)
        facts = await on.public_facts(run)
    assert result.status == "finished", result
    assert result.knowledge_ids == ("order-bolts", "ladder")
    _, answered, proposed = data_of(facts, "activation.requested")
    assert (answered["trigger"], answered["turn"], answered["tool"]) == ("stock.few_left", 1, "count")
    (received,) = [fact for fact in facts if fact.kind == "candidate.received"]
    assert (received.data["trigger"], received.data["candidate_id"]) == ("stock.few_left", f"{run}.proposed")
    assert (proposed["trigger"], proposed["turn"]) == ("stock.few_left", 2)
    assert proposed["source_id"] == f"{run}.proposed"
    (again,) = data_of(facts, "activation.skipped")
    assert (again["trigger"], again["turn"], again["reason"]) == ("stock.few_left", 3, "duplicate")
    assert [request.roles.count("block") for request in on.recorded] == [0, 1, 2, 2]


async def propose_while_a_tool_runs(bus: Bus, run: str, instance: str, gate: Path) -> None:
    """Publish a candidate in turn 2 while its tool waits, and open the tool's gate when it is received."""
    await until(bus, run, lambda fact: isinstance(fact, ToolCalled) and fact.turn == 2)
    proposal = CandidateProposed(
        instance=instance, candidate=Candidate(situation="looking for the ladder of the top shelf")
    )
    message_id = f"{run}.proposed"
    await bus.publish(
        subjects.inbox(run, "candidate"),
        encode(proposal),
        message_id=message_id,
        headers=headers_of(message_id, None, None),
    )
    await until(bus, run, lambda fact: isinstance(fact, CandidateReceived))
    await anyio.to_thread.run_sync(gate.write_text, "open")
