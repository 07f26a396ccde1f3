"""Puts triggers on the bus: each is a NATS micro service that answers `turn.settled` for its kind.

Triggers of one process don't wait for each other: the evaluations of each run one after another, in a thread
beside the loop, which nothing can stop (see `actors/threads.py`). So a trigger that hangs keeps its place,
its questions queue up to a limit and are then refused at once, and the process can end all the same. Built-in
triggers take some microseconds and run where the question arrives.

An evaluation that fails, hangs or gives rubbish is answered with an error of the service, which names the
kind of the failure and never its text (A47), and is the supervisor's to record (A11).
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from itertools import islice
from typing import Protocol

import anyio
from anyio.abc import TaskStatus
from opentelemetry.trace import SpanKind

from temporality.actors import conventions
from temporality.actors.bus.port import Message
from temporality.actors.bus.service import Endpoint, ServiceError, serve
from temporality.actors.host import Host
from temporality.actors.threads import Threads, ThreadsBusy
from temporality.actors.triggers.trigger import Finding, Trigger, version_of
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.errors import InvalidMessage, fault
from temporality.protocol.message import TRACE_HEADER
from temporality.protocol.trigger import (
    CANDIDATES_MAX,
    TRIGGER_SERVICE,
    Candidate,
    EmptyDiagnostic,
    TurnEvaluated,
)
from temporality.protocol.turn import TurnSettled

WAITING_MAX = 32
"""Turns that one trigger evaluates or has waiting: more would be answered long after their barrier closed."""

ENDPOINT = "evaluate"


class Evaluating(Protocol):
    """Runs `evaluate` of one trigger somewhere."""

    async def run(self, evaluate: Callable[[], list[Finding]]) -> list[Finding]:
        """Return what `evaluate` returns; its exceptions pass through."""
        ...


class Inline:
    """Evaluates where the question arrives: for triggers that are known to be quick."""

    async def run(self, evaluate: Callable[[], list[Finding]]) -> list[Finding]:
        """See `Evaluating.run`."""
        return evaluate()


class OwnThread:
    """Evaluates beside the loop, one turn after another."""

    def __init__(self, name: str) -> None:
        self._threads = Threads(1, name=f"temporality-trigger-{name}", held_max=WAITING_MAX)

    async def run(self, evaluate: Callable[[], list[Finding]]) -> list[Finding]:
        """See `Evaluating.run`. Refuses at once when too many wait; cancelling abandons the evaluation."""

        def evaluated() -> list[Finding]:
            try:
                return evaluate()
            except Exception:
                raise
            except BaseException as error:  # SystemExit, say: the trigger's failure, not ours
                raise RuntimeError(type(error).__name__) from error

        try:
            return await self._threads.run(evaluated)
        except ThreadsBusy as busy:
            raise ServiceError(503, "busy") from busy


class Evaluator:
    """One trigger as it answers questions."""

    def __init__(self, host: Host, trigger: Trigger, evaluating: Evaluating) -> None:
        self._host = host
        self._trigger = trigger
        self._evaluating = evaluating
        self._instance = ""
        self._registered = anyio.Event()

    def registered(self, instance: str) -> None:
        """Say under which id the roster knows this trigger; answers wait for it."""
        self._instance = instance
        self._registered.set()

    async def answer(self, question: Message) -> bytes:
        """Answer one settled turn with the trigger's findings; raises `ServiceError` for anything else."""
        await self._registered.wait()
        kind = self._trigger.kind
        with self._host.tracing.span(
            conventions.spanned(conventions.EVALUATE, kind),
            parent=question.headers.get(TRACE_HEADER),
            kind=SpanKind.SERVER,
            attributes={conventions.TRIGGER_KIND: kind},
        ) as span:
            try:
                turn: TurnSettled = decode(question.payload, TurnSettled)
                span.set_attribute(conventions.RUN_ID, turn.run)
                found = await self._evaluating.run(lambda: collected(self._trigger.evaluate(turn)))
                evaluated = evaluation(self._instance, found)
            except ServiceError:
                raise
            except InvalidMessage as error:
                raise ServiceError(400, "not a settled turn") from error
            except Exception as error:
                self._host.log.error("trigger %s failed: %s", kind, fault(error))
                raise ServiceError(500, type(error).__name__) from error
            span.set_attribute(conventions.CANDIDATES, len(evaluated.candidates))
        return encode(evaluated)


class RubbishFound(Exception):
    """A trigger yielded what no supervisor would accept."""


def collected(found: Iterable[Finding]) -> list[Finding]:
    """Return what a trigger yields, and at most one more than a supervisor accepts: it may yield for ever."""
    return list(islice(found, CANDIDATES_MAX + 1))


def evaluation(instance: str, found: Sequence[object]) -> TurnEvaluated:
    """Return the answer that holds `found`; raises `RubbishFound` if a supervisor would not accept it.

    Bounds of fields are checked by decoding only, so what was built is decoded once: its author learns here
    what would otherwise be dropped there.
    """
    if len(found) > CANDIDATES_MAX:
        raise RubbishFound(f"more than {CANDIDATES_MAX} candidates")
    if not all(isinstance(one, Candidate | EmptyDiagnostic) for one in found):
        raise RubbishFound("something that is no Candidate")
    evaluated = TurnEvaluated(
        instance=instance,
        candidates=tuple(one for one in found if isinstance(one, Candidate)),
        empty=tuple(one for one in found if isinstance(one, EmptyDiagnostic)),
    )
    try:
        decode(encode(evaluated), TurnEvaluated)
    except (InvalidMessage, TypeError) as error:
        raise RubbishFound("a candidate breaks a bound") from error
    return evaluated


async def run_trigger(
    host: Host,
    triggers: Sequence[Trigger],
    *,
    inline: bool = False,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve triggers until cancelled; started once every one can be found and asked.

    Each turn goes to one process of each kind, at most once. `inline` evaluates without threads: for triggers
    that never block. Raises `BusClosed` when the bus is over.
    """
    async with AsyncExitStack() as stack:
        for trigger in triggers:
            evaluator = Evaluator(host, trigger, Inline() if inline else OwnThread(trigger.kind))
            service = await stack.enter_async_context(
                serve(
                    host.bus,
                    name=TRIGGER_SERVICE,
                    version=version_of(trigger),
                    metadata={"kind": trigger.kind, "version": version_of(trigger)},
                    description=f"proposes look-ups for {trigger.kind}",
                    clock=host.clock,
                    endpoints=[
                        Endpoint(
                            name=ENDPOINT,
                            subject=subjects.all_turns_settled(),
                            handler=evaluator.answer,
                            queue=trigger.kind,
                        )
                    ],
                )
            )
            evaluator.registered(service.info.id)
            host.log.info("trigger %s serves as %s", trigger.kind, service.info.id)
        task_status.started()
        await anyio.sleep_forever()
