"""The executor's configuration, with the units and the reason of each limit."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """How one executor works; every limit says what it protects.

    `environment` resolves `${NAME}` references and is the only source of secrets. `allow_commands` lists the
    commands that may be started (a bare name or a whole path, exactly as the agent writes it), None: any.
    `allow_python` lists the modules (`package.module`) or functions (`package.module:function`) that may be
    called, None: any.
    """

    pool: str = "default"
    concurrency: int = 64
    """Calls at once: each holds a delivery and, at worst, one reply in memory."""
    environment: Mapping[str, str] = field(default_factory=dict)
    allow_commands: tuple[str, ...] | None = None
    allow_python: tuple[str, ...] | None = None
    start_timeout_s: float = 30.0
    """A server that has not answered the handshake by then is taken for hung."""
    session_idle_s: float = 600.0
    """A server that nobody called for so long is closed; the next call starts it again."""
    sessions_max: int = 64
    """Servers at once: each stdio server is a process."""
    threads_max: int = 32
    """Python functions at once; one that never returns keeps its place, so no more than these can hang."""
    python_timeout_s: float = 600.0
    """After this a Python function's call is answered as timed out."""
