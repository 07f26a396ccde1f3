"""The messages of `probe redact`."""

import msgspec

from temporality.actors.redaction.scanner import redact


class RedactRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask what is redacted in `text`."""

    text: str


class FoundSecret(msgspec.Struct, frozen=True, kw_only=True):
    """One secret: its kind, and its half-open range of characters in the text that was sent."""

    kind: str
    start: int
    end: int


class RedactAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer with the redacted text and what was found in the text that was sent."""

    text: str
    found: tuple[FoundSecret, ...] = ()


def probe(request: RedactRequest) -> RedactAnswer:
    """Redact the text of `request` (A17, A47)."""
    redacted = redact(request.text)
    found = tuple(FoundSecret(kind=one.kind, start=one.start, end=one.end) for one in redacted.found)
    return RedactAnswer(text=redacted.text, found=found)
