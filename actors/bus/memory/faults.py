"""What can go wrong on the way to a server, to be ordered one by one in a test.

Each fault waits for the next message whose subject matches its filter and then is used up, so a test says
exactly where the world breaks; `disk_full` stays until it is taken back.
"""

from dataclasses import dataclass, field

from temporality.actors.bus.memory.subject import matches


@dataclass
class Faults:
    """The faults waiting to happen on one `MemoryServer`."""

    disk_full: bool = False
    """While true every publish is refused, as by a server whose store has no room."""
    _lost_acks: list[str] = field(default_factory=list)
    _lost_messages: list[str] = field(default_factory=list)
    _delays: list[tuple[str, float]] = field(default_factory=list)
    _repeats: list[str] = field(default_factory=list)

    def lose_next_ack(self, subject_filter: str) -> None:
        """Store the next publish that matches, but let its acknowledgement get lost."""
        self._lost_acks.append(subject_filter)

    def lose_next_message(self, subject_filter: str) -> None:
        """Let the next message that matches get lost on its way: a publish is neither stored nor answered."""
        self._lost_messages.append(subject_filter)

    def delay_next(self, subject_filter: str, seconds: float) -> None:
        """Let the next publish that matches reach the server only after `seconds` of its clock."""
        self._delays.append((subject_filter, seconds))

    def repeat_next_delivery(self, subject_filter: str) -> None:
        """Deliver the next queue message that matches twice, without waiting for `ack_wait`."""
        self._repeats.append(subject_filter)

    def takes_ack(self, subject: str) -> bool:
        """Use up a lost acknowledgement that is meant for this subject."""
        return _take(self._lost_acks, subject)

    def takes_message(self, subject: str) -> bool:
        """Use up a lost message that is meant for this subject."""
        return _take(self._lost_messages, subject)

    def takes_repeat(self, subject: str) -> bool:
        """Use up a repeated delivery that is meant for this subject."""
        return _take(self._repeats, subject)

    def takes_delay(self, subject: str) -> float:
        """Use up a delay that is meant for this subject, and return its seconds, or 0."""
        for entry in self._delays:
            if matches(entry[0], subject):
                self._delays.remove(entry)
                return entry[1]
        return 0.0


def _take(filters: list[str], subject: str) -> bool:
    for pattern in filters:
        if matches(pattern, subject):
            filters.remove(pattern)
            return True
    return False
