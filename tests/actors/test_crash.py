"""A crash point ends the process at once, at the armed count and nowhere else."""

import signal
import subprocess
import sys

import pytest

from temporality.actors.crash import CrashPoints

PROGRAM = """\
import atexit, sys
from temporality.actors.crash import CrashPoints
atexit.register(print, "exit handlers ran")
points = CrashPoints(sys.argv[1])
try:
    for number in range(1, 6):
        print(number, flush=True)
        points.reached("other.acked")
        points.reached("worker.acked")
        points.reached("worker.acked.later")
finally:
    print("finally ran", flush=True)
"""


def run(armed: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, armed], capture_output=True, text=True, check=False, timeout=50
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("armed", "count"), [("worker.acked", 1), ("worker.acked:1", 1), ("worker.acked:3", 3)]
)
def test_process_is_killed_the_armed_time_and_no_handler_runs(armed: str, count: int) -> None:
    assert run(armed) == (-signal.SIGKILL, [str(number) for number in range(1, count + 1)])


@pytest.mark.parametrize("armed", ["", "worker.acked:6", "worker", "worker.ack", "worker.published:1"])
def test_process_that_does_not_reach_the_armed_time_lives(armed: str) -> None:
    assert run(armed) == (0, ["1", "2", "3", "4", "5", "finally ran", "exit handlers ran"])


def test_nothing_is_armed_by_default() -> None:
    CrashPoints().reached("worker.acked")
