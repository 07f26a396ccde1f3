"""Secrets that a run meets stay in its private streams: nothing that others may read holds a piece of one.

They are planted wherever text comes from: the task, arguments, results, errors, exceptions, a server's
environment and last words, addresses, the model's own words, a provider's refusal. What is searched is all
that leaves: public facts, the timeline's file and its page, logs, spans, what evaluators and retrievers are
asked, the reasons of dead letters, and what the command line prints about a run that fails.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio
import msgspec
import yaml
from tests.otlp_receiver import otlp_receiver

from temporality.actors.bus.port import Message
from temporality.actors.redaction.bounding import MARGIN_CHARACTERS, cut_mark
from temporality.actors.redaction.samples.secrets import PASSWORDS, TOKENS, VALUES, pem
from temporality.deploy.assembly import ACTORS
from temporality.protocol import subjects
from temporality.protocol.bounds import TOOL_RESULT_LENGTH_MAX
from temporality.protocol.streams import DEAD, FACTS, RUNS
from temporality.storage.timeline import open_timeline

from .stage import UNHURRIED_LEASE_S, Stage, listening, stage

SERVER = Path(__file__).with_name("servers") / "leaky.py"
COMMAND_S = 50.0
FRAGMENT = 10
"""A secret of which so many characters in a row are found has leaked."""

LONG = 30_000
SHOWN = TOOL_RESULT_LENGTH_MAX - len(cut_mark(LONG))
TAIL = SHOWN // 3
HEAD = SHOWN - TAIL
INSIDE = 14
"""Characters of a secret before a cut: too few to know it by them, enough to be worth stealing."""


@dataclass
class Planted:
    """Secrets by where they are planted, made anew for each test."""

    rng: Random = field(default_factory=lambda: Random("secrets of a run"))
    secrets: dict[str, str] = field(default_factory=dict)

    def __call__(self, where: str, make: Callable[[Random], str]) -> str:
        """Make a secret, note where it goes, and return it."""
        return self.secrets.setdefault(where, make(self.rng))

    def found_in(self, text: bytes) -> set[str]:
        """Return the places whose secrets have left a piece in `text`."""
        return {
            where
            for where, secret in self.secrets.items()
            if any(
                secret[at : at + FRAGMENT].encode() in text
                for at in range(max(1, len(secret) - FRAGMENT + 1))
            )
        }


def on_the_edges(secret: str) -> str:
    """A long text in which the secret lies across every place where it is cut, or might be."""
    text = "the job went on and on for a while. " * (LONG // 36 + 1)
    starts = [edge - INSIDE for edge in (HEAD, HEAD + MARGIN_CHARACTERS, TOOL_RESULT_LENGTH_MAX)]
    starts += [LONG - edge + INSIDE - len(secret) for edge in (TAIL, TAIL + MARGIN_CHARACTERS)]
    for start in starts:
        text = f"{text[: start - 1]} {secret} {text[start + len(secret) + 1 :]}"
    return text[:LONG]


def leaks(plant: Planted) -> dict[str, str]:
    """What the tools say."""
    padding = "the upload to the archive did not go through, says the log of it; " * 3
    return {
        "result": f"config loaded\naws_key: {plant('result', TOKENS['aws access key'])}\nok",
        "key": plant("key file", pem),
        "error": f"{padding}{plant('error at the edge of an excerpt', TOKENS['github'])} was refused",
        "header": f"401 for Authorization: Bearer {plant('header', VALUES['letters and digits'])}",
        "exception": f"password={plant('exception', PASSWORDS['symbols'])!r} is wrong",
        "url": f"no route to postgres://app:{plant('url', VALUES['hexadecimal'])}@db.internal/orders",
        "long": on_the_edges(plant("edge", TOKENS["openai"])),
        "stderr": f"fatal: token {plant('stderr', TOKENS['gitlab'])} has expired",
    }


def script(plant: Planted) -> str:
    """What the model says, secrets included."""

    def calls(*wanted: tuple[str, str]) -> list[dict[str, object]]:
        token = {"token": plant("argument", TOKENS["stripe"])}
        return [
            {"name": name, "arguments": {"what": what} | (token if name.startswith("leaky__s") else {})}
            for name, what in wanted
        ]

    turns = [
        calls(("leaky__say", "result"), ("leaky__fail", "error"), ("explode", "exception")),
        calls(("leaky__say", "key"), ("leaky__fail", "header"), ("leaky__fail", "url")),
        calls(("leaky__say", "long"), ("leaky__fail", "long"), ("explode", "long")),
        calls(("leaky__die", "stderr")),
    ]
    said = f"I try it with {plant('the model', TOKENS['slack'])} now."
    refused = f"Incorrect API key provided: {plant('refusal', TOKENS['anthropic'])}."
    rules: list[dict[str, object]] = [
        {"when": {"system": "refused"}, "fail": {"status": 401, "message": refused}}
    ]
    rules += [
        {"when": {"turn": number}, "reply": {"content": said, "tool_calls": wanted}}
        for number, wanted in enumerate(turns, start=1)
    ]
    rules.append({"reply": {"content": f"Done, with {plant('answer', TOKENS['npm'])}."}})
    return str(yaml.safe_dump({"replies": rules}))


@dataclass
class Command:
    """The command line, as a person uses it on a stage."""

    on: Stage
    folder: Path
    endpoint: str
    environment: dict[str, str]

    async def __call__(self, *arguments: str, status: int = 0) -> tuple[bytes, bytes]:
        """Run a command; return what it printed as its result, and what on the way."""
        environment = {
            **os.environ,
            **self.environment,
            "TEMPORALITY_DATA_DIR": str(self.folder / "data"),
            "TEMPORALITY_NATS_URL": self.on.running.url,
            "TEMPORALITY_OTEL_ENDPOINT": self.endpoint,
        }
        with anyio.fail_after(COMMAND_S):
            ran = await anyio.run_process(
                [sys.executable, "-m", "temporality.deploy.cli", *arguments],
                cwd=self.folder,
                env=environment,
                check=False,
            )
        assert ran.returncode == status, ran.stderr.decode()
        return ran.stdout, ran.stderr


async def test_no_secret_of_a_run_is_in_anything_that_others_may_read(tmp_path: Path) -> None:
    """A17, A47"""
    plant = Planted()
    text = script(plant)
    environment = {
        "LEAKS": json.dumps(leaks(plant)),
        "DOCS_PASSWORD": plant("address", VALUES["letters and digits"]),
        "DOCS_KEY": plant("query of an address", TOKENS["github fine-grained"]),
    }
    task = f"Fetch the report; the key is {plant('task', TOKENS['google api'])}."
    asked: list[Message] = []
    with otlp_receiver() as received:
        async with stage(
            tmp_path,
            text,
            processes=tuple(ACTORS),
            lease_ttl_s=UNHURRIED_LEASE_S,
            environment=environment,
            otel=received.endpoint,
        ) as on:
            command = Command(on, tmp_path, received.endpoint, environment)
            async with (
                listening(on.bus, subjects.all_hints_find(), asked.append),
                listening(on.bus, subjects.all_turns_settled(), asked.append),
            ):
                answer, progress = await command("run", agent(on, tmp_path, "work"), task)
            printed = [
                progress,
                *await command("run", agent(on, tmp_path, "refused"), "Ask.", "--json", status=1),
                *await command("run", agent(on, tmp_path, "unreachable"), "Ask.", status=1),
            ]
            letter = await dead_letter(on, plant("dead letter", TOKENS["hugging face"]))
            run = progress.split()[0].decode()
            await on.public_facts(run)
            facts = await on.bus.read(FACTS, subjects.facts(), count_max=10_000)
            private = await on.bus.read(RUNS, subjects.commit(run), count_max=10_000)
            printed.extend(await command("timeline", run))
    assert b"Done, with" in answer, "a person's own result is theirs, whatever is in it"
    assert b"turn 4" in progress
    async with open_timeline(tmp_path / "data" / "timeline.db") as timeline:
        runs = await timeline.runs(10)
        rows = [await timeline.facts(one.run) for one in runs]
    assert {one.agent for one in runs} == {"work", "refused", "unreachable"}
    seen = {
        "public facts": b"\n".join(fact.payload + repr(fact.headers).encode() for fact in facts),
        "questions": b"\n".join(message.payload + repr(message.headers).encode() for message in asked),
        "spans": b"\n".join(received.bodies),
        "dead letter": repr(letter).encode(),
        "timeline rows": msgspec.json.encode((runs, rows)),
        "command line": b"\n".join(printed),
        **{f"log of {log.name}": log.read_bytes() for log in (tmp_path / "data" / "logs").iterdir()},
        **{file.name: file.read_bytes() for file in (tmp_path / "data").glob("timeline.db*")},
    }
    assert all(seen[name] for name in ("public facts", "questions", "spans", "timeline rows", "command line"))
    assert {name: plant.found_in(content) for name, content in seen.items() if plant.found_in(content)} == {}
    assert_they_were_there(plant, b"\n".join(commit.payload for commit in private))


def assert_they_were_there(plant: Planted, private: bytes) -> None:
    """What was planted in the run is in its private commits, or the test shows nothing."""
    elsewhere = {"refusal", "address", "query of an address", "dead letter", "stderr", "edge"}
    assert plant.found_in(private) >= plant.secrets.keys() - elsewhere


def agent(on: Stage, folder: Path, name: str) -> str:
    """Write an agent's file: one that works, one that its provider refuses, one without its server."""
    leaky = {"command": sys.executable, "args": [str(SERVER)], "env": {"LEAKS": "${LEAKS}"}}
    docs = {"url": "http://bot:${DOCS_PASSWORD}@127.0.0.1:9/mcp?api_key=${DOCS_KEY}"}
    tools = {
        "work": {"mcp": {"leaky": leaky}, "python": ["tests.integration.servers.leaky:explode"]},
        "unreachable": {"mcp": {"docs": docs}},
    }
    spec = {
        "name": name,
        "instructions": name,
        "model": msgspec.to_builtins(on.model),
        "tools": tools.get(name, {}),
        "activation": {"deadlines": {"evaluators_ms": 5_000, "retrieval_ms": 5_000}},
    }
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return file.name


async def dead_letter(on: Stage, secret: str) -> dict[str, str]:
    """Send a start whose id is a secret, and no id; return the headers of the dead letter that it became."""
    start = {"type": "run.start", "identity": {"run": f"run/{secret}"}, "agent": {}, "task": "t"}
    await on.bus.publish(
        subjects.inbox("run-of-nobody", "command"), json.dumps(start).encode(), message_id="broken"
    )
    with anyio.fail_after(COMMAND_S):
        async with on.bus.follow(DEAD, "temporality.dead.>") as letters:
            async for letter in letters:
                return dict(letter.headers)
    raise AssertionError("unreachable")
