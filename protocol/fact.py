"""Public facts: what anybody with read access may know of a run; redacted, bounded, projected from commits.

A fact's id is `<run>.<commit number>.<index>` (A49), so that publishing it again is a repeat. Text of items
is never in it: it names the item and its revision, and readers join the text by their own right.
"""

from typing import Any

from temporality.protocol.message import Message

EXCERPT_CHARACTERS_MAX = 300
"""Longest excerpt of a text in a fact: enough to recognise an error, too little to carry an output (A47)."""


class PublicFact(Message, frozen=True, kw_only=True, tag="fact"):
    """One public fact: its `kind` (`tool.replied`, `hint.delivery` …), its cause, and its fields in `data`.

    `at` is the wall time of the decision (RFC 3339, UTC). Delivered at least once; `number` and `index` say
    in which order the facts of a run became true, and after a failure they may be stored in another.
    """

    id: str
    kind: str
    project: str
    run: str
    number: int
    index: int
    at: str
    data: dict[str, Any]
    cause: str | None = None
    schema: int = 1
