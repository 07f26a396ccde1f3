"""A reader of a stream in memory: what is there, then what comes, in order."""

from temporality.actors.bus.mailbox import Mailbox
from temporality.actors.bus.memory.stream import Entry, MemoryStream
from temporality.actors.bus.memory.subject import matches
from temporality.actors.bus.port import BusError, Stored


class MemoryFollower:
    """Follows one subject of a stream from a sequence on, while it takes part."""

    def __init__(self, stream: MemoryStream, subject: str, after: int) -> None:
        if stream.is_queue:
            raise BusError(f"{stream.settings.spec.name}: a work queue can't be followed (10098)")
        self.mailbox: Mailbox[Stored] = Mailbox()
        self._stream = stream
        self._subject = subject
        self._taken = after

    def join(self) -> None:
        """Catch up, and be told of every new message."""
        self._stream.watchers.append(self._see)
        found = list(self._stream.after(self._subject, self._taken))
        for index, entry in enumerate(found, start=1):
            self._take(entry, len(found) - index)

    def leave(self) -> None:
        """Be told no longer."""
        self._stream.watchers.remove(self._see)

    def _see(self, entry: Entry) -> None:
        if entry.sequence > self._taken and matches(self._subject, entry.subject):
            self._take(entry, 0)

    def _take(self, entry: Entry, pending: int) -> None:
        self._taken = entry.sequence
        self.mailbox.put(entry.stored(pending))
