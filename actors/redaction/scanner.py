"""Run every rule over a text and put a mark in the place of each secret.

Rules overlap on purpose (`token=ghp_…` is a named value and a vendor's token): overlapping findings
become one that covers them all and bears the kind of the surest rule, which is the one listed first.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from temporality.actors.redaction.assignments import find_assigned
from temporality.actors.redaction.blocks import find_blocks
from temporality.actors.redaction.commands import find_in_commands
from temporality.actors.redaction.finding import MARK, MARK_OPENING, Finding, Source, mark, source
from temporality.actors.redaction.headers import find_headers
from temporality.actors.redaction.urls import find_url_passwords
from temporality.actors.redaction.vendors import find_vendor_tokens

FINDERS: tuple[Callable[[Source], Iterator[Finding]], ...] = (
    find_blocks,
    find_vendor_tokens,
    find_headers,
    find_url_passwords,
    find_in_commands,
    find_assigned,
)


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets; `found` says where they were in the text that was given."""

    text: str
    found: tuple[Finding, ...]


def redact(text: str) -> Redacted:
    """Replace every secret of `text` by a mark; redacting the result again changes nothing (A17, A47)."""
    found = find_secrets(text)
    return Redacted(replaced(text, found), found)


def find_secrets(text: str) -> tuple[Finding, ...]:
    """Return the secrets of `text`, ascending and not overlapping."""
    subject = source(text)
    everything = (
        (finding.start, finding.end, rank, finding.kind)
        for rank, finder in enumerate(FINDERS)
        for finding in finder(subject)
        if finding.end > finding.start
    )
    return tuple(_beside_marks(text, _merged(sorted(everything))))


def _beside_marks(text: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Keep findings off the marks that stand in the text already, so that redacting twice changes nothing."""
    if MARK_OPENING not in text:
        yield from findings
        return
    marks = [found.span() for found in MARK.finditer(text)]
    index = 0
    for finding in findings:
        start, end = finding.start, finding.end
        while index < len(marks) and marks[index][1] <= start:
            index += 1
        inside = index
        while inside < len(marks) and marks[inside][0] <= start:
            start = max(start, marks[inside][1])
            inside += 1
        while inside < len(marks) and marks[inside][0] < end:
            end = max(end, marks[inside][1])
            inside += 1
        if start < end:
            yield Finding(finding.kind, start, end)


def _merged(spans: Iterable[tuple[int, int, int, str]]) -> Iterator[Finding]:
    current: tuple[int, int, int, str] | None = None
    for start, end, rank, kind in spans:
        if current is None:
            current = (start, end, rank, kind)
        elif start < current[1]:
            surest = min((current[2], current[3]), (rank, kind))
            current = (current[0], max(end, current[1]), *surest)
        else:
            yield Finding(current[3], current[0], current[1])
            current = (start, end, rank, kind)
    if current is not None:
        yield Finding(current[3], current[0], current[1])


def replaced(text: str, found: Iterable[Finding], start: int = 0, end: int | None = None) -> str:
    """Return `text[start:end]` with a mark for each finding that begins in it."""
    stop = len(text) if end is None else end
    parts: list[str] = []
    position = start
    for finding in found:
        if finding.end <= start or finding.start >= stop:
            continue
        parts.append(text[position : max(position, finding.start)])
        parts.append(mark(finding.kind))
        position = finding.end
    parts.append(text[position:stop])
    return "".join(parts)
