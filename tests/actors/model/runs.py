"""A run whose commits a test writes to a real server, and a model caller that reads them."""

from collections.abc import Mapping
from random import Random

from temporality.actors.bus.port import Bus
from temporality.actors.clock import SystemClock
from temporality.actors.host import Host, Received
from temporality.actors.model.actor import ModelActor, ModelSettings
from temporality.actors.model.retry import Pause
from temporality.actors.tracing import Tracing
from temporality.protocol import subjects
from temporality.protocol.agent import ModelSpec
from temporality.protocol.codec import encode
from temporality.protocol.message import ID_HEADER
from temporality.protocol.model import ModelCall, ModelCompleted, ModelFailed
from temporality.protocol.run import (
    Commit,
    ModelReplied,
    RequestedCall,
    RunFact,
    ToolReplied,
)
from temporality.protocol.tool import ToolOutcome, ToolSucceeded
from temporality.protocol.transcript import EMPTY_DIGEST, OpenTurn, extend_digest, fold

from .histories import called, started

HELLO = 'replies: [{reply: {content: "hello"}}]\n'


class Run:
    """A run as its supervisor would commit it."""

    def __init__(self, bus: Bus, run: str = "run-1") -> None:
        self.bus = bus
        self.run = run
        self.number = 0
        self.digest = EMPTY_DIGEST
        self._turn = OpenTurn()
        self._position = 0

    async def commit(self, *facts: RunFact, number: int | None = None) -> None:
        """Store one commit; `number` only to break the order."""
        for fact in facts:
            self._turn, messages = fold(self._turn, fact)
            self.digest = extend_digest(self.digest, messages)
        self.number += 1
        commit = Commit(
            id=f"c-{self.number}",
            run=self.run,
            number=number or self.number,
            predecessor=self._position,
            at="2026-11-20T12:00:00Z",
            facts=facts,
        )
        published = await self.bus.publish(
            subjects.commit(self.run), encode(commit), expected_last=self._position
        )
        self._position = published.sequence

    async def start(self, model: ModelSpec, task: str = "do it") -> ModelCall:
        """Commit the start and the first call of the model."""
        await self.commit(started(task, "be brief", model), called(1))
        return self.call(1)

    async def turn(self, number: int, *outcomes: ToolOutcome) -> ModelCall:
        """Commit a reply with a call for each outcome, the outcomes, and the next call of the model."""
        calls = tuple(
            RequestedCall(call=f"c-{number}-{i}", provider_call_id=f"p{i}", name="look", arguments="{}")
            for i in range(len(outcomes))
        )
        await self.commit(ModelReplied(call=f"m-{number}", turn=number, calls=calls))
        replies = [
            ToolReplied(call=call.call, turn=number, outcome=outcome)
            for call, outcome in zip(calls, outcomes, strict=True)
        ]
        await self.commit(*reversed(replies), called(number + 1))
        return self.call(number + 1)

    def call(self, turn: int, *, tools: str | None = None) -> ModelCall:
        """Return the call of the model that the last commit owes."""
        return ModelCall(
            run=self.run,
            call=f"m-{turn}",
            turn=turn,
            upto=self.number,
            model="demo",
            transcript_digest=self.digest,
            tools=tools,
        )


def received(call: ModelCall, *, delivered: int = 1) -> Received[ModelCall]:
    """Return a call as the host hands it to its actor."""
    return Received(
        message=call,
        id=f"{call.run}.{call.upto}",
        cause=None,
        traceparent=None,
        subject=subjects.model_pool("default"),
        sequence=1,
        delivered=delivered,
    )


async def answer(actor: ModelActor, call: ModelCall, *, delivered: int = 1) -> ModelCompleted | ModelFailed:
    """Return an actor's report on a call."""
    (send,) = await actor.handle(received(call, delivered=delivered))
    assert send.subject == subjects.inbox(call.run, "reply")
    assert isinstance(send.message, ModelCompleted | ModelFailed)
    return send.message


async def enqueue(bus: Bus, call: ModelCall, message_id: str) -> None:
    """Put a call into the model callers' queue."""
    await bus.publish(
        subjects.model_pool("default"), encode(call), message_id=message_id, headers={ID_HEADER: message_id}
    )


async def no_pause(_: float) -> None:
    """Go on at once."""


def model_actor(
    bus: Bus,
    environment: Mapping[str, str] | None = None,
    *,
    tracing: Tracing | None = None,
    pause: Pause = no_pause,
) -> ModelActor:
    """Return a model caller that doesn't spend the pauses between its attempts."""
    host = Host(bus, actor="model", name="model-test", clock=SystemClock(), tracing=tracing or Tracing())
    return ModelActor(host, ModelSettings(environment=environment or {}), random=Random(3), pause=pause)


def scripted(script: str = HELLO) -> ModelSpec:
    """Return a model that answers by script, in process."""
    return ModelSpec(provider="scripted", name="demo", script=script)


SUCCESS = ToolSucceeded(content="fine")
