"""Core messages in memory: who subscribes to what, and who of a queue group is next."""

from collections.abc import Callable
from dataclasses import dataclass

from temporality.actors.bus.memory.subject import matches
from temporality.actors.bus.port import Message


@dataclass(eq=False, slots=True)
class Listener:
    """One subscription: what it listens to and how it is told."""

    pattern: str
    queue: str | None
    deliver: Callable[[Message], object]


class Router:
    """The subscriptions of all connections; members of a queue group take turns."""

    def __init__(self) -> None:
        self._exact: dict[str, list[Listener]] = {}
        self._patterns: list[Listener] = []
        self._turns: dict[tuple[str, str], int] = {}

    def add(self, listener: Listener) -> None:
        """Begin to deliver to a listener."""
        self._list_of(listener).append(listener)

    def remove(self, listener: Listener) -> None:
        """Stop delivering to a listener. Idempotent."""
        listeners = self._list_of(listener)
        if listener in listeners:
            listeners.remove(listener)
        if not listeners:
            self._exact.pop(listener.pattern, None)

    def route(self, message: Message) -> bool:
        """Deliver a message; say whether anybody listened."""
        found = [*self._exact.get(message.subject, ())]
        found += [listener for listener in self._patterns if matches(listener.pattern, message.subject)]
        groups: dict[tuple[str, str], list[Listener]] = {}
        for listener in found:
            if listener.queue is None:
                listener.deliver(message)
            else:
                groups.setdefault((listener.pattern, listener.queue), []).append(listener)
        for key, members in groups.items():
            turn = self._turns.get(key, 0)
            self._turns[key] = turn + 1
            members[turn % len(members)].deliver(message)
        return bool(found)

    def _list_of(self, listener: Listener) -> list[Listener]:
        if "*" in listener.pattern or ">" in listener.pattern:
            return self._patterns
        return self._exact.setdefault(listener.pattern, [])
