"""The tutorial's trigger, taken from its page as it stands there, works as a process of its own."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.streams.text import TextReceiveStream

from temporality.actors.bus.nats import NatsBus
from temporality.actors.bus.service import service_infos
from temporality.actors.triggers.trigger import KIND_LENGTH_MAX
from temporality.deploy.embedded import EmbeddedServer
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.trigger import (
    CANDIDATES_MAX,
    SITUATION_CHARACTERS_MAX,
    TRIGGER_SERVICE,
    Candidate,
    TurnEvaluated,
)
from temporality.protocol.turn import RECENT_CALLS_MAX, RecentCall, SettledCall, TurnSettled

PAGE = Path(__file__).resolve().parents[3] / "docs" / "writing_a_trigger.md"
WAIT_S = 30.0


def code_blocks() -> list[str]:
    """The page's Python, block by block: the trigger, then its test."""
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def command() -> list[str]:
    """The command line by which the page runs its trigger."""
    (line,) = re.findall(
        r"^temporality (trigger run call_repeated:\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    return [sys.executable, "-m", "temporality.deploy.cli", *line.split()]


@asynccontextmanager
async def served(folder: Path, url: str) -> AsyncIterator[None]:
    """Run the page's command in the folder of the page's file, until it is told to stop."""
    (folder / "call_repeated.py").write_text(code_blocks()[0], encoding="utf-8")
    environment = {**os.environ, "TEMPORALITY_NATS_URL": url}
    async with await anyio.open_process(command(), env=environment, cwd=folder) as process:
        assert process.stderr is not None
        told = ""
        with anyio.fail_after(WAIT_S):
            async for text in TextReceiveStream(process.stderr):
                told += text
                if "serving call.repeated" in told:
                    break
        yield
        process.terminate()
        with anyio.fail_after(WAIT_S):
            assert await process.wait() == 0


def turn(*, earlier: int) -> bytes:
    call = SettledCall(call="c9", tool="read", outcome="succeeded", argument_digest="d")
    recent = RecentCall(turn=1, tool="read", outcome="succeeded", argument_digest="d")
    other = RecentCall(turn=1, tool="read", outcome="succeeded", argument_digest="another")
    return encode(
        TurnSettled(project="demo", run="r1", turn=3, calls=(call,), recent=(other, *[recent] * earlier))
    )


async def test_tutorials_trigger_is_found_and_asked_as_a_process_of_its_own(
    nats_server: EmbeddedServer, nats_bus: NatsBus, tmp_path: Path
) -> None:
    """A10"""
    async with served(tmp_path, nats_server.url):
        (info,) = await service_infos(nats_bus, TRIGGER_SERVICE, timeout_s=1.0)
        subject = subjects.turn_settled("demo")
        third = await nats_bus.request(subject, turn(earlier=2), timeout_s=WAIT_S)
        second = await nats_bus.request(subject, turn(earlier=1), timeout_s=WAIT_S)
    assert info.metadata == {"kind": "call.repeated", "version": "1.0.0"}
    answer = decode(third.payload, TurnEvaluated)
    assert answer.instance == info.id
    (candidate,) = answer.candidates
    assert (candidate.call, candidate.topics) == ("c9", ("loop",))
    assert candidate.situation == "read is called again and again with the same arguments"
    assert decode(second.payload, TurnEvaluated).candidates == ()


def test_test_that_the_tutorial_shows_passes(tmp_path: Path) -> None:
    trigger, test = code_blocks()
    (tmp_path / "call_repeated.py").write_text(trigger, encoding="utf-8")
    (tmp_path / "test_call_repeated.py").write_text(test, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "2 passed" in ran.stdout


def test_tutorials_trigger_is_about_twenty_lines() -> None:
    trigger, _ = code_blocks()
    assert len([line for line in trigger.splitlines() if line.strip()]) <= 20


def test_page_names_every_field_of_a_turn_and_a_candidate() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for record in (TurnSettled, SettledCall, RecentCall, Candidate):
        missing = [field for field in record.__struct_fields__ if f"`{field}`" not in page]
        assert not missing


def test_page_states_the_bounds_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for bound in (KIND_LENGTH_MAX, SITUATION_CHARACTERS_MAX, CANDIDATES_MAX, RECENT_CALLS_MAX):
        assert f" {bound:,} " in page
