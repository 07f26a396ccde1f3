"""The main job, through real parts: knowledge that a failure calls for is in the next request (A56).

A real nats-server, real MCP servers, and a scripted model that is asked over HTTP. What is asserted is what
the model's server received, byte for byte, and what anybody may read of it in the public facts.
"""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from temporality.actors.bus.port import Message
from temporality.deploy.watching import RunResult
from temporality.protocol import subjects
from temporality.protocol.activation import BlockInjected
from temporality.protocol.block import CLOSING, OPENING, PREAMBLE
from temporality.protocol.codec import decode
from temporality.protocol.fact import PublicFact
from temporality.protocol.hint import HintBatch
from temporality.protocol.run import Commit, ModelCalled, ModelReplied, ToolCalled, ToolReplied
from temporality.storage.timeline_view import chain

from .recorded import Recorded
from .stage import UNHURRIED_LEASE_S, Stage, listening, stage
from .whole_run import KNOWLEDGE, SERVER, WholeRun

START_S = 30.0

SCRIPT = """
replies:
  - when: {system: two errors, turn: 1}
    reply:
      tool_calls:
        - {name: warehouse__dispatch, arguments: {order: "1"}}
        - {name: warehouse__dispatch, arguments: {order: "2"}}
  - when: {system: two errors, turn: 2}
    reply: {tool_calls: [{name: warehouse__dispatch, arguments: {order: "3"}}]}
  - when: {system: five times, turn: {max: 5}}
    reply:
      tool_calls: [{name: warehouse__dispatch, arguments: {order: '1{{turn}}'}}]
  - when: {system: primed, turn: 1}
    reply: {tool_calls: [{name: warehouse__dispatch, arguments: {order: "1"}}]}
  - when: {system: russian, turn: 1}
    reply: {tool_calls: [{name: warehouse__dispatch, arguments: {order: "4"}}]}
  - reply: {content: done}
"""


