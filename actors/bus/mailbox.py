"""The queue between a connection and a reader: filled without waiting, read by iterating.

A connection must never wait for its readers (one slow reader would stop all others, and an error in a
reader must not reach the connection), so `put` is synchronous and a bounded mailbox that is full refuses
the item and counts it. Closing with an error lets readers take what is there and then raises the error in
them; closing without one ends their iteration.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(AsyncIterator[T], Generic[T]):
    """A queue of one event loop; several tasks may iterate over it, each item goes to one of them."""

    def __init__(self, size_max: int | None = None) -> None:
        self._items: deque[T] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._size_max = size_max
        self._closed = False
        self._error: Exception | None = None
        self.dropped = 0
        """How many items were refused because the mailbox was full."""

    def put(self, item: T) -> bool:
        """Add an item; say whether it was taken (not if the mailbox is full or closed)."""
        if self._closed:
            return False
        if self._size_max is not None and len(self._items) >= self._size_max:
            self.dropped += 1
            return False
        self._items.append(item)
        self._wake_one()
        return True

    def close(self, error: Exception | None = None) -> None:
        """Let readers take what is there, then end their iteration, or raise `error` in them. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._error = error
        while self._waiting:
            self._wake_one()

    def drain(self) -> list[T]:
        """Take everything that nobody has read yet."""
        items = list(self._items)
        self._items.clear()
        return items

    def __len__(self) -> int:
        return len(self._items)

    def __aiter__(self) -> "Mailbox[T]":
        return self

    async def __anext__(self) -> T:
        """Return the next item; cancelling loses none."""
        while not self._items:
            if self._closed:
                if self._error is not None:
                    raise type(self._error)(*self._error.args)  # one for each reader: each adds its traceback
                raise StopAsyncIteration
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake_one()  # the item this reader was woken for goes to the next one
                elif waiter in self._waiting:
                    self._waiting.remove(waiter)
                raise
        return self._items.popleft()

    def _wake_one(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
