"""`doctor`: each thing that a run needs is looked at; what is wrong says what to do, the status tells."""

import json
import socket
from pathlib import Path

import pytest

from . import command_line
from .command_line import Done, Here
from .scene import Deployment, mcp_server, write_config

ALL_RIGHT = ("data folder", "NATS", "stream RUNS", "stream FACTS", "evaluators", "retriever")


def findings(done: Done) -> dict[str, tuple[bool, str, str]]:
    """Return what was found by name: whether it is right, what was found, what to do."""
    found: dict[str, tuple[bool, str, str]] = {}
    name = ""
    for line in done.out.splitlines():
        if line.startswith("    → "):
            right, what, _ = found[name]
            found[name] = (right, what, line.removeprefix("    → "))
        else:
            mark, rest = line[0], line[2:]
            name, _, what = rest.partition(": ")
            assert mark in "✓✗", line
            found[name] = (mark == "✓", what, "")
    return found


def held(done: Done) -> dict[str, tuple[bool, str, str]]:
    """Check what always holds: advice for all that is wrong, and the status that belongs to it."""
    found = findings(done)
    assert done.err == ""
    assert all(bool(do) != right for right, _, do in found.values()), found
    assert done.status == (0 if all(right for right, _, _ in found.values()) else 1)
    return found


def test_without_a_deployment_it_says_how_to_start_one(here: Here, tmp_path: Path) -> None:
    found = held(here("--config", write_config(tmp_path), "doctor"))
    assert found["data folder"][0]
    right, what, do = found["NATS"]
    assert not right
    assert "no deployment is running" in what
    assert do == "start one: temporality up"


def test_with_a_deployment_all_is_right(up: Deployment, here: Here) -> None:
    found = held(here("--config", up.config, "doctor"))
    assert set(found) >= {*ALL_RIGHT, "executor"}
    assert all(right for right, _, _ in found.values())
    assert "tool.failed" in found["evaluators"][1]
    assert "version 2." in found["NATS"][1]
    assert "@" not in found["NATS"][1]


def test_with_an_agent_its_tools_are_listed_and_its_model_is_reached(up: Deployment) -> None:
    agent = up.agent("healthy", tools={"mcp": {"raw": mcp_server()}})
    done = command_line.run("doctor", agent, cwd=up.folder, env={"MODEL_KEY": "scripted"})
    found = held(done)
    assert found["tools"][:2] == (True, "1 tools")
    assert found["model"][0]
    assert done.status == 0


def test_an_mcp_server_that_is_missing_is_named_with_what_to_do(up: Deployment, here: Here) -> None:
    agent = up.agent("no-server", tools={"mcp": {"raw": {"command": "no-such-server"}}})
    right, what, do = held(here("--config", up.config, "doctor", agent))["tools"]
    assert not right
    assert "tools.mcp.raw: command not found: no-such-server" in what
    assert "install it" in do


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        assert isinstance(port, int)
        return port


@pytest.mark.parametrize(
    ("change", "words", "advice"),
    [
        ({"api_key": "${NO_SUCH_KEY}"}, "NO_SUCH_KEY", "NO_SUCH_KEY"),
        ({"base_url": "http://127.0.0.1:{port}/v1", "api_key": "k"}, "", "base_url"),
    ],
)
def test_a_model_that_can_not_be_asked_is_told_by_its_setting(
    up: Deployment, here: Here, change: dict[str, str], words: str, advice: str
) -> None:
    model = {"name": "m", "base_url": up.model_url, **change}
    model["base_url"] = model["base_url"].format(port=free_port())
    found = held(here("--config", up.config, "doctor", up.agent("no-model", model=model)))
    right, what, do = found["model"]
    assert not right
    assert words in what
    assert advice in do
    assert found["tools"][0], "the rest is looked at all the same"


def test_the_model_is_looked_at_also_when_nats_is_not_there(here: Here, tmp_path: Path) -> None:
    config = write_config(tmp_path, nats={"url": f"nats://127.0.0.1:{free_port()}"})
    agent = tmp_path / "agent.yaml"
    agent.write_text(json.dumps({"name": "a", "model": {"name": "m", "api_key": "${NO_SUCH_KEY}"}}))
    found = held(here("--config", config, "doctor", agent))
    assert not found["NATS"][0]
    assert "can't connect" in found["NATS"][1]
    assert "start the server" in found["NATS"][2]
    assert not found["model"][0]


def test_a_data_folder_that_can_not_be_written_is_told(here: Here, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = write_config(tmp_path, data_dir=str(tmp_path / "file" / "data"))
    right, what, do = held(here("--config", config, "doctor"))["data folder"]
    assert not right
    assert str(tmp_path / "file") in what
    assert "data_dir" in do


def test_an_agents_file_that_is_wrong_is_one_line(up: Deployment, here: Here, tmp_path: Path) -> None:
    done = here("--config", up.config, "doctor", tmp_path / "none.yaml")
    assert "none.yaml" in done.one_line(2)
