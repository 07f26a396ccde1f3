"""The streams of the system: which subjects each keeps, and for how long.

A stream is declared here as data; a bus turns the declaration into a JetStream stream (or its in-memory
model). Nothing else in the system creates streams, so this page is the whole storage layout of a cluster.
Private streams hold what agents, tools and models said; FACTS and KNOWLEDGE are readable by any role.
"""

from enum import StrEnum

import msgspec

from temporality.protocol import subjects


class Retention(StrEnum):
    """How a stream lets go of messages: never by itself, or as soon as one consumer has acknowledged."""

    LIMITS = "limits"
    WORK_QUEUE = "workqueue"


class StreamSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Declare one stream: its subjects, retention and what the server does with messages on the way in.

    `transform` is `(source, destination)` of the server's subject transform; `schedules` allows messages
    with `Nats-Schedule`; `compressed` stores blocks with S2.
    """

    name: str
    subjects: tuple[str, ...]
    retention: Retention
    private: bool
    transform: tuple[str, str] | None = None
    schedules: bool = False
    compressed: bool = False


RUNS = "RUNS"
INBOX = "INBOX"
WORK = "WORK"
FACTS = "FACTS"
KNOWLEDGE = "KNOWLEDGE"
DEAD = "DEAD"

LEASES_BUCKET = "temporality_leases"
BLOBS_BUCKET = "temporality_blobs"


def stream_specs(partitions: int) -> tuple[StreamSpec, ...]:
    """Return every stream of a cluster whose inbox has `partitions` partitions (1 to 1,024)."""
    if not 1 <= partitions <= 1024:
        raise ValueError(f"partitions must be 1 to 1024, not {partitions}")
    return (
        StreamSpec(
            name=RUNS, subjects=subjects.RUNS_ALL, retention=Retention.LIMITS, private=True, compressed=True
        ),
        StreamSpec(
            name=INBOX,
            subjects=subjects.INBOX_ALL,
            retention=Retention.WORK_QUEUE,
            private=True,
            transform=subjects.inbox_transform(partitions),
            schedules=True,
        ),
        StreamSpec(
            name=WORK,
            subjects=subjects.WORK_ALL,
            retention=Retention.WORK_QUEUE,
            private=True,
            schedules=True,
        ),
        StreamSpec(
            name=FACTS,
            subjects=subjects.FACTS_ALL,
            retention=Retention.LIMITS,
            private=False,
            compressed=True,
        ),
        StreamSpec(
            name=KNOWLEDGE, subjects=subjects.KNOWLEDGE_ALL, retention=Retention.LIMITS, private=False
        ),
        StreamSpec(name=DEAD, subjects=subjects.DEAD_ALL, retention=Retention.LIMITS, private=True),
    )
