"""The errors of the system, split by whose mistake they are.

`UserError` is the caller's: shown as one line (where, what, what to do), never with a traceback.
`ProtocolError` is a peer's: a message that breaks the contract; it goes to the dead letters.
`WorldError` is nobody's: a service that is down, slow or full; retried or reported, by the caller's choice.
Expected outcomes (a tool failed, nothing was found, a race was lost) are messages, not exceptions.
One table maps each kind to its exit code.
"""


class TemporalityError(Exception):
    """Any error that this system raises on purpose."""


class UserError(TemporalityError):
    """A mistake of the person who gave the input: `where` it is, `what` is wrong, what to `do` about it."""

    def __init__(self, where: str, what: str, do: str = "") -> None:
        self.where = where
        self.what = what
        self.do = do
        super().__init__(f"{where}: {what}" + (f" — {do}" if do else ""))


class ProtocolError(TemporalityError):
    """A message or subject that breaks the contract."""


class InvalidSubject(ProtocolError, ValueError):
    """An id or subject that can't be part of the subject space; it makes a message that holds it invalid."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:80]!r} can't be a subject token: use 1 to 128 characters of A-Z a-z 0-9 _ = -"
        )


class InvalidMessage(ProtocolError):
    """A payload that doesn't decode into the message its place calls for."""


class WorldError(TemporalityError):
    """Something outside is down, slow, full or refuses us."""


def fault(error: BaseException) -> str:
    """Describe a fault for a log: its type and place, never its text, which may hold a secret (A47)."""
    place = "unknown place"
    trace = error.__traceback__
    while trace is not None:
        place = f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}"


EXIT_CODES: dict[type[TemporalityError], int] = {UserError: 2, ProtocolError: 3, WorldError: 4}
"""Exit status of a command that ends with an error of this kind; any other exception is ours, and gives 1."""
