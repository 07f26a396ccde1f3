"""The one run that several files of tests look at."""

import pytest

from .whole_run import WholeRun, whole_run


@pytest.fixture(scope="session")
async def seen(tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    """A run with every actor in a process of its own, from all sides."""
    return await whole_run(tmp_path_factory.mktemp("whole"))
