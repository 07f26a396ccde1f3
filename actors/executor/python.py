"""Python functions as tools: `package.module:function`, described by their signature.

A plain function runs in a thread, so that a busy one can't stop the heartbeat that keeps its call; an `async`
one runs in the loop and must not block it. The effect is declared on the function itself
(`function.temporality_effect = "none"`), and one that takes `idempotency_key` gets the call's id.

After `python_timeout_s` the call is answered as timed out. An async function is cancelled then. A plain one
can't be: its thread goes on, its result is dropped, and until it returns it keeps one of `threads_max`
places; a call that finds no place in time is answered as timed out too, with effect none.
"""

import asyncio
import importlib
import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import anyio
import msgspec

from temporality.actors.executor.content import Raised, Result, Returned, shorten
from temporality.actors.executor.names import model_name
from temporality.actors.executor.signature import (
    InvalidArguments,
    Signature,
    effect_of,
    signature_of,
)
from temporality.actors.threads import Threads
from temporality.protocol.agent import Effect
from temporality.protocol.codec import encode
from temporality.protocol.errors import UserError
from temporality.protocol.tool import ToolDefinition

TRACEBACK_FRAMES_MAX = 6
"""The last frames are where an error was raised; the ones before are the same for every call."""
TRACEBACK_CHARACTERS_MAX = 8_192
"""An exception may quote a whole file in its message."""


@dataclass(frozen=True, slots=True)
class PythonTool:
    """A function with everything that is known about it from its definition."""

    function: Callable[..., Any]
    signature: Signature
    definition: ToolDefinition

    @property
    def asynchronous(self) -> bool:
        """Say whether calling the function gives a coroutine."""
        return inspect.iscoroutinefunction(self.function)


class PythonTools:
    """The Python functions of one process; each is imported once, at first use."""

    def __init__(self, *, threads_max: int, timeout_s: float, allow: tuple[str, ...] | None) -> None:
        self._threads = Threads(threads_max, name="temporality-tool")
        self._timeout_s = timeout_s
        self._allow = allow
        self._tools: dict[str, PythonTool] = {}

    async def find(self, reference: str) -> PythonTool:
        """Import `package.module:function`; raise `UserError` if that is impossible or not allowed.

        The import runs in a thread: a module may take seconds to load.
        """
        if reference not in self._tools:
            self._check_allowed(reference)
            self._tools[reference] = await anyio.to_thread.run_sync(_load, reference)
        return self._tools[reference]

    def _check_allowed(self, reference: str) -> None:
        module = reference.partition(":")[0]
        if self._allow is not None and reference not in self._allow and module not in self._allow:
            raise UserError(reference, "this executor may not call it", "add it to executor.allow_python")

    async def call(self, reference: str, arguments: Mapping[str, Any], *, effect: Effect, key: str) -> Result:
        """Call a function with JSON arguments; whatever it does, there is a result.

        `key` is the call's id, for functions that take `idempotency_key`.
        """
        try:
            tool = await self.find(reference)
            keywords = tool.signature.bind(arguments, key=key)
        except UserError as error:
            return Raised("unknown_tool", str(error))
        except InvalidArguments as error:
            return Raised("invalid_arguments", str(error))
        return await self._run(tool, keywords, effect)

    async def _run(self, tool: PythonTool, keywords: dict[str, Any], effect: Effect) -> Result:
        started = anyio.Event()
        with anyio.move_on_after(self._timeout_s):
            try:
                if tool.asynchronous:
                    started.set()
                    return returned(await tool.function(**keywords))
                return returned(
                    await self._threads.run(lambda: tool.function(**keywords), started=started.set)
                )
            except asyncio.CancelledError as error:
                if _is_cancelled():
                    raise
                return raised(error)
            except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - a tool may raise anything
                return raised(error)
        unsure = started.is_set() and effect != "none"
        what = "did not return" if started.is_set() else "found no free thread"
        return Raised(
            "timeout", f"{what} within {self._timeout_s:g} s", effect="uncertain" if unsure else "none"
        )


def _is_cancelled() -> bool:
    """Say whether this task is being cancelled, as opposed to a tool that raised CancelledError by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _load(reference: str) -> PythonTool:
    module_name, _, path = reference.partition(":")
    if not module_name or not path:
        raise UserError(
            f"tools.python {reference!r}", "it names no function", "write package.module:function"
        )
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        what = f"the module can't be imported: {type(error).__name__}: {error}"
        raise UserError(f"tools.python {reference}", what, "check the name and the Python path") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise UserError(f"tools.python {reference}", f"{module_name} has no `{path}`", "check the name")
        found = getattr(found, part)
    if not callable(found):
        raise UserError(f"tools.python {reference}", "it is not a function", "name a function")
    where = f"tools.python {reference}"
    signature = signature_of(found, where)
    name = path.rpartition(".")[2]
    definition = ToolDefinition(
        name=model_name(name),
        tool=name,
        description=inspect.getdoc(found) or "",
        parameters=signature.parameters,
        effect=effect_of(found, where),
        python=reference,
    )
    return PythonTool(found, signature, definition)


def returned(value: object) -> Returned:
    """Make a result of what a function returned: text as it is, nothing as "", anything else as JSON too."""
    if isinstance(value, str):
        return Returned(value)
    if value is None:
        return Returned("")
    if isinstance(value, bytes | bytearray | memoryview):
        return Returned(bytes(value).decode(errors="replace"))
    try:
        data = msgspec.to_builtins(value, str_keys=True, enc_hook=str)
        return Returned(encode(data).decode(), data=data)
    except (TypeError, ValueError, RecursionError, UnicodeEncodeError):
        return Returned(str(value))


def raised(error: BaseException) -> Raised:
    """Make a failure of an exception: its class, and a traceback of the tool's own last frames.

    The effect is `none`: a function that raises says that it did not do its work, and is taken at its word.
    """
    trace = _without_our_frames(error.__traceback__)
    try:
        lines = traceback.format_exception(
            type(error), error, trace, limit=-TRACEBACK_FRAMES_MAX, chain=False
        )
        text = "".join(lines).rstrip("\n")
    except Exception:  # noqa: BLE001 - the exception's own __str__ may raise anything
        text = type(error).__name__
    return Raised(type(error).__name__, shorten(text, TRACEBACK_CHARACTERS_MAX))


def _without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    ours = (__name__, Threads.__module__)
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in ours:
        trace = trace.tb_next
    return trace
