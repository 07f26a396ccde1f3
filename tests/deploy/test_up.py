"""`temporality up`: everything starts, everything stops, and nothing is left running however it ends."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from . import command_line
from .command_line import Here, Running, descendants, running, still_running, wait_until_ended
from .scene import Deployment, mcp_server, write_agent, write_config

KINDS = ("supervisor", "executor", "triggers", "retriever", "model", "telemetry")


@contextmanager
def deployment(folder: Path, model_url: str, *options: str) -> Iterator[Deployment]:
    """A deployment of the test's own, to be killed."""
    config = write_config(folder)
    with running("up", *options, cwd=folder, env={"MODEL_KEY": "scripted"}) as process:
        process.wait_for("run an agent")
        yield Deployment(folder, config, model_url, process)


def ends_of(process: Running) -> dict[int, str]:
    """Return the processes of a deployment by id; the last word of each command line names its part."""
    return descendants(process.process.pid)


def pid_of(process: Running, ending: str) -> int:
    (pid,) = [pid for pid, command in ends_of(process).items() if command.endswith(ending)]
    return pid


def answer(here: Here, up: Deployment, *, tools: bool = False) -> str:
    """Run an agent; return its answer."""
    settings = {"tools": {"mcp": {"raw": mcp_server()}}} if tools else {}
    agent = up.agent("with-tools" if tools else "plain", **settings)
    done = here("--config", up.config, "run", agent, "call the tool" if tools else "hello")
    assert done.status == 0, done
    return done.out


def test_up_says_what_it_starts_and_when_it_is_ready_without_its_password(up: Deployment) -> None:
    said = up.process.said.splitlines()
    assert said[0] == "starting nats-server"
    assert {f"starting {kind}" for kind in KINDS} <= set(said)
    assert {f"{kind} is ready" for kind in KINDS} <= set(said)
    (ready,) = [line for line in said if line.startswith("ready")]
    assert "nats://127.0.0.1:" in ready
    assert "@" not in ready
    assert said.index(ready) > max(said.index(f"{kind} is ready") for kind in KINDS)


def test_one_process_runs_all_actors_beside_nats_and_stops_at_ctrl_c(
    tmp_path: Path, model_url: str, here: Here
) -> None:
    with deployment(tmp_path, model_url, "--one-process") as up:
        assert len(ends_of(up.process)) == 1, "only nats-server"
        assert answer(here, up, tools=True)
        left = ends_of(up.process)
        assert any("misbehaving.py" in command for command in left.values())
        assert up.process.end() == 0
        assert up.process.said.endswith("stopped\n")
        assert still_running(left) == []


def test_what_dies_is_started_again_and_what_is_killed_with_9_goes_on_after_a_restart(
    tmp_path: Path, model_url: str, here: Here
) -> None:
    with deployment(tmp_path, model_url) as up:
        assert answer(here, up, tools=True)
        for part in ("supervisor", "executor"):
            heard = len(up.process.said)
            os.kill(pid_of(up.process, f"deploy.child {part}"), signal.SIGKILL)
            up.process.wait_for(f"{part} ended and is started again", after=heard)
            up.process.wait_for(f"{part} is ready", after=heard)
        heard = len(up.process.said)
        os.kill(pid_of(up.process, "server.conf"), signal.SIGKILL)
        up.process.wait_for("nats-server ended and is started again", after=heard)
        assert answer(here, up, tools=True), "runs go on with all parts new"

        agent = write_agent(tmp_path / "slow.yaml", model_url)
        with running("run", agent, "take your time", cwd=tmp_path) as client:
            run = client.wait_for("run-").strip()
            client.wait_for("empty: 0 found")  # the model has been asked, and takes a second
            left = ends_of(up.process)
            assert len(left) >= len(KINDS) + 2, left
            os.kill(up.process.process.pid, signal.SIGKILL)
            wait_until_ended([*left, up.process.process.pid])

    with deployment(tmp_path, model_url, "--one-process") as up:
        wait_for_end(here, up, run)
        timeline = here("--config", up.config, "timeline", run).out
        assert "answer: Done at last." in timeline
        left = ends_of(up.process)
        assert up.process.end() == 0
        assert still_running(left) == []


def wait_for_end(here: Here, up: Deployment, run: str) -> None:
    def ended() -> bool:
        done = here("--config", up.config, "timeline", "--json", run)
        return done.status == 0 and json.loads(done.out)["status"] == "finished"

    command_line.until(ended, f"{run} never went on")


def test_an_actor_by_itself_serves_until_sigterm_and_an_unknown_one_is_told_with_all_names(
    up: Deployment, here: Here
) -> None:
    with running("actor", "triggers", cwd=up.folder) as actor:
        actor.wait_for("ready")
        assert actor.end(signal.SIGTERM) == 0
        assert "Traceback" not in actor.said
    done = here("--config", up.config, "actor", "supervizor")
    said = done.one_line(2)
    assert said.startswith("actor supervizor: there is no such actor")
    assert all(kind in said for kind in KINDS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_up_that_is_stopped_while_it_starts_stops_all(tmp_path: Path, number: int) -> None:
    write_config(tmp_path)
    with running("up", cwd=tmp_path) as process:
        process.wait_for("starting telemetry")
        left = ends_of(process)
        assert process.end(number) == 0
        assert still_running(left) == []
