"""Answers to everything this process asks: one subscription, and a table of who waits for what.

A subscription or a timer per question would cost more than the question. So each question gets a token
under one subject, an answer finds its question by that token, and one timer stands for the earliest
deadline of all. A question that must survive a reconnect keeps its bytes and is sent again with the same
token.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from nats.aio.msg import Msg

from temporality.actors.bus.nats.connection import Connection
from temporality.actors.bus.port import BusError


class DeadlinePassed(Exception):
    """No answer came in time."""


class _Silence(Exception):
    """No answer came to this copy of a question."""


class Waiting:
    """One question under way; `future` gets its answer."""

    __slots__ = (
        "answer",
        "deadline",
        "epoch",
        "future",
        "headers",
        "payload",
        "reply",
        "silence_at",
        "subject",
        "survives",
        "token",
    )

    def __init__(
        self,
        token: str,
        reply: str,
        deadline: float,
        subject: str,
        payload: bytes,
        headers: Mapping[str, str] | None,
        survives: bool,
    ) -> None:
        self.token = token
        self.reply = reply
        self.deadline = deadline
        self.subject = subject
        self.payload = payload
        self.headers = headers
        self.survives = survives
        self.epoch = -1
        self.silence_at = deadline
        self.answer: Any = None
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def receive(self, message: Msg) -> None:
        """Take an answer; this kind is content with the first."""
        self.settle(message)

    def settle(self, answer: Any) -> None:
        """Hand the question its answer, also if it is just about to be asked again."""
        if self.answer is None:
            self.answer = answer
            if not self.future.done():
                self.future.set_result(None)

    def expire(self, now: float) -> float | None:
        """Break off the wait if its time is up; return when to look again, or None if it is over."""
        if self.future.done():
            return None
        due = min(self.deadline, self.silence_at)
        if due > now:
            return due
        self.future.set_exception(DeadlinePassed() if self.deadline <= now else _Silence())
        return None


class Replies:
    """The questions of one connection and the one subscription on which their answers come."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._prefix = connection.client.new_inbox()
        self._waiting: dict[str, Waiting] = {}
        self._counter = 0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        connection.on_close(self._fail_all)
        connection.on_resume(self._send_again)
        connection.name_subjects(lambda: [waiting.subject for waiting in self._waiting.values()])

    async def open(self) -> None:
        """Subscribe for answers; to be called once."""
        await self._connection.subscribe(f"{self._prefix}.*", self._on_reply)

    def inbox(self) -> str:
        """Return a subject nobody else uses, under this user's inbox."""
        return self._connection.client.new_inbox()

    async def ask(
        self,
        subject: str,
        payload: bytes,
        headers: Mapping[str, str] | None,
        *,
        deadline: float,
        survives: bool,
        again_s: float | None = None,
        kind: type[Waiting] = Waiting,
    ) -> Any:
        """Send a question and return what its `kind` makes of the answers.

        `deadline` is a time of the event loop's clock; with `survives` the question is sent again after a
        reconnect, with `again_s` also after that long without an answer. Raises `DeadlinePassed`, or what
        ended the connection.
        """
        connection = self._connection
        connection.check()
        self._counter += 1
        token = str(self._counter)
        reply = f"{self._prefix}.{token}"
        waiting = kind(token, reply, deadline, subject, payload, headers, survives)
        self._waiting[token] = waiting
        try:
            while waiting.answer is None:
                if again_s is not None:
                    waiting.silence_at = self._loop.time() + again_s
                self._watch(min(deadline, waiting.silence_at))
                if connection.client.is_connected or not survives:
                    waiting.epoch = connection.epoch
                    await connection.post(subject, payload, reply, headers)
                try:
                    await waiting.future
                except _Silence:
                    waiting.future = self._loop.create_future()
            return waiting.answer
        finally:
            del self._waiting[token]

    def _on_reply(self, message: Msg) -> None:
        waiting = self._waiting.get(message.subject.rpartition(".")[2])
        if waiting is not None:
            waiting.receive(message)

    async def _send_again(self) -> None:
        for waiting in tuple(self._waiting.values()):
            if waiting.survives and not waiting.future.done() and waiting.epoch != self._connection.epoch:
                waiting.epoch = self._connection.epoch
                await self._connection.post(waiting.subject, waiting.payload, waiting.reply, waiting.headers)

    def _watch(self, deadline: float) -> None:
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        due = [at for waiting in self._waiting.values() if (at := waiting.expire(now)) is not None]
        if due:
            self._watch(min(due))

    def _fail_all(self, error: BusError) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for waiting in self._waiting.values():
            if not waiting.future.done():
                waiting.future.set_exception(error)
