"""The event loop that everything runs on: uvloop where it exists, asyncio's own elsewhere."""

import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


def run_async(function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
    """Run an async function to its end on the fastest event loop there is."""
    options: dict[str, Any] = {"use_uvloop": True} if sys.platform != "win32" else {}
    return anyio.run(function, *arguments, backend_options=options)


async def stop_on_signal(scope: anyio.CancelScope) -> None:
    """Cancel `scope` on SIGTERM or Ctrl-C."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return
