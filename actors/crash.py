"""Named points at which a process can be made to die, so that a test can kill it between any two steps.

An actor calls `reached` at each point between two effects on the outside. In production nothing is armed and
the call is one dictionary look-up; armed (`<point>` or `<point>:<n>` for the n-th time), the process ends as
by `kill -9`: no handler runs, nothing is flushed, nothing is given back.
"""

import os
import signal
from collections import Counter


class CrashPoints:
    """Count the points reached, and kill this process at the armed one."""

    def __init__(self, armed: str = "") -> None:
        point, _, count = armed.partition(":")
        self._point = point
        self._count = int(count or "1")
        self._reached: Counter[str] = Counter()

    def reached(self, point: str) -> None:
        """Say that `point` is reached; does not return if this is the armed point for the armed time."""
        if point != self._point:
            return
        self._reached[point] += 1
        if self._reached[point] == self._count:
            os.kill(os.getpid(), signal.SIGKILL)
