"""The scripted provider, in process: same scripts and same failures as its HTTP server, no network."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Final

import anyio
import msgspec
from anyio import to_thread

from temporality.actors.model.conversation import Conversation, tool_names
from temporality.actors.model.failed_requests import FailedRequests, request_key
from temporality.actors.model.failures import status_failure
from temporality.actors.model.player import CHARACTERS_A_TOKEN, NoRule, play
from temporality.actors.model.provider import CallFailed, ModelReply, ModelRequest
from temporality.actors.model.script import Failure, Script
from temporality.actors.model.script_file import load_script, parse_script
from temporality.protocol.agent import ModelSpec
from temporality.protocol.errors import UserError
from temporality.protocol.model import Usage

SCRIPTS_MAX: Final = 64
"""Parsed scripts kept: one for each agent in use."""


class ScriptedProvider:
    """Answer by the script of the model's specification: its text, or the path of a file."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._scripts: OrderedDict[str, Script] = OrderedDict()
        self._lock = Lock()
        self._failed = FailedRequests()

    async def attempt(self, request: ModelRequest) -> ModelReply:
        """Play the script once; raises `CallFailed`. Ends within `request_timeout_s`."""
        limit_s = request.spec.request_timeout_s
        try:
            with anyio.fail_after(limit_s):
                return await self._attempt(request)
        except TimeoutError as error:
            raise CallFailed("timeout", f"no reply within {limit_s:g} s", retry="later") from error

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""

    async def _attempt(self, request: ModelRequest) -> ModelReply:
        script = await self._script(request.spec)
        conversation = Conversation(
            request.messages, model=request.spec.name, tools=lambda: _offered(request.tools)
        )
        key = request_key(script, request.encoded)
        try:
            played = play(script, conversation, self._failed.of(key))
        except ValueError as error:
            raise CallFailed("provider_error", f"the script failed: {error}") from error
        if isinstance(played, NoRule):
            raise CallFailed("provider_error", played.message, do="add a rule to the script")
        self._failed.record(key, played)
        await anyio.sleep(played.delay_s)
        if isinstance(played.answer, Failure):
            raise await self._failure(played.answer)
        size = sum(map(len, request.encoded)) // CHARACTERS_A_TOKEN
        usage = Usage(input_tokens=size, output_tokens=played.answer.usage.output_tokens)
        return replace(played.answer, usage=usage)

    async def _failure(self, failure: Failure) -> CallFailed:
        if failure.malformed == "truncated":
            return CallFailed("connection", "the answer broke off (scripted)", retry="backoff")
        if failure.malformed is not None:
            return CallFailed("malformed_reply", f"{failure.malformed} (scripted)", retry="once")
        await anyio.sleep(failure.hang_s or 0.0)
        headers = {"retry-after": str(failure.retry_after_s)} if failure.retry_after_s is not None else {}
        return status_failure(
            failure.status or 504,
            message=failure.message or "scripted failure",
            code=failure.code,
            headers=headers,
            now=self._now(),
        )

    async def _script(self, spec: ModelSpec) -> Script:
        try:
            if not spec.script:
                raise UserError("model.script", "is missing", "give a scripted model its script")
            if "\n" in spec.script or spec.script.startswith("{"):
                return self._cached(
                    spec.script, lambda: parse_script(spec.script or "", where="model.script")
                )
            path = Path(spec.script)
            return await to_thread.run_sync(self._from_file, path)
        except UserError as error:
            raise CallFailed("refused", f"{error.where}: {error.what}", do=error.do) from error

    def _from_file(self, path: Path) -> Script:
        try:
            status = path.stat()
        except OSError as error:
            raise UserError(str(path), f"can't be read: {error.strerror}", "check `model.script`") from error
        version = f"{path}:{status.st_mtime_ns}:{status.st_size}"
        return self._cached(version, lambda: load_script(path))

    def _cached(self, version: str, load: Callable[[], Script]) -> Script:
        script = self._scripts.get(version) or load()
        with self._lock:
            self._scripts[version] = script
            self._scripts.move_to_end(version)
            while len(self._scripts) > SCRIPTS_MAX:
                self._scripts.popitem(last=False)
        return script


def _offered(tools: bytes | None) -> Sequence[str]:
    return tool_names(msgspec.json.decode(tools)) if tools else ()
