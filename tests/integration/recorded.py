"""Requests as the model's HTTP server received them, to the byte."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from temporality.protocol.block import OPENING


class _Line(msgspec.Struct):
    body: msgspec.Raw


class _Body(msgspec.Struct):
    messages: msgspec.Raw


@dataclass(frozen=True)
class Recorded:
    """One request: the bytes of its body, and those of the list of messages in it."""

    body: bytes
    history: bytes

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages, decoded."""
        messages: list[dict[str, Any]] = msgspec.json.decode(self.history)
        return messages

    @property
    def roles(self) -> list[str]:
        """What each message is: its role, or `block` for the one that carries knowledge."""
        return ["block" if is_block(message) else message["role"] for message in self.messages]

    @property
    def blocks(self) -> list[str]:
        """The texts of all blocks."""
        return [message["content"] for message in self.messages if is_block(message)]

    def extends(self, earlier: "Recorded") -> bool:
        """Tell whether this request is the earlier one with messages added at the end, to the byte (A38)."""
        around = [request.body.replace(request.history, b"[]", 1) for request in (earlier, self)]
        return around[0] == around[1] and self.history.startswith(earlier.history[:-1] + b",")


def is_block(message: dict[str, Any]) -> bool:
    """Tell whether a message is a block."""
    return message["role"] == "user" and str(message["content"]).startswith(OPENING)


def recorded(file: Path) -> list[Recorded]:
    """Return all requests, in order."""
    bodies = [msgspec.json.decode(line, type=_Line).body for line in file.read_bytes().splitlines()]
    return [Recorded(bytes(body), bytes(msgspec.json.decode(body, type=_Body).messages)) for body in bodies]
