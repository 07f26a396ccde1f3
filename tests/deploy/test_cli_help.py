"""Help: every command says in a sentence what it does, at once, whatever the surroundings are like."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from temporality.deploy.assembly import ACTORS

from . import command_line
from .command_line import Here

COMMANDS = (
    ("up",),
    ("actor",),
    ("run",),
    ("runs",),
    ("timeline",),
    ("facts",),
    ("scripted-model",),
    ("doctor",),
    ("demo",),
    ("knowledge", "import"),
    ("knowledge", "list"),
    ("knowledge", "show"),
    ("knowledge", "export"),
    ("trigger", "run"),
    ("probe", "fingerprint"),
    ("probe", "redact"),
    ("probe", "hints"),
    ("probe", "block"),
)
HEAVY = (
    "aiosqlite",
    "anyio",
    "httpx2",
    "jsonschema",
    "mcp",
    "nats",
    "openai",
    "opentelemetry",
    "pydantic",
    "sqlite3",
    "starlette",
    "tenacity",
    "uvicorn",
    "yaml",
)
"""What a command pays for when it needs it; together they take over a second to import."""


def test_every_command_is_in_the_list_here(here: Here) -> None:
    listed = set(re.findall(r"^│ ([a-z][a-z-]*) {2,}", here("--help").out, re.MULTILINE))
    assert listed == {command[0] for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_says_what_it_does_in_a_sentence(here: Here, command: tuple[str, ...]) -> None:
    done = here(*command, "--help")
    assert (done.status, done.err) == (0, "")
    usage, sentence, *_ = [line.strip() for line in done.out.splitlines() if line.strip()]
    assert usage.startswith(f"Usage: temporality {' '.join(command)}")
    assert sentence[0].isupper()
    assert len(sentence.split()) >= 4


def test_help_waits_for_none_of_the_libraries_that_commands_need() -> None:
    code = f"import sys, temporality.deploy.cli; print(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_help_is_shown_beside_a_broken_configuration_and_for_a_group_alone(tmp_path: Path) -> None:
    (tmp_path / "temporality.yaml").write_text("data_dri: x")
    done = command_line.run("run", "--help", cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    done = command_line.run("knowledge", cwd=tmp_path)
    assert done.status == 2
    assert "import" in done.out
    assert done.err == ""


def test_the_help_of_actor_leads_to_the_names_of_all(here: Here) -> None:
    assert "a wrong name lists them all" in " ".join(here("actor", "--help").out.replace("│", " ").split())
    assert all(kind in here("actor", "x").err for kind in ACTORS)
