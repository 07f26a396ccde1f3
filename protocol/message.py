"""The shape that every message shares.

A message on the wire is a JSON object whose `type` says what it is, with four headers beside it: its id,
the id of what caused it, the schema version, and the W3C trace context. Ids are derived from causes (A49),
so the same cause produces the same message, and a receiver recognises a repeat without a list of ids.

Fields that hold their default are left out: absent and default mean the same, so that a field added later
with a default is read from old bytes, and old code ignores fields that it doesn't know.
"""

import msgspec

SCHEMA_VERSION = 1
"""Raised only when old code must not read new bytes; additions with defaults don't raise it."""

ID_HEADER = "Temporality-Id"
CAUSE_HEADER = "Temporality-Cause-Id"
SCHEMA_HEADER = "Temporality-Schema"
TRACE_HEADER = "traceparent"


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value inside a message: immutable, tolerant of unknown fields, defaults left out on the wire."""


class Message(Record, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """A message or fact; each subclass sets `tag`, the name that stands in the field `type`."""


class Outgoing(Record, frozen=True, kw_only=True):
    """One message that a commit owes to the bus: sent after the commit, again after every reload.

    `body` is the encoded message. With `at` (RFC 3339) it is a timer: stored on `subject`, which must be a
    schedule subject, and published to `target` at that time.
    """

    subject: str
    body: msgspec.Raw
    at: str | None = None
    target: str | None = None

    def __post_init__(self) -> None:
        if (self.at is None) != (self.target is None):
            raise ValueError("a scheduled message needs both `at` and `target`")
