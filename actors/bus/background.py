"""A task beside a body of code, without changing how the body fails."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio


@asynccontextmanager
async def beside(job: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run `job` beside the body, then cancel it; the body's error, or the job's only one, comes out bare."""
    of_body: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(job)
            try:
                yield
            except Exception as error:
                of_body = error
                raise
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if of_body is not None:
            raise of_body from None
        kinds = {(type(error), str(error)): error for error in _leaves(group)}
        if len(kinds) == 1:  # a bus that is over tells every task of the job the same
            raise next(iter(kinds.values())) from None
        raise


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
