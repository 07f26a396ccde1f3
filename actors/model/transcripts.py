"""The rendered transcript of a run, kept between its calls and extended by what is new.

A model call names a commit and the digest that the transcript up to it must have. The run's commits are read
from where the last call left off, folded with the same function as the supervisor's, rendered message by
message and checked against the provider's rules as they come. So a turn costs what the turn added, and the
bytes of earlier messages are the very bytes that were sent before (A38).

The cache is never trusted further than the digest: if what it leads to differs, it is dropped and the run is
folded from its first commit once; if that differs too, the call is not made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from anyio import Lock

from temporality.actors.bus.port import Bus, Stored
from temporality.actors.clock import Clock
from temporality.actors.model.blobs import LAG_MAX_S, Blobs
from temporality.actors.model.lru import ByteBounded
from temporality.actors.model.patience import Patience
from temporality.actors.model.provider import CallFailed
from temporality.actors.model.render.checks import OpenAIHistory, RuleBroken
from temporality.actors.model.render.openai import render_message
from temporality.protocol import subjects
from temporality.protocol.agent import AgentSpec
from temporality.protocol.codec import decode, encode
from temporality.protocol.model import ModelCall
from temporality.protocol.run import Commit, RunStarted
from temporality.protocol.streams import RUNS
from temporality.protocol.tool import blob_of
from temporality.protocol.transcript import (
    EMPTY_DIGEST,
    CallReply,
    OpenTurn,
    TranscriptMessage,
    extend_digest,
    fold,
)

TRANSCRIPTS_BYTES_MAX: Final = 268_435_456
"""Rendered messages kept, of all runs: about a thousand runs of 250 KB."""

COMMITS_READ_MAX: Final = 256
"""Commits of one read: bounds what a cold start holds in memory at once to 64 MiB."""


class _Gap(Exception):
    """The commits read don't follow the ones folded before."""


@dataclass(frozen=True, slots=True)
class RenderedTranscript:
    """What a request holds: the agent it is made for, and its messages, as objects and as JSON."""

    agent: AgentSpec
    digest: str
    messages: Sequence[dict[str, Any]]
    encoded: Sequence[bytes]


class _RunTranscript:
    """One run folded up to commit `number`, which is stored at sequence `position`."""

    def __init__(self) -> None:
        self.agent: AgentSpec | None = None
        self.number = 0
        self.position = 0
        self.turn = OpenTurn()
        self.digest = EMPTY_DIGEST
        self.history = OpenAIHistory()
        self.messages: list[dict[str, Any]] = []
        self.encoded: list[bytes] = []
        self.bytes = 0

    async def extend(self, stored: Sequence[Stored], upto: int, blobs: Blobs, patience: Patience) -> None:
        """Fold commits up to number `upto`. All of it, or (on any error) nothing of it."""
        agent, number, position, turn = self.agent, self.number, self.position, self.turn
        appended: list[TranscriptMessage] = []
        for item in stored:
            if number == upto:
                break
            commit: Commit = decode(item.payload, Commit)
            if commit.number != number + 1:
                raise _Gap(f"commit {commit.number} follows commit {number}")
            for fact in commit.facts:
                if isinstance(fact, RunStarted):
                    agent = fact.agent
                turn, messages = fold(turn, fact)
                appended += messages
            number, position = commit.number, item.sequence
        contents = {
            message.call: await blobs.text(blob.digest, patience)
            for message in appended
            if isinstance(message, CallReply) and (blob := blob_of(message.outcome)) is not None
        }
        rendered = [render_message(message, contents) for message in appended]
        said = [message for message in rendered if message is not None]
        history = self.history
        for message in said:
            history = history.after(message)
        self.agent, self.number, self.position, self.turn = agent, number, position, turn
        self.digest = extend_digest(self.digest, tuple(appended))
        self.history = history
        encoded = [encode(message) for message in said]
        self.messages += said
        self.encoded += encoded
        self.bytes += sum(map(len, encoded))


class _Entry:
    """A place in the cache: one call of a run at a time extends its transcript."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.transcript = _RunTranscript()


class Transcripts:
    """Build the transcripts that model calls ask for; one instance for a process."""

    def __init__(
        self, bus: Bus, clock: Clock, blobs: Blobs, *, bytes_max: int = TRANSCRIPTS_BYTES_MAX
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._blobs = blobs
        self._entries: ByteBounded[_Entry] = ByteBounded(bytes_max)

    async def of(self, call: ModelCall) -> RenderedTranscript:
        """Return the transcript of a call, proven by its digest (A26) and by the provider's rules (A2).

        Raises `CallFailed` (transcript_mismatch), after `LAG_MAX_S` if something is missing; `BusError`.
        """
        entry = self._entries.get(call.run) or _Entry()
        async with entry.lock:
            try:
                entry.transcript = await self._proven(entry.transcript, call)
            except RuleBroken as error:
                self._entries.drop(call.run)
                message = f"the history breaks a rule of the provider at {error}"
                raise CallFailed("transcript_mismatch", message, do="report this") from error
            transcript = entry.transcript
            self._entries.put(call.run, entry, transcript.bytes)
            if transcript.agent is None:
                raise CallFailed("transcript_mismatch", "the run's first commit does not start it")
            return RenderedTranscript(
                agent=transcript.agent,
                digest=transcript.digest,
                messages=tuple(transcript.messages),
                encoded=tuple(transcript.encoded),
            )

    async def _proven(self, cached: _RunTranscript, call: ModelCall) -> _RunTranscript:
        """Return the cached transcript extended, or one folded anew: the first that has the digest."""
        patience = Patience(self._clock, LAG_MAX_S)
        if 0 < cached.number <= call.upto:
            try:
                await self._extend(cached, call, patience)
            except (_Gap, RuleBroken):
                pass
            else:
                if cached.digest == call.transcript_digest:
                    cached.history.require_sendable()
                    return cached
        fresh = _RunTranscript()
        try:
            await self._extend(fresh, call, patience)
        except _Gap as error:
            message = f"commits of the run are missing: {error}"
            raise CallFailed("transcript_mismatch", message) from error
        if fresh.digest != call.transcript_digest:
            message = f"the commits up to {call.upto} fold to another transcript than the call was decided on"
            raise CallFailed("transcript_mismatch", message)
        fresh.history.require_sendable()
        return fresh

    async def _extend(self, transcript: _RunTranscript, call: ModelCall, patience: Patience) -> None:
        subject = subjects.commit(call.run)
        while transcript.number < call.upto:
            stored = await self._bus.read(
                RUNS, subject, after=transcript.position, count_max=COMMITS_READ_MAX
            )
            if stored:
                await transcript.extend(stored, call.upto, self._blobs, patience)
            elif not await patience.wait():
                message = f"commit {call.upto} can't be read; the last one seen is {transcript.number}"
                raise CallFailed("transcript_mismatch", message, retry="later", retry_after_s=LAG_MAX_S)
