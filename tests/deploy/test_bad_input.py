"""Bad input gets one clear line and a non-zero exit status, and loses nothing: what runs goes on running.

Each test ends a command by a mistake or a failure of the outside, looks at the one line it leaves (where it
is, what is wrong, what to do), and then runs an agent on the same deployment.
"""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from temporality.protocol.errors import EXIT_CODES, UserError, WorldError

from . import command_line
from .command_line import Here, one_line, run, running
from .scene import Deployment, mcp_server, write_config

USER, WORLD = EXIT_CODES[UserError], EXIT_CODES[WorldError]


def goes_on(up: Deployment, here: Here) -> None:
    """Show that the deployment still works."""
    done = here("--config", up.config, "run", up.agent("plain"), "hello")
    assert (done.status, done.out) == (0, "An answer [with] brackets.\n")


# --- files that people write -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: a\nmodell: {name: m}", ["agent.yaml: $: unknown key 'modell'", "did you mean 'model'?"]),
        ("name: a\nmodel: {name: m, api_ky: k}", ["agent.yaml: $.model: unknown key 'api_ky'", "'api_key'"]),
        ("name: a\nmodel: {name: m}\nlimits: {turns_max: many}", ["$.limits.turns_max", "Expected `int`"]),
        ("name: a\nmodel: {name: m}\ntools: {mcp: {git: {}}}", ["$.tools.mcp", "command"]),
        ("name: a\nmodel: {name: [m", ["agent.yaml:", "is not valid YAML"]),
        ("", ["agent.yaml", "is a mapping"]),
        ("\x00", ["agent.yaml", "is not valid YAML"]),
    ],
)
def test_an_agents_file_that_is_wrong_is_refused_with_file_path_and_suggestion(
    up: Deployment, here: Here, tmp_path: Path, text: str, words: list[str]
) -> None:
    agent = tmp_path / "agent.yaml"
    agent.write_text(text, encoding="utf-8")
    said = here("--config", up.config, "run", agent, "hello").one_line(USER)
    assert all(word in said for word in words), said


def test_an_agents_file_that_is_missing_or_no_text_is_refused(
    up: Deployment, here: Here, tmp_path: Path
) -> None:
    said = here("--config", up.config, "run", tmp_path / "none.yaml", "hello").one_line(USER)
    assert "none.yaml: No such file" in said
    said = here("--config", up.config, "run", tmp_path, "hello").one_line(USER)
    assert "Is a directory" in said
    (tmp_path / "bytes.yaml").write_bytes(b"name: \xff\xfe")
    said = here("--config", up.config, "run", tmp_path / "bytes.yaml", "hello").one_line(USER)
    assert "is not UTF-8" in said


@pytest.mark.parametrize(
    "command", [("run", "a.yaml", "x"), ("up",), ("runs",), ("knowledge", "list"), ("doctor",)]
)
def test_a_configuration_that_is_wrong_stops_every_command_with_file_path_and_suggestion(
    here: Here, tmp_path: Path, command: tuple[str, ...]
) -> None:
    config = tmp_path / "t.yaml"
    config.write_text("data_dri: x")
    said = here("--config", config, *command).one_line(USER)
    assert said == f"{config}: $: unknown key 'data_dri' — did you mean 'data_dir'?"
    said = here("--config", tmp_path / "none.yaml", *command).one_line(USER)
    assert "none.yaml: No such file" in said
    assert list(tmp_path.iterdir()) == [config], "nothing was begun"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("rnu",), ["'rnu'", "Did you mean 'run'", "temporality --help"]),
        (("run",), ["'agent'", "temporality run --help"]),
        (("run", "--jsn", "a", "b"), ["--jsn", "--json"]),
        (("demo", "--scenario", "x"), ["'failure', 'priming'"]),
        (("runs", "--limit", "many"), ["--limit", "valid integer"]),
        (("scripted-model", "s.yaml", "--port", "99999"), ["--port", "65535"]),
        (("runs", "--limit", "0"), ["--limit", "1"]),
    ],
)
def test_a_mistyped_command_is_told_in_one_line_too(
    here: Here, command: tuple[str, ...], words: list[str]
) -> None:
    said = here(*command).one_line(2)
    assert all(word in said for word in words), said


