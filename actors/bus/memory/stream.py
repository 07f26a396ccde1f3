"""A stream in memory: what JetStream does with a message on one node, without the disk.

A publish passes, in the server's order: the transform of its subject, the expected sequence, the ids of the
dedupe window (so the repeat of one's own stored message is refused when it expects a sequence, and
acknowledged as a duplicate when it does not). Then it is stored under the next sequence, older messages of
its subject give way if the stream keeps a limited number, and readers are told.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from temporality.actors.bus.memory.subject import matches, transform
from temporality.actors.bus.port import Published, Stored, WrongLastSequence
from temporality.actors.bus.settings import StreamSettings
from temporality.actors.clock import Clock
from temporality.protocol.streams import Retention

MESSAGE_ID = "Nats-Msg-Id"


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a stored message is to be published, and to which subject of the same stream."""

    at: datetime
    target: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored message with the monotonic time of its arrival."""

    sequence: int
    subject: str
    payload: bytes
    headers: Mapping[str, str]
    stored_at: float

    def stored(self, pending: int) -> Stored:
        """Return the message as the port shows it."""
        return Stored(self.subject, self.payload, self.sequence, dict(self.headers), pending)


class MemoryStream:
    """One stream; `watchers` are told of every message stored, `removers` of every message gone."""

    def __init__(self, settings: StreamSettings, clock: Clock) -> None:
        self.settings = settings
        self.watchers: list[Callable[[Entry], None]] = []
        self.removers: list[Callable[[int], None]] = []
        self._clock = clock
        self._entries: dict[int, Entry] = {}
        self._sequences: list[int] = []
        self._by_subject: dict[str, list[int]] = {}
        self._last_sequence = 0
        self._seen: dict[str, tuple[float, int]] = {}
        self._transform = self._transform_of(settings)

    @property
    def is_queue(self) -> bool:
        """Whether an acknowledgement removes a message."""
        return self.settings.spec.retention is Retention.WORK_QUEUE

    def configure(self, settings: StreamSettings) -> None:
        """Take other settings; the caller has checked that they lose nothing."""
        self.settings = settings
        self._transform = self._transform_of(settings)

    def covers(self, subject: str) -> bool:
        """Say whether a message published to `subject` is kept here."""
        return any(matches(pattern, subject) for pattern in self.settings.spec.subjects)

    def publish(
        self,
        subject: str,
        payload: bytes,
        headers: Mapping[str, str],
        *,
        message_id: str | None,
        expected_last: int | None = None,
        expected_subject: str | None = None,
    ) -> Published:
        """Store a message or recognise it; raises `WrongLastSequence`."""
        self._expire()
        name = self.settings.spec.name
        subject = self._transform(subject)
        if expected_last is not None:
            found = self.last_sequence(expected_subject or subject)
            if found != expected_last:
                raise WrongLastSequence(f"{subject}: wrong last sequence: {found}")
        if message_id is not None and message_id in self._seen:
            return Published(name, self._seen[message_id][1], duplicate=True)
        kept = dict(headers) if message_id is None else {**headers, MESSAGE_ID: message_id}
        sequence = self._store(subject, payload, kept)
        if message_id is not None:
            self._seen[message_id] = (self._clock.monotonic(), sequence)
        return Published(name, sequence)

    def schedule(
        self, subject: str, payload: bytes, headers: Mapping[str, str], schedule: Schedule
    ) -> Published:
        """Store a message that is published to the schedule's target at its time, and then removed."""
        self._expire()
        for sequence in tuple(self._by_subject.get(subject, ())):
            self.remove(sequence)
        sequence = self._store(subject, payload, headers)
        wait_s = (schedule.at - self._clock.now()).total_seconds()

        def fire() -> None:
            if sequence in self._entries:
                self.remove(sequence)
                self.publish(schedule.target, payload, headers, message_id=None)

        if wait_s <= 0:
            fire()
        else:
            self._clock.call_at(self._clock.monotonic() + wait_s, fire)
        return Published(self.settings.spec.name, sequence)

    def entry(self, sequence: int) -> Entry | None:
        """Return the message with that sequence, if it is still there."""
        return self._entries.get(sequence)

    def last(self, pattern: str) -> Entry | None:
        """Return the last message that matches."""
        self._expire()
        found = max(
            (sequences[-1] for subject, sequences in self._by_subject.items() if matches(pattern, subject)),
            default=0,
        )
        return self._entries.get(found)

    def last_sequence(self, pattern: str) -> int:
        """Return the sequence of the last message that matches, or 0."""
        entry = self.last(pattern)
        return 0 if entry is None else entry.sequence

    def after(self, pattern: str, sequence: int) -> Iterator[Entry]:
        """Iterate over the messages that match and lie above `sequence`, in order."""
        self._expire()
        exact = self._by_subject.get(pattern)
        sequences = self._sequences if exact is None else exact
        for found in sequences[bisect_right(sequences, sequence) :]:
            entry = self._entries.get(found)
            if entry is not None and matches(pattern, entry.subject):
                yield entry

    def count_after(self, pattern: str, sequence: int) -> int:
        """Count the messages that match and lie above `sequence`."""
        return sum(1 for _ in self.after(pattern, sequence))

    def purge(self, pattern: str, below: int | None, keep: int) -> None:
        """Remove messages that match: those under `below`, or all but the last `keep`."""
        found = [entry.sequence for entry in self.after(pattern, 0)]
        if below is not None:
            found = [sequence for sequence in found if sequence < below]
        elif keep:
            found = found[:-keep]
        for sequence in found:
            self.remove(sequence)

    def remove(self, sequence: int) -> None:
        """Remove one message, if it is there."""
        entry = self._entries.pop(sequence, None)
        if entry is None:
            return
        _discard(self._sequences, sequence)
        of_subject = self._by_subject[entry.subject]
        _discard(of_subject, sequence)
        if not of_subject:
            del self._by_subject[entry.subject]
        for told in tuple(self.removers):
            told(sequence)

    def _store(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> int:
        self._last_sequence += 1
        sequence = self._last_sequence
        entry = Entry(sequence, subject, bytes(payload), dict(headers), self._clock.monotonic())
        self._entries[sequence] = entry
        self._sequences.append(sequence)
        of_subject = self._by_subject.setdefault(subject, [])
        insort(of_subject, sequence)
        limit = self.settings.per_subject_max
        while limit and len(of_subject) > limit:
            self.remove(of_subject[0])
        for told in tuple(self.watchers):
            told(entry)
        return sequence

    def _expire(self) -> None:
        now = self._clock.monotonic()
        age_max_s = self.settings.age_max_s
        while age_max_s and self._sequences:
            if self._entries[self._sequences[0]].stored_at + age_max_s > now:
                break
            self.remove(self._sequences[0])
        while self._seen:
            oldest = next(iter(self._seen))
            if self._seen[oldest][0] + self.settings.dedupe_window_s > now:
                break
            del self._seen[oldest]

    @staticmethod
    def _transform_of(settings: StreamSettings) -> Callable[[str], str]:
        if settings.spec.transform is None:
            return lambda subject: subject
        return transform(*settings.spec.transform)


def _discard(sequences: list[int], sequence: int) -> None:
    index = bisect_right(sequences, sequence) - 1
    if index >= 0 and sequences[index] == sequence:
        del sequences[index]
