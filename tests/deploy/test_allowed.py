"""Who may start a run names what an executor starts and calls; in a cluster only what is allowed by name."""

from pathlib import Path

import anyio
import msgspec
import pytest

from temporality.actors.bus.memory import MemoryServer
from temporality.actors.clock import VirtualClock
from temporality.deploy.assembly import ACTORS, host_of
from temporality.deploy.cli.actor import in_cluster
from temporality.deploy.config import Config, Environment, ExecutorSettings, NatsSettings
from temporality.protocol import subjects
from temporality.protocol.agent import McpServerSpec
from temporality.protocol.codec import decode, encode
from temporality.protocol.streams import stream_specs
from temporality.protocol.tool import ListTools, ToolsAnswer, ToolsListed, ToolsUnavailable

CLUSTER = Config(nats=NatsSettings(url="nats://elsewhere:4222"))
PYTHON = ListTools(python=("os:getcwd",))
COMMAND = ListTools(mcp={"shell": McpServerSpec(command="sh")})


async def answer_of(config: Config, question: ListTools) -> ToolsAnswer:
    """Return what an executor that is assembled by `config` says of an agent's tools."""
    server = MemoryServer(VirtualClock())
    environment = Environment({"PATH": "/usr/bin:/bin"})
    async with server.connect() as bus:
        await bus.declare(stream_specs(config.partitions))
        host = host_of("executor", bus, config, environment)
        async with ACTORS["executor"](host, config, environment) as actor, anyio.create_task_group() as tasks:
            await tasks.start(lambda task_status: actor.run(task_status=task_status))
            asked = await bus.request(subjects.ask("executor", "tools"), encode(question), timeout_s=10)
            tasks.cancel_scope.cancel()
    answer: ToolsAnswer = decode(asked.payload, ToolsAnswer)
    return answer


@pytest.mark.parametrize(
    ("question", "key"),
    [(PYTHON, "executor.allow_python"), (COMMAND, "executor.allow_commands")],
    ids=["python", "command"],
)
async def test_executor_of_a_cluster_runs_nothing_that_was_not_allowed_by_name(
    question: ListTools, key: str
) -> None:
    refused = await answer_of(in_cluster(CLUSTER), question)
    assert isinstance(refused, ToolsUnavailable)
    assert refused.do == f"add it to {key}"


async def test_executor_of_a_cluster_calls_what_was_allowed_by_name() -> None:
    allowed = msgspec.structs.replace(CLUSTER, executor=ExecutorSettings(allow_python=("os:getcwd",)))
    assert isinstance(await answer_of(in_cluster(allowed), PYTHON), ToolsListed)
    still = await answer_of(in_cluster(allowed), COMMAND)
    assert isinstance(still, ToolsUnavailable)


async def test_executor_of_one_s_own_calls_whatever_one_s_agent_names() -> None:
    assert in_cluster(Config()) == Config()
    assert isinstance(await answer_of(in_cluster(Config()), PYTHON), ToolsListed)


def test_readme_s_cluster_sets_both_lists() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert "TEMPORALITY_ALLOW_COMMANDS=" in readme
    assert "TEMPORALITY_ALLOW_PYTHON=" in readme
