"""Ids, and who a run belongs to.

A new run gets a random id from whoever starts it; every other id is a digest of its cause (A49), so that a
replay makes the same ids and consumers drop repeats by comparing them.
"""

import hashlib
import secrets

from temporality.protocol.message import Record
from temporality.protocol.subjects import subject_token

DIGEST_LENGTH = 24
"""Hex digits of a derived id: 96 bits, far beyond accidental collisions within a deployment's lifetime."""

DEFAULT_PROJECT = "default"


def derived_id(kind: str, *causes: str | int) -> str:
    """Return `<kind>-<digest>` of the causes; no two lists of causes collide by joining."""
    hasher = hashlib.sha256()
    for cause in causes:
        part = str(cause).encode()
        hasher.update(b"%d:" % len(part))
        hasher.update(part)
    return f"{kind}-{hasher.hexdigest()[:DIGEST_LENGTH]}"


def digest(content: bytes) -> str:
    """Return the SHA-256 of `content` in hex, the name of a blob and of anything compared by content."""
    return hashlib.sha256(content).hexdigest()


def new_run_id() -> str:
    """Return a random id for a new run; only a client at the system's edge calls this."""
    return f"run-{secrets.token_hex(8)}"


class RunIdentity(Record, frozen=True, kw_only=True):
    """Whom a run belongs to; scopes of knowledge and memory are predicates over these fields.

    `team` is a scope of knowledge; `team_root` is the root run of a delegation. Every id that becomes part of
    a subject is checked here, so an identity that exists can be published.
    """

    run: str
    project: str = DEFAULT_PROJECT
    team: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    task_id: str | None = None
    actor_id: str | None = None
    team_root: str | None = None

    def __post_init__(self) -> None:
        subject_token(self.run)
        subject_token(self.project)
