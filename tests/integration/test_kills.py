"""kill -9 between any two steps of a run: it goes on, each effect once, nothing injected twice.

The process under attack is real and is killed at a named point, as `kill -9` does; an external ledger counts
what the tools did.
"""

from collections import Counter
from pathlib import Path

import pytest

from temporality.protocol.activation import BlockInjected
from temporality.protocol.editorial import KnowledgeItem
from temporality.protocol.run import ToolReplied
from temporality.protocol.tool import ToolFailed

from .stage import stage

TOOLS = [f"tests.integration.ledger_tools:{name}" for name in ("send", "charge", "look", "break_down")]

KNOWLEDGE = (
    KnowledgeItem(
        knowledge_id="vpn",
        proposition="The warehouse has no route to host without the VPN; connect the VPN first.",
        tools=("break_down",),
        error_classes=("ConnectionError",),
        example_errors=("{}\nno route to host 10.0.0.1 while calling the warehouse",),
    ),
)

SCRIPT = """
replies:
  - when: {{turn: 1}}
    reply: {{tool_calls: [{{name: break_down, arguments: {{n: 1}}}}]}}
  - when: {{turn: 2}}
    reply:
      tool_calls:
        - {{name: send, arguments: {{ledger: "{ledger}", n: 1}}}}
        - {{name: charge, arguments: {{ledger: "{ledger}", n: 1}}}}
        - {{name: look, arguments: {{ledger: "{ledger}", n: 1}}}}
  - when: {{turn: 3}}
    reply: {{tool_calls: [{{name: break_down, arguments: {{n: 2}}}}]}}
  - reply: {{content: done}}
"""


async def play(folder: Path, victim: str, crash: str) -> tuple[Counter[str], int]:
    """Run the script while the first process of `victim` dies at `crash`.

    Return the effects in the ledger, and how many calls were answered as uncertain.
    """
    ledger = folder / "ledger"
    async with stage(
        folder,
        SCRIPT.format(ledger=ledger),
        processes=(victim,),
        first_environment={victim: {"TEMPORALITY_CRASH_AT": crash}},
        knowledge=KNOWLEDGE,
    ) as on:
        result = await on.run(on.agent(tools={"python": TOOLS}, priming={"tokens": 0}))
        assert (result.status, result.answer) == ("finished", "done"), result
        assert on.running.processes[victim].restarts > 0, "the process was never killed"
        blocks = [f for f in await on.facts_of(result.run, BlockInjected) if isinstance(f, BlockInjected)]
        assert [block.knowledge_ids for block in blocks] == [("vpn",)]
        replies = [f for f in await on.facts_of(result.run, ToolReplied) if isinstance(f, ToolReplied)]
        assert len({fact.call for fact in replies}) == len(replies) == 5
        uncertain = [
            f for f in replies if isinstance(f.outcome, ToolFailed) and f.outcome.effect == "uncertain"
        ]
        in_last_request = str(on.requests[-1]).count("[vpn]")
        assert in_last_request == 1
        return Counter(ledger.read_text(encoding="utf-8").split("\n")[:-1]), len(uncertain)


@pytest.mark.parametrize("point", ["decided", "committed", "published", "acked"])
async def test_supervisor_killed_between_any_two_steps(tmp_path: Path, point: str) -> None:
    """Commit, points 1 to 5: the third time, so that the run is under way."""
    effects, uncertain = await play(tmp_path, "supervisor", f"supervisor.{point}:3")
    assert uncertain == 0
    assert effects["send 1"] == 1
    assert sum(effects.values()) == 3, effects


@pytest.mark.parametrize(
    "point", ["received", "claimed", "executed", "recorded", "handled", "published", "acked"]
)
async def test_executor_killed_between_any_two_steps(tmp_path: Path, point: str) -> None:
    """A `once` tool acts at most once and says when nobody knows; an `idempotent` one keeps its key."""
    effects, uncertain = await play(tmp_path, "executor", f"executor.{point}:2")
    assert effects["send 1"] <= 1
    charges = {line.rpartition(" ")[2] for line in effects if line.startswith("charge")}
    assert len(charges) == 1, "every attempt of one call has the same idempotency key"
    assert effects["send 1"] == 1 or uncertain, "an effect that is missing was not said to be uncertain"
