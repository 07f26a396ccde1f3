"""A bounded number of threads for functions that block.

Python can't stop a thread. So a function that never returns must be paid for honestly: it keeps its place
here until it does return (a pool that handed the place on would grow without bound), and its thread is a
daemon, so that it can't keep a process from ending. Who waits for a place is counted too, where a late result
would be of no use: then a function too many is refused at once.
"""

import asyncio
import contextvars
from collections.abc import Callable
from threading import Thread
from typing import TypeVar

import anyio

T = TypeVar("T")


class ThreadsBusy(Exception):
    """As many functions run or wait as may; this one was not called."""


class Threads:
    """Runs blocking functions, at most `places` at once, in threads called `name`.

    `held_max` bounds those that run or wait together; None lets any number wait.
    """

    def __init__(self, places: int, *, name: str, held_max: int | None = None) -> None:
        self._places = anyio.Semaphore(places)
        self._name = name
        self._held_max = held_max
        self._held = 0

    async def run(self, function: Callable[[], T], started: Callable[[], None] = lambda: None) -> T:
        """Run `function` in a thread of its own, as soon as there is a place, and return what it returns.

        `started` is called when a place was found. An exception passes through, whatever its kind. Cancelling
        abandons the function: it goes on, its result is dropped, and its place is free when it returns. One
        that waits for a place is not called any more. Raises `ThreadsBusy` at once if too many are held.
        """
        if self._held_max is not None and self._held >= self._held_max:
            raise ThreadsBusy
        self._held += 1
        try:
            await self._places.acquire()
        except BaseException:
            self._held -= 1
            raise
        started()
        return await self._in_thread(function)

    def _free_place(self) -> None:
        self._held -= 1
        self._places.release()

    async def _in_thread(self, function: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def settle(result: T | None, error: BaseException | None) -> None:
            self._free_place()
            if future.cancelled():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]

        def work() -> None:
            result: T | None = None
            error: BaseException | None = None
            try:
                result = context.run(function)
            except StopIteration as raised:  # a future refuses to carry it
                error = RuntimeError(f"StopIteration: {raised}")
            except BaseException as raised:  # noqa: BLE001 - it is raised where the result is awaited
                error = raised
            try:
                loop.call_soon_threadsafe(settle, result, error)
            except RuntimeError:
                return  # the loop is closed: nobody waits any more

        try:
            Thread(target=work, name=self._name, daemon=True).start()
        except RuntimeError:
            self._free_place()
            raise
        return await future
