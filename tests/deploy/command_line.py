"""The command line as a person has it: the installed program in processes of its own, or its entry point.

What is about processes, signals and pipes runs the program; what is about words and exit statuses calls the
entry point in this process, which is the same code without the second that a process costs.
"""

import os
import select
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(sysconfig.get_path("scripts")) / "temporality"
DEADLINE_S = 40.0
"""Whatever takes longer hangs."""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    def one_line(self, status: int) -> str:
        """Return the one line that a failed command says (where: what — what to do)."""
        assert self.status == status, self
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return one_line(lines[0])


Here = Callable[..., Done]
"""Runs a command in this process."""


def one_line(line: str) -> str:
    """Check the form of the line in which a failure is told, and return what it says."""
    assert line.startswith("temporality: "), line
    assert "Traceback" not in line
    said = line.removeprefix("temporality: ")
    where, colon, rest = said.partition(": ")
    what, dash, do = rest.partition(" — ")
    assert where, line
    assert colon, line
    assert what, line
    assert dash, line
    assert do, line
    return said


def until(holds: Callable[[], bool], complaint: str) -> None:
    """Look again and again at what follows a moment later, such as the timeline, until it is there."""
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, complaint


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment without settings of ours, in which programs installed beside ours are found."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("TEMPORALITY_")}
    kept.pop("OPENAI_API_KEY", None)
    kept["PATH"] = os.pathsep.join([str(PROGRAM.parent), kept.get("PATH", "")])
    return {**kept, **(extra or {})}


def run(
    *arguments: str | Path,
    cwd: Path,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
) -> Done:
    """Run the program to its end."""
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)],
        cwd=cwd,
        env=environment(env),
        input=stdin if stdin is not None else b"",
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


class Running:
    """The program while it runs; `said` is what has been read of both its outputs."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.said = ""

    def wait_for(self, words: str, *, after: int = 0) -> str:
        """Wait until the program has said `words` (behind the first `after` characters); return that line."""
        deadline = time.monotonic() + DEADLINE_S
        while words not in self.said[after:] or "\n" not in self.said[after:].partition(words)[2]:
            assert self._read(deadline), f"it never said {words!r}: {self.said}"
        return next(line for line in self.said[after:].splitlines() if words in line)

    def end(self, number: int = signal.SIGINT) -> int:
        """Send a signal, read what is said to the end, and return the exit status."""
        self.process.send_signal(number)
        return self.wait_end()

    def wait_end(self) -> int:
        """Read what is said to the end, and return the exit status."""
        deadline = time.monotonic() + DEADLINE_S
        while self._read(deadline):
            pass
        return self.process.wait(DEADLINE_S)

    def _read(self, deadline: float) -> bool:
        """Read what comes next; False at the end of the output."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"it hangs after: {self.said}"
        chunk = os.read(self.process.stdout.fileno(), 65_536)
        self.said += chunk.decode(errors="replace")
        return bool(chunk)


@contextmanager
def running(
    *arguments: str | Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    command: Sequence[str | Path] = (PROGRAM,),
) -> Iterator[Running]:
    """Run the program while the context is open; if it still runs then, it is killed."""
    with subprocess.Popen(
        [*map(str, command), *map(str, arguments)],
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


def descendants(pid: int) -> dict[int, str]:
    """Return the processes that descend from `pid`, with their command lines."""
    table = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    parents: dict[int, tuple[int, str]] = {}
    for row in table.splitlines():
        number, parent, *arguments = row.split(None, 2)
        parents[int(number)] = (int(parent), arguments[0] if arguments else "")
    found: dict[int, str] = {}
    grown = True
    while grown:
        fresh = {
            number: arguments
            for number, (parent, arguments) in parents.items()
            if (parent == pid or parent in found) and number not in found
        }
        found.update(fresh)
        grown = bool(fresh)
    return found


def still_running(pids: Iterable[int]) -> list[int]:
    """Return those of `pids` that run; a process that ended and waits for its parent doesn't."""
    chosen = ",".join(map(str, pids))
    listed = subprocess.run(
        ["ps", "-o", "pid=,stat=", "-p", chosen], capture_output=True, text=True, check=False
    ).stdout
    rows = [row.split() for row in listed.splitlines()]
    return [int(pid) for pid, state in rows if not state.startswith("Z")]


def wait_until_ended(pids: Collection[int]) -> None:
    """Wait until none of `pids` runs; each look is a process of its own, so this leaves others room."""
    deadline = time.monotonic() + DEADLINE_S
    while left := still_running(pids):
        assert time.monotonic() < deadline, f"still running: {left}"
