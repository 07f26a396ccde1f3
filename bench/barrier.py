"""What a barrier costs: the scatter to three evaluators, and the cleaning of what they are sent.

    python -m bench.barrier [--scatters 500]

The evaluators are processes of their own. Beside them, in the same run: one bare request and reply on one
server, redaction with bounding, and the fingerprint, of 8 KB and 10 MB.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import msgspec

from temporality.actors.bus.port import Bus
from temporality.actors.redaction import clean
from temporality.actors.supervisor.evaluators import Evaluators
from temporality.deploy.assembly import host_of, open_bus
from temporality.deploy.config import Config, Environment
from temporality.deploy.embedded import embedded_server
from temporality.deploy.processes import ActorProcess
from temporality.protocol.fingerprint import situation_key
from temporality.protocol.turn import SettledCall, TurnSettled

REPOSITORY = Path(__file__).parents[1]
RESULTS = REPOSITORY / "bench" / "results" / "barrier.json"
KINDS = ("One", "Two", "Three")
TEXT_CHARACTERS = 8_192
WORDS = ("connection", "refused", "while", "reading", "/srv/data/part-17", "at", "0x7ffe", "line", "42", "of")


async def measure(scatters: int) -> dict[str, float]:
    """Return the figures, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(embedded_server(Path(folder), sync="default"))
            config = Config(data_dir=folder)
            bus = await stack.enter_async_context(open_bus(server.url, name="bench"))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            for kind in KINDS:
                await tasks.start(_evaluator(kind, server.url, Path(folder)).run, _silent)
            evaluators = Evaluators(host_of("supervisor", bus, config, Environment({})))
            await tasks.start(evaluators.run)
            turn = _turn()

            async def scatter() -> None:
                gathered = await evaluators.ask(turn, deadline_ms=250, traceparent=None)
                if len(gathered.answers) != len(KINDS):
                    raise RuntimeError(f"not all evaluators answered: {gathered.missed}")

            figures = {
                "scatter_3_evaluators_p50_ms": await _p50(scatter, scatters),
                "request_reply_p50_ms": await _request_reply(bus, tasks, scatters),
            }
    return {**figures, **_cleaning()}


def _evaluator(kind: str, url: str, folder: Path) -> ActorProcess:
    command = ["-m", "bench.evaluator", f"bench.noop_triggers:{kind}"]
    variables = {**os.environ, "TEMPORALITY_NATS_URL": url, "PYTHONPATH": str(REPOSITORY)}
    return ActorProcess(kind, command, variables, folder / f"{kind}.log")


def _silent(_: str) -> None:
    """Nobody watches a bench."""


async def _p50(measured: Callable[[], Awaitable[object]], count: int) -> float:
    times = []
    for _ in range(count):
        started = time.perf_counter()
        await measured()
        times.append(time.perf_counter() - started)
    return round(statistics.median(times) * 1000, 3)


async def _request_reply(bus: Bus, tasks: anyio.abc.TaskGroup, count: int) -> float:
    async with bus.subscribe("bench.echo") as questions:

        async def echo() -> None:
            async for question in questions:
                if question.reply:
                    await bus.send(question.reply, question.payload)

        tasks.start_soon(echo)
        return await _p50(lambda: bus.request("bench.echo", b"x" * 300, timeout_s=1), count)


def _turn() -> TurnSettled:
    call = SettledCall(
        call="c1", tool="noop", outcome="succeeded", argument_digest="d", input="{}", result="fine " * 400
    )
    return TurnSettled(project="bench", run="r1", turn=1, calls=(call,))


def _cleaning() -> dict[str, float]:
    chance = random.Random(1)
    text = " ".join(chance.choice(WORDS) for _ in range(TEXT_CHARACTERS))[:TEXT_CHARACTERS]
    huge = text * (10 * 1024 * 1024 // TEXT_CHARACTERS)
    return {
        "clean_8kb_p50_ms": _sync_p50(lambda: clean(text, characters_max=TEXT_CHARACTERS)),
        "clean_10mb_p50_ms": _sync_p50(lambda: clean(huge, characters_max=TEXT_CHARACTERS)),
        "fingerprint_8kb_p50_ms": _sync_p50(
            lambda: situation_key(trigger="tool.failed", source="noop", error_class="E", text=text)
        ),
    }


def _sync_p50(measured: Callable[[], object], count: int = 60) -> float:
    times = []
    for _ in range(count):
        started = time.perf_counter()
        measured()
        times.append(time.perf_counter() - started)
    return round(statistics.median(times) * 1000, 3)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scatters", type=int, default=500)
    options = parser.parse_args(arguments)
    options_of_loop = {"use_uvloop": True} if sys.platform != "win32" else {}
    figures = anyio.run(measure, options.scatters, backend_options=options_of_loop)
    for name, value in figures.items():
        print(f"{name}: {value}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