# --- tools and models --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ({"command": "no-such-mcp-server"}, ["command not found: no-such-mcp-server", "install it"]),
        (mcp_server("dies"), ["exited with status 7", "cannot open the config file", "by hand"]),
        (mcp_server("hangs"), ["did not answer the handshake within 3 s", "by hand"]),
        (mcp_server("junk"), ["not JSON-RPC on stdout", "Listening on port 80"]),
        ({"url": "http://127.0.0.1:9/mcp"}, ["nothing answers there", "start the server"]),
        ({"command": "true", "env": {"K": "${NO_SUCH}"}}, ["NO_SUCH is not set", "set NO_SUCH"]),
    ],
)
def test_a_run_whose_mcp_server_can_not_be_had_fails_by_its_name(
    up: Deployment, here: Here, server: dict[str, object], words: list[str]
) -> None:
    done = here("--config", up.config, "run", up.agent("broken", tools={"mcp": {"raw": server}}), "hello")
    assert (done.status, done.out) == (1, "")
    said = one_line(done.err.splitlines()[-1])
    assert ": tools.mcp.raw" in said
    assert all(word in said for word in words), said
    goes_on(up, here)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("no key", ["HTTP 401: the key is wrong", "model.api_key"]),
        ("no model", ["HTTP 404", "model.name"]),
        ("garbage always", ["no chat completion", "model.base_url"]),
    ],
)
def test_a_run_whose_model_can_not_be_used_fails_and_says_what_to_check(
    up: Deployment, here: Here, task: str, words: list[str]
) -> None:
    done = here("--config", up.config, "run", up.agent("plain"), task)
    assert (done.status, done.out) == (1, "")
    said = one_line(done.err.splitlines()[-1])
    assert all(word in said for word in words), said
    goes_on(up, here)


@pytest.mark.parametrize(
    "task", ["too many", "down once", "garbage once", "unknown tool", "broken arguments"]
)
def test_a_run_survives_a_model_that_fails_for_a_while_or_calls_what_it_can_not(
    up: Deployment, here: Here, task: str
) -> None:
    agent = up.agent("with-tool", tools={"mcp": {"raw": mcp_server()}})
    done = here("--config", up.config, "run", agent, task)
    assert (done.status, done.out) == (0, "An answer [with] brackets.\n"), done


def test_a_model_whose_variable_is_not_set_is_named_by_the_variable(up: Deployment, here: Here) -> None:
    model = {"name": "m", "base_url": up.model_url, "api_key": "${NO_SUCH_KEY}"}
    done = here("--config", up.config, "run", up.agent("no-key", model=model), "hello")
    assert done.status == 1
    assert "NO_SUCH_KEY" in one_line(done.err.splitlines()[-1])


# --- the machine -------------------------------------------------------------------------------------


def test_a_second_up_on_one_data_folder_is_refused_and_the_first_goes_on(up: Deployment, here: Here) -> None:
    done = here("--config", up.config, "up")
    said = one_line(done.err.splitlines()[-1])
    assert done.status == USER
    assert "in use by server process" in said
    assert "another data_dir" in said
    goes_on(up, here)


def test_a_port_in_use_is_named_by_the_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = write_config(tmp_path, nats={"embedded": {"port": port}})
        done = run("--config", config, "up", cwd=tmp_path)
        assert done.status == USER
        said = one_line(done.err.splitlines()[-1])
        assert said.startswith(f"nats.embedded.port: port {port} is in use")
        (tmp_path / "script.yaml").write_text("replies: [{reply: {content: a}}]")
        said = run("scripted-model", "script.yaml", "--port", str(port), cwd=tmp_path).one_line(USER)
        assert said.startswith(f"127.0.0.1:{port}: ")
        assert "already in use" in said


