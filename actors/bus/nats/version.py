"""Which nats-server versions can carry the bus."""

import re

from temporality.protocol.errors import UserError

SERVER_VERSION_MIN = (2, 12, 0)
"""2.12 brought message schedules (timers); batched direct reads need 2.11, stream subject transforms 2.10."""

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


def check_server_version(version: str, where: str = "nats-server") -> None:
    """Raise `UserError` if a server that reports `version` lacks what the bus needs."""
    match = _VERSION.match(version)
    if match is None:
        raise UserError(where, f"its version {version!r} is not a number", "use an official nats-server")
    found = tuple(int(part) for part in match.groups())
    if found < SERVER_VERSION_MIN:
        needed = ".".join(map(str, SERVER_VERSION_MIN))
        raise UserError(where, f"it runs version {version}, older than {needed}", f"upgrade it to {needed}")
