"""The scatter: one question to every live evaluator, one answer of each kind, one deadline (A11).

Who is alive is asked of NATS itself (`$SRV.INFO`): an evaluator takes part by starting, and no line here
changes for it (A10). A kind that missed a deadline is asked on but not waited for until it answers in time
again, so a hanging process costs its deadline once. All answers come to one subscription; one that comes
after its barrier has closed is used for nothing but to learn that its kind is late, or well again.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskStatus

from temporality.actors.bus.port import BusError
from temporality.actors.bus.port import Message as CoreMessage
from temporality.actors.bus.service import INSTANCE_HEADER, service_error, service_infos
from temporality.actors.host import Host
from temporality.protocol import subjects
from temporality.protocol.activation import EvaluatorMissed
from temporality.protocol.codec import decode, encode
from temporality.protocol.errors import InvalidMessage
from temporality.protocol.message import TRACE_HEADER
from temporality.protocol.trigger import TRIGGER_SERVICE, TurnEvaluated, is_kind
from temporality.protocol.turn import TurnSettled

ROSTER_INTERVAL_S = 1.0
"""How often NATS is asked who is alive: a new evaluator takes part at the latest this long after its start.
"""

ROSTER_TIMEOUT_S = 0.25
ROSTER_ABSENCES_MAX = 3
"""Rosters in a row that an instance may be missing from before it is forgotten: one may be a slow answer."""

ASKS_REMEMBERED_MAX = 256
"""Closed barriers whose late answers are still recognised."""


@dataclass(slots=True)
class _Ask:
    """One question under way (or lately closed): when it was put, who is waited for, what came."""

    run: str
    asked_at: float
    deadline_s: float
    waited_for: set[str]
    answers: dict[str, TurnEvaluated] = field(default_factory=dict)
    missed: dict[tuple[str, str], EvaluatorMissed] = field(default_factory=dict)
    complete: anyio.Event = field(default_factory=anyio.Event)
    closed: bool = False

    def miss(self, missed: EvaluatorMissed) -> None:
        """Note that a kind gave no usable answer: once a reason, however much it sends."""
        if not self.closed:
            self.missed.setdefault((missed.kind, missed.reason), missed)

    def check_complete(self) -> None:
        """Stop waiting if there is something of every kind that is waited for."""
        if not self.silent():
            self.complete.set()

    def silent(self) -> set[str]:
        """Return the kinds that are waited for and have sent nothing."""
        return self.waited_for - self.answers.keys() - {kind for kind, _ in self.missed}


@dataclass(frozen=True, slots=True)
class Gathered:
    """The answers by kind, and who gave none or an unusable one."""

    answers: tuple[tuple[str, TurnEvaluated], ...] = ()
    missed: tuple[EvaluatorMissed, ...] = ()


class Evaluators:
    """Keep the roster of live evaluators and put turns to them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._inbox = host.bus.inbox()
        self._kinds: dict[str, str] = {}
        self._absences: dict[str, int] = {}
        self._not_waited_for: set[str] = set()
        self._late: dict[str, list[EvaluatorMissed]] = {}
        self._asks: OrderedDict[str, _Ask] = OrderedDict()
        self._count = 0

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Receive answers and renew the roster, for ever; started once the first roster is known."""
        async with (
            self._host.bus.subscribe(f"{self._inbox}.*") as answers,
            anyio.create_task_group() as tasks,
        ):
            await self.renew_roster()
            task_status.started()
            tasks.start_soon(self._renew)
            async for answer in answers:
                self._receive(answer)

    def kind_of(self, instance: str) -> str | None:
        """Return the kind that the roster vouches for, or None for an unknown instance."""
        return self._kinds.get(instance)

    def kinds(self) -> frozenset[str]:
        """Return the kinds that are alive."""
        return frozenset(self._kinds.values())

    async def ask(self, turn: TurnSettled, *, deadline_ms: int, traceparent: str | None) -> Gathered:
        """Put a settled turn to all live evaluators and wait for one answer of each kind, or the deadline.

        Never raises for what an evaluator does. Without a live evaluator nothing is sent.
        """
        if not self._kinds:
            # Maybe they have just started; if there are none at all, NATS says so at once.
            await self.renew_roster()
        kinds = self.kinds()
        if not kinds:
            return Gathered()
        waited_for = set(kinds - self._not_waited_for)
        ask = _Ask(turn.run, self._host.clock.monotonic(), deadline_ms / 1000, waited_for)
        token = self._remember(ask)
        headers = {TRACE_HEADER: traceparent} if traceparent else {}
        try:
            await self._host.bus.send(
                subjects.turn_settled(turn.project),
                encode(turn),
                reply=f"{self._inbox}.{token}",
                headers=headers,
            )
        except BusError as error:
            missed = [EvaluatorMissed(kind=k, reason="no_answer", detail=type(error).__name__) for k in kinds]
            return Gathered(missed=tuple(missed))
        if ask.waited_for:
            cancel = self._host.clock.call_at(ask.asked_at + ask.deadline_s, ask.complete.set)
            try:
                await ask.complete.wait()
            finally:
                cancel()
        ask.closed = True
        silent = sorted(ask.silent())
        self._not_waited_for.update(silent)
        missed = [
            *self._late.pop(turn.run, ()),
            *ask.missed.values(),
            *(EvaluatorMissed(kind=k, reason="no_answer") for k in silent),
        ]
        return Gathered(tuple(sorted(ask.answers.items())), tuple(sorted(missed, key=lambda m: m.kind)))

    def _remember(self, ask: _Ask) -> str:
        self._count += 1
        token = str(self._count)
        self._asks[token] = ask
        surplus = len(self._asks) - ASKS_REMEMBERED_MAX
        if surplus > 0:
            closed = [other for other, known in self._asks.items() if known.closed]
            for other in closed[:surplus]:
                del self._asks[other]
        return token

    def _receive(self, message: CoreMessage) -> None:
        ask = self._asks.get(message.subject.rpartition(".")[2])
        if ask is None:
            return
        try:
            answer = decode(message.payload, TurnEvaluated)
        except InvalidMessage:
            self._invalid(ask, message)
            return
        kind = self._kinds.get(answer.instance)
        if kind is None:
            ask.miss(EvaluatorMissed(kind="unknown", reason="unknown", detail="not in the roster"))
            return
        latency_s = self._host.clock.monotonic() - ask.asked_at
        in_time = latency_s <= ask.deadline_s
        if in_time:
            self._not_waited_for.discard(kind)
        if not ask.closed:
            ask.answers.setdefault(kind, answer)
            ask.check_complete()
        elif not in_time:
            self._note_late(ask.run, kind, latency_s)

    def _note_late(self, run: str, kind: str, latency_s: float) -> None:
        """Keep a late answer for the facts of its run's next barrier, if the run has one."""
        detail = f"answered after {latency_s * 1000:.0f} ms"
        self._late.setdefault(run, []).append(EvaluatorMissed(kind=kind, reason="late", detail=detail))
        while len(self._late) > ASKS_REMEMBERED_MAX:
            self._late.pop(next(iter(self._late)))

    def _invalid(self, ask: _Ask, message: CoreMessage) -> None:
        """Record a refusal or rubbish; the sender is known only by the header that the service sets."""
        kind = self._kinds.get(message.headers.get(INSTANCE_HEADER, ""), "unknown")
        error = service_error(message)
        detail = f"answered with error {error.code}" if error else "the answer is malformed"
        ask.miss(EvaluatorMissed(kind=kind, reason="invalid", detail=detail))
        ask.check_complete()

    async def _renew(self) -> None:
        while True:
            await self._host.clock.sleep_until(self._host.clock.monotonic() + ROSTER_INTERVAL_S)
            await self.renew_roster()

    async def renew_roster(self) -> None:
        """Ask NATS which evaluators are alive; an instance missing several times in a row is forgotten."""
        try:
            infos = await service_infos(
                self._host.bus, TRIGGER_SERVICE, timeout_s=ROSTER_TIMEOUT_S, clock=self._host.clock
            )
        except BusError as error:
            self._host.log.warning("the roster of evaluators could not be renewed: %s", type(error).__name__)
            return
        alive = {info.id: kind for info in infos if is_kind(kind := info.metadata.get("kind", ""))}
        for instance in self._kinds.keys() - alive.keys():
            self._absences[instance] = self._absences.get(instance, 0) + 1
            if self._absences[instance] >= ROSTER_ABSENCES_MAX:
                del self._kinds[instance], self._absences[instance]
        for instance, kind in alive.items():
            self._absences.pop(instance, None)
            self._kinds[instance] = kind
        self._not_waited_for &= self.kinds()
