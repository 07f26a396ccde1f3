"""A task beside a body of code, without changing how the body fails."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


@asynccontextmanager
async def beside(job: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run `job` beside the body, then cancel it; an error of the body comes out unwrapped."""
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(job)
            yield
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None  # the group is only the wrapping of the task group above
        raise
