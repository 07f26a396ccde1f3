"""A bounded number of threads for functions that block.

Python can't stop a thread. So a function that never returns must be paid for honestly: it keeps its place
here until it does return (a pool that handed the place on would grow without bound), and its thread is a
daemon, so that it can't keep a process from ending.
"""

import asyncio
import contextvars
from collections.abc import Callable
from threading import Thread
from typing import TypeVar

import anyio

T = TypeVar("T")


class Threads:
    """Runs blocking functions, at most `places` at once."""

    def __init__(self, places: int) -> None:
        self._places = anyio.Semaphore(places)

    async def run(self, function: Callable[[], T], started: Callable[[], None]) -> T:
        """Run `function` in a thread of its own, as soon as there is a place, and return what it returns.

        `started` is called when a place was found. An exception passes through, whatever its kind. Cancelling
        abandons the function: it goes on, its result is dropped, and its place is free when it returns.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def settle(result: T | None, error: BaseException | None) -> None:
            self._places.release()
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

        await self._places.acquire()
        started()
        try:
            Thread(target=work, name="temporality-tool", daemon=True).start()
        except RuntimeError:
            self._places.release()
            raise
        return await future
