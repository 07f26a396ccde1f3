"""A task beside a body of code, without changing how the body fails."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


@asynccontextmanager
async def beside(job: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run `job` beside the body, then cancel it; one error of either comes out as it is, ungrouped."""
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(job)
            yield
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        errors = {id(error): error for error in group.exceptions}  # a bus that fails tells both the same
        if len(errors) == 1:
            raise group.exceptions[0] from None
        raise