@asynccontextmanager
async def http() -> AsyncIterator[dict[str, object]]:
    """The agent's server as a process that serves streamable HTTP."""
    async with await anyio.open_process(
        [sys.executable, str(SERVER), "http"], env=dict(os.environ), stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdout is not None
        with anyio.fail_after(START_S):
            port = int(await TextReceiveStream(server.stdout).receive())
        yield {"mcp": {"warehouse": {"url": f"http://127.0.0.1:{port}/mcp"}}}
        server.kill()


def of_kind(facts: list[PublicFact], kind: str) -> list[PublicFact]:
    return [fact for fact in facts if fact.kind == kind]


def assert_only_appended(requests: list[Recorded]) -> None:
    """A38: each request is the one before it with messages added at its end, and no byte changed."""
    assert all(later.extends(earlier) for earlier, later in pairwise(requests))


async def test_hint_for_a_failure_is_in_the_next_request_after_all_replies(seen: WholeRun) -> None:
    """A1, A2, A3, A26, A38, A45, A46, A56: with every actor in a process of its own."""
    assert (seen.result.status, seen.result.answer) == ("finished", "I set the customs code.")
    first, second, third = ["tool"] * 3, ["tool"], ["tool"] * 2
    assert [request.roles[2:] for request in seen.requests] == [
        [],
        ["assistant", *first],
        ["assistant", *first, "assistant", *second],
        ["assistant", *first, "assistant", *second, "assistant", *third, "block"],
    ]
    assert_only_appended(seen.requests)
    assert_replies_stand_in_call_order(seen.requests[-1])
    assert_replies_came_in_another_order(seen.commits)
    assert_block_holds(seen.requests[-1], "customs-code")
    assert_issued_with_the_request(seen.commits)
    assert_chain_is_read_from_one_id(seen.facts)


def assert_replies_stand_in_call_order(request: Recorded) -> None:
    """A1, A2: after each assistant message its calls are answered, one after another, in their order."""
    messages = request.messages
    for index, message in enumerate(messages):
        asked = [call["id"] for call in message.get("tool_calls", ())]
        answers = messages[index + 1 : index + 1 + len(asked)]
        assert [answer.get("tool_call_id") for answer in answers] == asked
    assert [m["content"] for m in messages if m["role"] == "tool"][:2] == ["open", "bolts: 12 in stock"]


def assert_replies_came_in_another_order(commits: list[Commit]) -> None:
    facts = [fact for commit in commits for fact in commit.facts]
    called = [fact.call for fact in facts if isinstance(fact, ToolCalled) and fact.turn == 1]
    replied = [fact.call for fact in facts if isinstance(fact, ToolReplied) and fact.turn == 1]
    assert replied[-1] == called[0], "the test shows nothing if the replies came in the order of the calls"


def assert_block_holds(request: Recorded, *knowledge_ids: str) -> None:
    (block,) = request.blocks
    first, second, *lines, last = block.splitlines()
    assert (first, second, last) == (OPENING, PREAMBLE, CLOSING)
    assert [line.partition("] ")[0] for line in lines] == [f"- [{item}" for item in knowledge_ids]
    propositions = {item.knowledge_id: item.proposition for item in KNOWLEDGE}
    for line, item in zip(lines, knowledge_ids, strict=True):
        assert propositions[item] in line


def assert_issued_with_the_request(commits: list[Commit]) -> None:
    """A26: block and request became true in one commit, and the request that was sent is that one."""
    (commit,) = [c for c in commits if any(isinstance(fact, BlockInjected) for fact in c.facts)]
    (called,) = [fact for fact in commit.facts if isinstance(fact, ModelCalled)]
    replies = [fact for c in commits for fact in c.facts if isinstance(fact, ModelReplied)]
    (reply,) = [fact for fact in replies if fact.call == called.call]
    assert reply.transcript_digest == called.transcript_digest
    assert [fact for c in commits for fact in c.facts if isinstance(fact, BlockInjected)] == [
        fact for fact in commit.facts if isinstance(fact, BlockInjected)
    ]


def assert_chain_is_read_from_one_id(facts: list[PublicFact]) -> None:
    """A45, A46: from the activation's id, the event that caused it and what came of it."""
    assert [f.data["result"] for f in of_kind(facts, "activation.settled")] == ["empty", "empty", "success"]
    (delivery,) = of_kind(facts, "hint.delivery")
    activation_id = delivery.data["activation_id"]
    links = {fact.kind: fact for fact in chain(facts, activation_id)}
    assert list(links) == [
        "tool.called",
        "tool.replied",
        "activation.requested",
        "hint.query",
        "hint.offered",
        "hint.delivery",
        "activation.settled",
        "block.injected",
    ]
    requested, settled = links["activation.requested"].data, links["activation.settled"].data
    assert links["tool.replied"].data["outcome"] == "failed"
    assert links["activation.requested"].cause == links["tool.called"].data["call"] == requested["source_id"]
    assert (requested["trigger"], requested["tool"], requested["mcp_server"]) == (
        "tool.failed",
        "dispatch",
        "warehouse",
    )
    assert (settled["found"], settled["selected"], settled["injected"]) == (1, 1, 1)
    assert settled["tokens"] == links["block.injected"].data["tokens"] > 0
    assert links["hint.offered"].data["knowledge_id"] == "customs-code"
    assert links["hint.delivery"].data["hint_id"] == links["hint.offered"].data["hint_id"]
    assert links["hint.delivery"].data["injected"] is True
    assert links["block.injected"].data["knowledge_ids"] == ["customs-code"]


Warehouse = tuple[Stage, dict[str, object]]


@pytest.fixture(scope="module")
async def warehouse(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Warehouse]:
    """One stage for several runs, whose agents use a server over HTTP."""
    folder = tmp_path_factory.mktemp("warehouse")
    async with (
        http() as tools,
        stage(folder, SCRIPT, knowledge=KNOWLEDGE, lease_ttl_s=UNHURRIED_LEASE_S) as on,
    ):
        yield on, tools


async def play(
    warehouse: Warehouse, scenario: str, task: str = "Write a short poem about autumn."
) -> tuple[RunResult, list[Recorded], list[PublicFact], list[HintBatch]]:
    """Run one scenario; return its requests, its public facts, and what the retriever was asked."""
    on, tools = warehouse
    seen = len(on.recorded)
    asked: list[Message] = []
    async with listening(on.bus, subjects.all_hints_find(), asked.append):
        result = await on.run(on.agent(tools=tools, instructions=scenario), task)
        facts = await on.public_facts(result.run)
    assert result.status == "finished", result
    return result, on.recorded[seen:], facts, [decode(question.payload, HintBatch) for question in asked]


async def test_different_errors_that_match_one_item_inject_it_once(warehouse: Warehouse) -> None:
    """A12, A29: two in one turn, one in the next."""
    result, requests, facts, asked = await play(warehouse, "two errors")
    assert [request.roles[2:] for request in requests] == [
        [],
        ["assistant", "tool", "tool", "block"],
        ["assistant", "tool", "tool", "block", "assistant", "tool"],
    ]
    assert_only_appended(requests)
    assert requests[-1].blocks[0].count("customs-code") == requests[-1].body.count(b"[customs-code]") == 1
    assert result.knowledge_ids == ("customs-code",)
    assert [f.data["turn"] for f in of_kind(facts, "activation.requested")[1:]] == [1, 1, 2]
    deliveries = of_kind(facts, "hint.delivery")
    assert [(f.data["injected"], f.data.get("reason")) for f in deliveries] == [
        (True, None),
        (False, "duplicate"),
    ]
    priming, first, second = asked
    assert [len(batch.requests) for batch in (priming, first, second)] == [1, 2, 1]
    assert first.context.issued_knowledge_ids == ()
    assert second.context.issued_knowledge_ids == ("customs-code",)


async def test_same_failure_five_times_is_looked_up_once(warehouse: Warehouse) -> None:
    """A30, A31"""
    _, requests, facts, asked = await play(warehouse, "five times")
    assert len(requests) == 6
    assert [request.roles.count("block") for request in requests] == [0, 1, 1, 1, 1, 1]
    assert_only_appended(requests)
    requested = [fact.data for fact in of_kind(facts, "activation.requested") if "tool" in fact.data]
    skipped = [fact.data for fact in of_kind(facts, "activation.skipped")]
    assert [data["turn"] for data in requested] == [1]
    assert [(data["turn"], data["reason"]) for data in skipped] == [(n, "duplicate") for n in range(2, 6)]
    assert {data["situation_key"] for data in skipped} == {requested[0]["situation_key"]}
    assert len(asked) == 2, "the priming and one look-up; a repeat asks nobody"


async def test_item_that_the_task_calls_for_is_in_the_first_request_and_not_again(
    warehouse: Warehouse,
) -> None:
    """A13a, A29: priming goes through the same barrier; what it issued, a failure does not issue again."""
    task = "Dispatch a parcel to Norway; last time the carrier said that the customs code was missing."
    result, requests, facts, _ = await play(warehouse, "primed", task)
    assert [request.roles[1:] for request in requests] == [
        ["block", "user"],
        ["block", "user", "assistant", "tool"],
    ]
    assert requests[0].messages[-1]["content"] == task
    assert_only_appended(requests)
    assert_block_holds(requests[0], "customs-code")
    assert result.knowledge_ids == ("customs-code",)
    triggers = [fact.data["trigger"] for fact in of_kind(facts, "activation.requested")]
    assert triggers == ["task.priming", "tool.failed"]


async def test_russian_failure_finds_the_item_by_other_word_forms(warehouse: Warehouse) -> None:
    """A19: and the letters reach the model's server as letters."""
    result, requests, _, _ = await play(warehouse, "russian", "Напиши короткое стихотворение об осени.")
    assert [request.roles[2:] for request in requests] == [[], ["assistant", "tool", "block"]]
    assert_block_holds(requests[1], "waybill")
    assert result.knowledge_ids == ("waybill",)
    assert "сначала подпиши накладную".encode() in requests[1].body
    assert json.loads(requests[1].body)["messages"] == requests[1].messages
