"""Starting a run and watching it to its end, for whoever waits for the answer."""

import math
from collections.abc import AsyncIterator, Callable

import msgspec
from opentelemetry.trace import SpanKind
from rich.console import Console
from rich.markup import escape

from temporality.actors import conventions
from temporality.actors.bus.port import Bus, Stored
from temporality.actors.host import headers_of
from temporality.actors.redaction import clean, redact
from temporality.actors.tracing import Tracing
from temporality.deploy.exit_status import tell
from temporality.deploy.taking import Patience, Taking, newest_dead_letter, taken_in_time
from temporality.protocol import subjects
from temporality.protocol.activation import ActivationRequested, ActivationSettled, BlockInjected
from temporality.protocol.codec import decode, encode
from temporality.protocol.errors import UserError
from temporality.protocol.run import (
    Commit,
    ModelCallFailed,
    ModelReplied,
    RunCancelled,
    RunFact,
    RunFailed,
    RunFinished,
    StartRun,
    ToolCalled,
    ToolReplied,
)
from temporality.protocol.streams import RUNS
from temporality.protocol.tool import ToolFailed, outcome_name

PATIENCE = Patience()

WORDS_SHOWN_MAX = 120
"""Characters shown of what the model says beside its calls: a line, to recognise the turn by."""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, as `run --json` prints it: every key each time."""

    run: str
    status: str
    answer: str | None = None
    error: str | None = None
    turns: int = 0
    knowledge_ids: tuple[str, ...] = ()


async def run_to_end(
    bus: Bus,
    start: StartRun,
    *,
    parent: str | None = None,
    console: Console | None = None,
    patience: Patience = PATIENCE,
    notice: Callable[[str], None] = tell,
) -> RunResult:
    """Start a run and follow it to its end; once begun, as long as it takes, through any crash of an actor.

    The whole run is one trace, a child of `parent` (W3C) if that is given. Raises `NotTaken` if no supervisor
    takes the run (`notice` is told before), and `UserError` if its start is refused.
    """
    run_id = start.identity.run
    tracing = Tracing()
    with tracing.span(
        f"{conventions.INVOKE_AGENT} {start.agent.name}",
        parent=parent,
        kind=SpanKind.CLIENT,
        attributes={
            conventions.GEN_AI_OPERATION_NAME: conventions.INVOKE_AGENT,
            conventions.GEN_AI_AGENT_NAME: start.agent.name,
            conventions.GEN_AI_CONVERSATION_ID: run_id,
            conventions.RUN_ID: run_id,
        },
    ):
        message_id = f"{run_id}.start"
        dead_before = await newest_dead_letter(bus)
        await bus.publish(
            subjects.inbox(run_id, "command"),
            encode(start),
            message_id=message_id,
            headers=headers_of(message_id, None, tracing.traceparent()),
        )
        if console:
            console.print(f"[bold]{run_id}[/bold]")
        async with (
            taken_in_time(
                bus, run_id, message_id, dead_before=dead_before, patience=patience, notice=notice
            ) as taking,
            bus.follow(RUNS, subjects.commit(run_id)) as commits,
        ):
            return await _followed(commits, run_id, taking, console)


async def _followed(
    commits: AsyncIterator[Stored], run_id: str, taking: Taking, console: Console | None
) -> RunResult:
    issued: list[str] = []
    turns = 0
    async for stored in commits:
        taking.taken()
        for fact in decode(stored.payload, Commit).facts:
            if console:
                show_fact(console, fact)
            if isinstance(fact, BlockInjected):
                issued.extend(fact.knowledge_ids)
            if isinstance(fact, ModelReplied):
                turns = fact.turn
            ended = _ended(fact)
            if ended is not None:
                status, answer, error = ended
                return RunResult(
                    run=run_id,
                    status=status,
                    answer=answer,
                    error=error,
                    turns=turns,
                    knowledge_ids=tuple(issued),
                )
    raise UserError(run_id, "its commits ended before the run did", "see: temporality doctor")


def _ended(fact: RunFact) -> tuple[str, str | None, str | None] | None:
    match fact:
        case RunFinished(answer=answer):
            return "finished", answer, None
        case RunFailed(where=where, what=what, do=do):
            return "failed", None, redact(f"{where}: {what}" + (f" — {do}" if do else "")).text
        case RunCancelled(reason=reason):
            return "cancelled", None, redact(f"cancelled: {reason}").text
        case _:
            return None


def show_fact(console: Console, fact: RunFact) -> None:
    """Print what a person who watches a run wants to know of a fact."""
    match fact:
        case ModelReplied(turn=turn, content=content, calls=calls):
            words = " ".join(clean(content, characters_max=WORDS_SHOWN_MAX).text.split())
            what = f"{len(calls)} call{'s' if len(calls) != 1 else ''}" if calls else "answer"
            console.print(f"[cyan]turn {turn}[/cyan] model: {what} {escape(words)}")
        case ToolCalled(tool=tool, mcp_server=server):
            console.print(f"  → {escape(f'{server}.{tool}' if server else tool)}")
        case ToolReplied(outcome=outcome, duration_ms=duration_ms):
            name, colour = outcome_name(outcome), "green"
            if isinstance(outcome, ToolFailed):
                name, colour = f"failed ({outcome.error_class})", "red"
            console.print(f"  ← [{colour}]{escape(name)}[/{colour}] [dim]{duration_ms} ms[/dim]")
        case ActivationRequested(trigger=trigger):
            console.print(f"  [magenta]look-up[/magenta] for {escape(trigger)}")
        case ActivationSettled(result=result, found=found):
            console.print(f"  [magenta]{result}[/magenta]: {found} found")
        case BlockInjected(knowledge_ids=items, tokens=tokens):
            names = escape(", ".join(items))
            console.print(f"  [bold magenta]injected[/bold magenta] {names} [dim]{tokens} tokens[/dim]")
        case ModelCallFailed(message=message, retry_after_s=retry_after_s):
            again = f", again in {math.ceil(retry_after_s)} s" if retry_after_s is not None else ""
            console.print(f"[yellow]model: {escape(redact(message).text)}{again}[/yellow]")
        case _:
            return
