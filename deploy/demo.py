"""The demo: a real agent loop fails on a real tool, gets the matching knowledge, and goes on better.

Everything in it is real but the model, which answers by script over HTTP (or is a real one, if named): a
folder of its own, nats-server, one process an actor, a git repository, the public MCP server for git.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread
from rich.console import Console

from temporality.actors.bus.port import Bus
from temporality.actors.model.script_file import load_script
from temporality.actors.model.scripted_server import serve_scripted
from temporality.deploy.agent_file import load_agent
from temporality.deploy.assembly import open_bus
from temporality.deploy.config import Config, Environment
from temporality.deploy.knowledge import import_items
from temporality.deploy.local import deployment
from temporality.deploy.timeline_tree import render_timeline
from temporality.deploy.watching import RunResult, run_to_end
from temporality.protocol import subjects
from temporality.protocol.codec import decode
from temporality.protocol.errors import UserError, WorldError
from temporality.protocol.fact import PublicFact
from temporality.protocol.identity import RunIdentity, new_run_id
from temporality.protocol.run import StartRun
from temporality.protocol.streams import FACTS
from temporality.storage.knowledge_files import read_items
from temporality.storage.timeline_view import timeline_of

EXAMPLES = Path(__file__).parent / "examples"
FACTS_WAIT_S = 20.0
TIMELINE_WIDTH = 110

TASKS = {
    "failure": "What does the newest work in {repository} add? One sentence, please.",
    "priming": "Compare the feature branch of {repository} with its default branch, main.",
}
"""The task of each scenario: the first matches no knowledge at the start, the second does."""

ENDED = frozenset({"run.finished", "run.failed", "run.cancelled"})


@dataclass(frozen=True, slots=True)
class Demo:
    """What a demo leaves in its folder, and how its run ended."""

    result: RunResult
    folder: Path


async def run_demo(
    folder: Path, environment: Environment, console: Console, *, scenario: str, model: str | None
) -> Demo:
    """Run the demo in `folder` (emptied first), and leave requests, facts and timeline there.

    Raises `UserError` if git is missing, or if a real `model` is named without `OPENAI_API_KEY`.
    """
    repository = await to_thread.run_sync(prepare, folder)
    agent = load_agent(EXAMPLES / "git-helper.yaml")
    if model is not None:
        agent = msgspec.structs.replace(agent, model=msgspec.structs.replace(agent.model, name=model))
    task = TASKS[scenario].format(repository=repository)
    start = StartRun(identity=RunIdentity(run=new_run_id(), project="demo"), agent=agent, task=task)
    config = Config(data_dir=str(folder))
    async with _model(folder, environment, model) as variables:
        with console.status("starting …") as status:
            async with (
                deployment(
                    config,
                    Environment(variables),
                    progress=lambda words: status.update(f"{words} …"),
                ) as running,
                open_bus(running.url, name="temporality-demo") as bus,
            ):
                await import_items(bus, read_items(EXAMPLES / "knowledge" / "git.jsonl"), decided_by="demo")
                status.stop()
                console.print(f"task: {task}")
                result = await run_to_end(bus, start, console=console)
                await _leave(bus, folder, result.run)
    return Demo(result, folder)


def prepare(folder: Path) -> Path:
    """Empty the demo's folder and make its repository; return the repository's path."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return make_repository(folder / "repository")


def make_repository(path: Path) -> Path:
    """Make a small git repository whose default branch is `trunk`, with one commit on a feature branch."""
    if shutil.which("git") is None:
        raise UserError("git", "it is not installed", "install git, then run the demo again")

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=Vera", "-c", "user.email=vera@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=path, check=True, capture_output=True)

    path.mkdir()
    git("init", "--quiet")
    git("symbolic-ref", "HEAD", "refs/heads/trunk")
    settings = path / "retry.toml"
    settings.write_text("attempts = 3\n")
    git("add", "retry.toml")
    git("commit", "--quiet", "-m", "SHOP-1: retry three times")
    git("checkout", "--quiet", "-b", "feature")
    settings.write_text("attempts = 3\nbackoff_ms = 250\n")
    git("commit", "--quiet", "-a", "-m", "SHOP-2: wait between tries")
    return path.resolve()


@asynccontextmanager
async def _model(
    folder: Path, environment: Environment, model: str | None
) -> AsyncIterator[Mapping[str, str]]:
    """Give the environment in which the agent's model is found: the scripted one, or the caller's."""
    # The demo's MCP server is installed beside this very interpreter.
    path = os.pathsep.join([str(Path(sys.executable).parent), environment.variables.get("PATH", "")])
    variables = {**environment.variables, "PATH": path}
    if model is not None:
        if not variables.get("OPENAI_API_KEY"):
            raise UserError("OPENAI_API_KEY", "it is not set", "export it, and OPENAI_BASE_URL if needed")
        yield {"OPENAI_BASE_URL": "https://api.openai.com/v1", **variables}
        return
    script = load_script(EXAMPLES / "scripts" / "git-helper.yaml")
    record = folder / "model_requests.jsonl"
    async with anyio.create_task_group() as tasks:

        async def serve(*, task_status: anyio.abc.TaskStatus[int]) -> None:
            await serve_scripted(script, record=record, task_status=task_status)

        port = await tasks.start(serve)
        yield {
            **variables,
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "OPENAI_API_KEY": "scripted",
        }
        tasks.cancel_scope.cancel()


async def _leave(bus: Bus, folder: Path, run: str) -> None:
    """Write the run's public facts and its timeline, once telemetry has published the last of them."""
    facts: list[PublicFact] = []
    with anyio.move_on_after(FACTS_WAIT_S):
        async with bus.follow(FACTS, subjects.facts(run)) as messages:
            async for message in messages:
                facts.append(decode(message.payload, PublicFact))
                if facts[-1].kind in ENDED:
                    break
    if not facts or facts[-1].kind not in ENDED:
        log = folder / "logs" / "telemetry.log"
        raise WorldError(f"telemetry: it did not publish all facts of the run in time — read {log}")
    (folder / "facts.jsonl").write_bytes(b"".join(msgspec.json.encode(fact) + b"\n" for fact in facts))
    with (folder / "timeline.txt").open("w", encoding="utf-8") as file:
        Console(file=file, width=TIMELINE_WIDTH, highlight=False).print(render_timeline(timeline_of(facts)))
