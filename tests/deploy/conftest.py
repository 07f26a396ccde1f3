"""One deployment, started by `temporality up`, that all tests of the command line share."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from temporality.deploy.cli import main

from .command_line import Done, Here, running
from .scene import SCRIPT, Deployment, write_config


def exit_status(arguments: list[str]) -> int | None:
    """Run the program's entry point and return what it exits with."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    status = ended.value.code
    assert status is None or isinstance(status, int)
    return status


@pytest.fixture
def here(capfd: pytest.CaptureFixture[str]) -> Here:
    """Run a command in this process, in a thread: the main one has the loop of other tests' fixtures."""

    def run(*arguments: object) -> Done:
        capfd.readouterr()
        with ThreadPoolExecutor(1) as thread:
            status = thread.submit(exit_status, [str(argument) for argument in arguments]).result()
        captured = capfd.readouterr()
        return Done(status or 0, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def model_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scripted model, served by the command for it."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    with running("scripted-model", "script.yaml", cwd=folder) as model:
        line = model.wait_for("scripted model on ")
        yield line.split()[3]
        assert model.end() == 0


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory, model_url: str) -> Iterator[Deployment]:
    """A running deployment; at the end it stops by Ctrl-C."""
    folder = tmp_path_factory.mktemp("up")
    config = write_config(folder)
    with running("up", cwd=folder, env={"MODEL_KEY": "scripted"}) as process:
        process.wait_for("ready")
        process.wait_for("run an agent")
        yield Deployment(folder, config, model_url, process)
        assert process.end() == 0
