"""Asking a retriever: best effort, one deadline, and a breaker that stops paying it every turn (A42).

Only time-outs trip the breaker: a retriever that is absent or broken answers at once and costs nothing. While
it is open, one look-up at a time is let through to see whether the retriever is well again, however many runs
stand at a barrier.
"""

from dataclasses import dataclass

from temporality.actors.bus.port import AnswerTimeout, Bus, BusError, NoResponders
from temporality.actors.clock import Clock
from temporality.actors.host import QuestionRefused
from temporality.actors.supervisor.barrier import LookUp, fault_of
from temporality.actors.supervisor.planning import Plan
from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.errors import InvalidMessage
from temporality.protocol.hint import HintBatch, HintBatchAnswer
from temporality.protocol.message import TRACE_HEADER

BREAKER_TIMEOUTS = 3
"""Time-outs in a row that open the breaker: one may be chance, three are a retriever that hangs."""

BREAKER_OPEN_S = 30.0
"""How long an open breaker skips look-ups before it lets one through again, and only one."""

REFUSAL_CHARACTERS_MAX = 200
ANSWER_BYTES_MAX = 524_288
"""A larger answer is broken: 32 requests with 64 hints of a proposition's usual size are far below."""


@dataclass(slots=True)
class Breaker:
    """Count time-outs in a row; `is_open` at a monotonic moment says whether to skip the look-up."""

    timeouts: int = 0
    opened_at: float = 0.0

    def is_open(self, now: float) -> bool:
        """Return whether look-ups are skipped at `now`; after `BREAKER_OPEN_S` one is let through."""
        return self.timeouts >= BREAKER_TIMEOUTS and now - self.opened_at < BREAKER_OPEN_S

    def asking(self, now: float) -> None:
        """Note that a look-up begins; if it is the one let through, the others wait for what comes of it."""
        if self.timeouts >= BREAKER_TIMEOUTS:
            self.opened_at = now

    def timed_out(self, now: float) -> None:
        """Count a time-out."""
        self.timeouts += 1
        self.opened_at = now

    def answered(self) -> None:
        """Close the breaker: the answer came at once, if only that nobody is there."""
        self.timeouts = 0


class Retrieval:
    """Ask whichever retriever is alive, and turn whatever comes back into a `LookUp`."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._breaker = Breaker()

    @property
    def breaker_open(self) -> bool:
        """Say whether look-ups are being skipped."""
        return self._breaker.is_open(self._clock.monotonic())

    async def look_up(
        self, batch: HintBatch, planned: Plan, *, project: str, deadline_ms: int, traceparent: str | None
    ) -> LookUp:
        """Return what the retriever found, or `timeout` or `error`; never raises for what it does (A42)."""
        started = self._clock.monotonic()
        self._breaker.asking(started)
        headers = {TRACE_HEADER: traceparent} if traceparent else {}
        try:
            answer = await self._bus.request(
                subjects.hints_find(project), encode(batch), timeout_s=deadline_ms / 1000, headers=headers
            )
        except AnswerTimeout:
            self._breaker.timed_out(self._clock.monotonic())
            return LookUp("timeout", retrieval_ms=self._since(started), detail="no answer in time")
        except NoResponders:
            self._breaker.answered()
            return LookUp("error", retrieval_ms=self._since(started), detail="no retriever is running")
        except BusError as error:
            return LookUp("error", retrieval_ms=self._since(started), detail=type(error).__name__)
        self._breaker.answered()
        return _checked(answer.payload, planned, self._since(started))

    def _since(self, started: float) -> int:
        return round((self._clock.monotonic() - started) * 1000)


def _refusal(payload: bytes) -> str:
    """Return why a retriever refused the question, if that is what it says."""
    try:
        return f"refused: {decode(payload, QuestionRefused).message}"[:REFUSAL_CHARACTERS_MAX]
    except InvalidMessage:
        return "the answer is malformed"


def _checked(payload: bytes, planned: Plan, retrieval_ms: int) -> LookUp:
    if len(payload) > ANSWER_BYTES_MAX:
        detail = f"the answer has {len(payload)} bytes; at most {ANSWER_BYTES_MAX} are read"
        return LookUp("error", retrieval_ms=retrieval_ms, detail=detail)
    try:
        results = decode(payload, HintBatchAnswer).results
    except InvalidMessage:
        return LookUp("error", retrieval_ms=retrieval_ms, detail=_refusal(payload))
    fault = fault_of(results, planned)
    if fault is not None:
        return LookUp("error", retrieval_ms=retrieval_ms, detail=fault)
    found = any(result.hints for result in results)
    return LookUp("success" if found else "empty", results, retrieval_ms)