def test_a_script_that_is_wrong_is_refused_with_file_and_line(here: Here, tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("replies:\n  - {when: {turm: 1}, reply: {content: a}}")
    assert "'turn'" in here("scripted-model", script).one_line(USER)
    assert "none.yaml" in here("scripted-model", tmp_path / "none.yaml").one_line(USER)


@pytest.mark.parametrize("folder", ["{file}", "{file}/below", "/proc/temporality"])
def test_a_data_folder_that_can_not_be_is_named(here: Here, tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("mine")
    config = write_config(tmp_path, data_dir=folder.format(file=tmp_path / "file"))
    done = here("--config", config, "up")
    assert done.status == USER
    said = one_line(done.err.splitlines()[-1])
    assert said.startswith(folder.format(file=tmp_path / "file"))
    assert "data_dir" in said
    assert (tmp_path / "file").read_text() == "mine"


def test_a_data_folder_without_room_is_told_and_what_was_started_is_stopped(tmp_path: Path) -> None:
    """The limit on the size of a file stands for a full disk: what is written beyond it fails."""
    write_config(tmp_path)
    limited = "ulimit -f 8; exec " + str(command_line.PROGRAM) + " up"
    with running(cwd=tmp_path, command=("bash", "-c", limited)) as process:
        process.wait_for("starting telemetry")
        left = command_line.descendants(process.process.pid)
        assert process.wait_end() == USER
    assert command_line.still_running(left) == []
    said = one_line(process.said.splitlines()[-1])
    assert ".db: can't be used" in said
    assert "temporality: " not in said, "what the actor said is not told with its beginning once more"
    assert "free space" in said


# --- NATS --------------------------------------------------------------------------------------------


@contextmanager
def old_nats(version: str) -> Iterator[int]:
    """Serve just enough of NATS to be asked for its version; give the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        info = {"server_id": "S", "version": version, "max_payload": 1_048_576, "headers": True}

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.sendall(b"INFO " + json.dumps(info).encode() + b"\r\n")
                    while data := client.recv(65_536):
                        client.sendall(b"PONG\r\n" * data.count(b"PING"))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield port
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(command_line.DEADLINE_S)


@pytest.mark.parametrize("command", [("facts",), ("up",)])
def test_a_nats_that_is_too_old_is_told_with_what_is_needed(tmp_path: Path, command: tuple[str, ...]) -> None:
    with old_nats("2.9.25") as port:
        config = write_config(tmp_path, nats={"url": f"nats://127.0.0.1:{port}"})
        done = run("--config", config, *command, cwd=tmp_path)
    assert done.status == USER
    said = one_line(done.err.splitlines()[-1])
    assert said.startswith("nats.url: it runs version 2.9.25, older than 2.12")
    assert "upgrade" in said


def test_a_nats_that_is_not_there_or_lets_nobody_in_is_told_without_the_password(
    up: Deployment, here: Here, tmp_path: Path
) -> None:
    url = (up.folder / "data" / "nats" / "url").read_text()
    address = url.rpartition("@")[2]
    config = write_config(tmp_path, nats={"url": f"nats://temporality:wr0ng@{address}"})
    for command in (("facts",), ("run", up.agent("plain"), "hello"), ("knowledge", "list")):
        said = here("--config", config, *command).one_line(WORLD)
        assert said.startswith("nats.url: ")
        assert address in said
        assert "uthorization" in said
        assert "wr0ng" not in said
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = free.getsockname()[1]
    config = write_config(tmp_path, nats={"url": f"nats://127.0.0.1:{nobody}"})
    said = here("--config", config, "facts").one_line(WORLD)
    assert said.startswith(f"nats.url: can't connect to NATS at 127.0.0.1:{nobody}")
    goes_on(up, here)
