"""What to do with a tool call that may have been tried before.

A call with an effect leaves two messages on a subject of its own: a claim before anybody acts, and the
outcome afterwards. Whoever is handed the call reads how far it has come and looks the answer up in `NEXT`:

    UNCLAIMED    nobody has acted               -> CLAIM it, then look again
    MINE         this very attempt holds it     -> ACT
    HELD         claimed from another copy of   -> LEAVE it: that copy is still queued, so its holder,
                 the call                          or whoever gets it after him, will answer
    ABANDONED    claimed, and the claim's own   -> `idempotent`: ACT again, with the same key
                 copy came to us instead           `once`: INTERRUPT, the effect is uncertain
    RECORDED     the outcome is known           -> ANSWER it again

Why a redelivery means that the owner is gone: a live owner tells the queue every third of `ack_wait` that it
works on its copy, so the same copy comes to somebody else only after a whole `ack_wait` of silence. A paused
owner may still wake up and finish. It can't do harm: its record must follow the message that it last saw, and
the server refuses it when another outcome stands there already.

Copies are told apart because one call may be stored twice: a supervisor that reloads a run publishes again
what it owes, and the server forgets after two minutes that it had the message. Such a copy says nothing about
the owner of the first one.
"""

from dataclasses import dataclass
from enum import StrEnum

from temporality.protocol.agent import Effect
from temporality.protocol.tool import OperationClaimed, OperationRecord, OperationRecorded, ToolFailed

INTERRUPTED = ToolFailed(
    error_class="interrupted",
    content="The process that ran this call was lost before it could tell the outcome. "
    "The call may or may not have taken effect; it was not repeated.",
    effect="uncertain",
)
"""The outcome of a `once` call whose owner is gone: never repeated, and the doubt is told."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who claims: the process, the queue sequence of its copy of the call, and a nonce of the attempt.

    Written as `<process>/<copy>/<attempt>` into a claim, so that one who lost an acknowledgement can tell its
    own claim from any other.
    """

    process: str
    copy: int
    attempt: str

    def __str__(self) -> str:
        return f"{self.process}/{self.copy}/{self.attempt}"


def copy_of(claim: OperationClaimed) -> int | None:
    """Return the queue sequence of the copy that a claim was made from; None if it doesn't say."""
    parts = claim.executor.split("/")
    return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() else None


class Standing(StrEnum):
    """How far a call has come, seen from one attempt at it."""

    UNCLAIMED = "unclaimed"
    MINE = "mine"
    HELD = "held"
    ABANDONED = "abandoned"
    RECORDED = "recorded"


class Step(StrEnum):
    """What the attempt does next."""

    CLAIM = "claim"
    ACT = "act"
    LEAVE = "leave"
    INTERRUPT = "interrupt"
    ANSWER = "answer"


NEXT: dict[tuple[Standing, Effect], Step] = {
    (Standing.UNCLAIMED, "idempotent"): Step.CLAIM,
    (Standing.UNCLAIMED, "once"): Step.CLAIM,
    (Standing.MINE, "idempotent"): Step.ACT,
    (Standing.MINE, "once"): Step.ACT,
    (Standing.HELD, "idempotent"): Step.LEAVE,
    (Standing.HELD, "once"): Step.LEAVE,
    (Standing.ABANDONED, "idempotent"): Step.ACT,
    (Standing.ABANDONED, "once"): Step.INTERRUPT,
    (Standing.RECORDED, "idempotent"): Step.ANSWER,
    (Standing.RECORDED, "once"): Step.ANSWER,
}
"""The whole decision; calls without an effect (`none`) are not claimed and never get here."""


def standing(last: OperationRecord | None, me: Claimant, *, other_copy_is_queued: bool) -> Standing:
    """Say how far the call has come, given the last message on its subject.

    `other_copy_is_queued` tells whether the copy that a foreign claim was made from is still in the queue.
    """
    if last is None:
        return Standing.UNCLAIMED
    if isinstance(last, OperationRecorded):
        return Standing.RECORDED
    if last.executor == str(me):
        return Standing.MINE
    if copy_of(last) != me.copy and other_copy_is_queued:
        return Standing.HELD
    return Standing.ABANDONED
