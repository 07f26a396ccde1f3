"""Snapshots of runs in SQLite: what a supervisor reads instead of a run's whole history.

A snapshot is a cache of a fold and may be lost; the commits in the stream are the truth. It is written only
in what is new: what a run started with once, its small state at each barrier, and the transcript's new
messages.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

SCHEMA = """
CREATE TABLE IF NOT EXISTS snapshots (
    run TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL,
    number INTEGER NOT NULL,
    origin BLOB NOT NULL,
    state BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS transcript (
    run TEXT NOT NULL,
    position INTEGER NOT NULL,
    message BLOB NOT NULL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run after its commit `number`, stored at stream sequence `sequence`.

    `origin` never changes during a run; `messages` are the transcript's messages from `position` on.
    """

    run: str
    sequence: int
    number: int
    origin: bytes
    state: bytes
    position: int = 0
    messages: tuple[bytes, ...] = ()


class Snapshots(Protocol):
    """Keep the latest snapshot of each run."""

    async def save(self, snapshots: Sequence[Snapshot]) -> None:
        """Keep the snapshots, all in one transaction; an older one than is kept changes nothing."""
        ...

    async def load(self, run: str) -> Snapshot | None:
        """Return the run's latest snapshot without its messages; `position` counts those kept."""
        ...

    async def transcript(self, run: str) -> tuple[bytes, ...]:
        """Return the run's messages as far as they are kept, in order."""
        ...
