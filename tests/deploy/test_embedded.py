"""The embedded server: one at a time on a store, never left behind, and clear when it can't start."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from temporality.actors.bus.nats import connect
from temporality.actors.bus.nats.version import check_server_version
from temporality.deploy import embedded
from temporality.deploy.embedded import EmbeddedServer, embedded_server, running_server_url
from temporality.deploy.server_config import ServerUser
from temporality.protocol.errors import UserError
from temporality.protocol.streams import Retention, StreamSpec

DEADLINE_S = 30.0
KEPT = StreamSpec(name="KEPT", subjects=("kept.>",), retention=Retention.LIMITS, private=True)


async def enter(context):
    async with context:
        pass


async def test_what_was_stored_is_there_after_a_stop_a_start_and_a_kill(tmp_path):
    async with embedded_server(tmp_path) as server, connect(server.url, name="test") as bus:
        await bus.declare([KEPT])
        await bus.publish("kept.a", b"x", message_id="1")
    async with embedded_server(tmp_path) as server:
        port = server.port
        await server.restart()
        assert server.port == port
        async with connect(server.url, name="test") as bus:
            assert len(await bus.read("KEPT", "kept.a")) == 1


async def test_configuration_and_address_are_for_the_owner_only_and_the_address_goes_with_the_server(
    tmp_path,
):
    async with embedded_server(tmp_path) as server:
        for name in ("server.conf", "url", "pids", "lock"):
            assert stat.S_IMODE((server.folder / name).stat().st_mode) == 0o600
        assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
        assert running_server_url(tmp_path) == server.url
        config = json.loads((server.folder / "server.conf").read_text())
        assert config["listen"].startswith("127.0.0.1:")
        assert config["jetstream"]["sync_interval"] == "always"
    assert running_server_url(tmp_path) is None
    assert running_server_url(tmp_path / "never") is None


async def test_the_default_sync_is_the_servers_own(tmp_path):
    async with embedded_server(tmp_path, sync="default") as server:
        config = json.loads((server.folder / "server.conf").read_text())
    assert "sync_interval" not in config["jetstream"]


async def test_a_folder_that_a_server_uses_already_is_refused_with_its_process(tmp_path):
    async with embedded_server(tmp_path) as server:
        with pytest.raises(UserError, match=f"in use by server process {server.pid}"):
            await enter(embedded_server(tmp_path))
        assert running_server_url(tmp_path) == server.url
        async with connect(server.url, name="test") as bus:
            assert await bus.server_version() == server.version


async def test_a_port_that_is_taken_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} is in use"):
            await enter(embedded_server(tmp_path, port=port))
    await enter(embedded_server(tmp_path, port=port))


async def test_a_folder_that_can_not_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="choose another data_dir"):
        await enter(embedded_server(tmp_path / "file"))


@pytest.mark.parametrize(
    ("number", "what"),
    [("EROFS", "can't be written"), ("EACCES", "can't be written"), ("ENOSPC", "disk is full")],
)
def test_what_the_system_says_of_a_disk_becomes_one_line(tmp_path, number, what):
    error = embedded.disk_error(tmp_path, OSError(getattr(embedded.errno, number), "x"))
    assert what in str(error)
    assert str(tmp_path) in str(error)


async def test_too_little_room_is_told_before_the_server_starts(tmp_path):
    server = EmbeddedServer(tmp_path / "nats", sync="always", port=0, users=(), disk_free_bytes_min=1 << 62)
    with pytest.raises(UserError, match="disk is full"):
        await server.start()
    await server.stop()


async def test_a_setting_that_the_server_refuses_becomes_one_line(tmp_path):
    unusable = ServerUser("temporality", "twice")
    with pytest.raises(UserError, match=r"(?i)duplicate user"):
        await enter(embedded_server(tmp_path, users=[unusable, unusable]))


async def test_a_server_that_ends_by_itself_is_noticed_and_can_be_started_again(tmp_path):
    async with embedded_server(tmp_path) as server:
        port, first = server.port, server.pid
        os.kill(first, signal.SIGKILL)
        with anyio.fail_after(DEADLINE_S):
            assert await server.wait_exit() == -signal.SIGKILL
        await server.start()
        assert (server.port, server.pid != first) == (port, True)


PARENT = textwrap.dedent(
    """
    import sys, anyio
    from pathlib import Path
    from temporality.deploy.embedded import embedded_server
    async def main():
        async with embedded_server(Path(sys.argv[1])) as server:
            print(server.pid, flush=True)
            await anyio.Event().wait()
    anyio.run(main)
    """
)


async def test_the_folder_of_a_parent_killed_with_9_stays_locked_as_long_as_its_server_lives(tmp_path):
    orphan = await orphan_of(tmp_path, stopped=True)
    found = is_running(orphan), running_server_url(tmp_path) is not None
    os.kill(orphan, signal.SIGCONT)
    assert found == (True, True)
    with anyio.fail_after(DEADLINE_S):  # nobody ends it but the system
        while is_running(orphan) or running_server_url(tmp_path) is not None:
            await anyio.lowlevel.checkpoint()


async def test_the_folder_of_a_parent_killed_with_9_can_be_used_at_once(tmp_path):
    orphan = await orphan_of(tmp_path)
    async with embedded_server(tmp_path) as server:
        assert server.pid != orphan
        assert not is_running(orphan)


async def orphan_of(folder: Path, *, stopped: bool = False) -> int:
    """Return the server process of a parent that was killed; `stopped`, it can't even end yet."""
    command = [sys.executable, "-c", PARENT, str(folder)]
    async with await anyio.open_process(command, stderr=None) as parent:
        assert parent.stdout is not None
        with anyio.fail_after(DEADLINE_S):
            orphan = int(await parent.stdout.receive())
        if stopped:
            os.kill(orphan, signal.SIGSTOP)
        parent.kill()
    return orphan


async def test_leaving_by_an_error_or_a_cancel_stops_the_server(tmp_path):
    with anyio.CancelScope() as scope:
        async with embedded_server(tmp_path) as server:
            pid = server.pid
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert not is_running(pid)


@pytest.mark.parametrize("version", ["2.12.0", "2.15.1", "v2.12.3-beta.1", "3.0.0"])
def test_a_server_that_is_new_enough_is_accepted(version):
    check_server_version(version)


@pytest.mark.parametrize("version", ["2.11.9", "1.4.1", "", "weird"])
def test_a_server_that_is_too_old_or_unreadable_is_told_with_what_is_needed(version):
    with pytest.raises(UserError, match=r"nats\.url"):
        check_server_version(version, "nats.url")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return not state.stdout.strip().startswith("Z")
