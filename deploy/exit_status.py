"""How a process of ours ends: the one line that a person reads, and the exit status that a script reads."""

import sys

from temporality.protocol.errors import EXIT_CODES, ProtocolError, TemporalityError

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells give it."""


def status_of(error: BaseException) -> int | None:
    """Return the exit status that `error` calls for, after telling it in one line on standard error.

    None if it is none of ours: a fault of the program keeps its traceback.
    """
    cause = first_of_ours(error)
    if isinstance(cause, KeyboardInterrupt):
        return INTERRUPTED
    if not isinstance(cause, TemporalityError):
        return None
    tell(str(cause) if " — " in str(cause) else f"{cause} — {_what_to_do(cause)}")
    return exit_code(cause)


def _what_to_do(error: TemporalityError) -> str:
    """Return what a person can do about an error that doesn't say so itself."""
    if isinstance(error, ProtocolError):
        return "check that all processes run the same version"
    return "see: temporality doctor"


def tell(words: str) -> None:
    """Write what went wrong to standard error, as one line without secrets whatever it quotes (A47)."""
    from temporality.actors.redaction import redact  # a command that goes well doesn't pay for it

    print(f"temporality: {' '.join(redact(words).text.split())}", file=sys.stderr)


def first_of_ours(error: BaseException) -> BaseException:
    """Return the error to tell of what a task group raised: one of ours if there is one."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [first_of_ours(inner) for inner in error.exceptions]
    return next((leaf for leaf in leaves if isinstance(leaf, TemporalityError)), leaves[0])


def exit_code(error: TemporalityError) -> int:
    """Return the exit status of a command that ends with this error."""
    return next((status for kind, status in EXIT_CODES.items() if isinstance(error, kind)), 1)
