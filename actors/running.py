"""The calls that this process is working on: a second delivery of one joins the first instead of running it.

A delivery may come again although we hold it: the process was paused longer than `ack_wait`, or a supervisor
stored the call a second time after a reconnect. Both want the same outcome, and it is being made. A delivery
that another process takes is not joined: what a repeat costs there is for its actor to bound.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

from temporality.protocol.errors import WorldError

T = TypeVar("T")


class JoinedRunFailed(WorldError):
    """The run that a repeated delivery had joined ended without a result; its queue brings it again."""


@dataclass
class _Run(Generic[T]):
    over: anyio.Event = field(default_factory=anyio.Event)
    results: list[T] = field(default_factory=list)


class Running(Generic[T]):
    """What is being worked on, by key."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run[T]] = {}

    async def join_or_run(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """Return what `work` returns, or what the work already going on under `key` returns.

        One who joined work that failed or was cancelled gets `JoinedRunFailed`.
        """
        run = self._runs.get(key)
        if run is not None:
            await run.over.wait()
            if not run.results:
                raise JoinedRunFailed(key)
            return run.results[0]
        run = self._runs[key] = _Run()
        try:
            result = await work()
            run.results.append(result)
            return result
        finally:
            del self._runs[key]
            run.over.set()
