"""Bytes to messages and back: JSON, readable with any NATS tool, decoded and checked in one step."""

from functools import cache
from typing import Any

import msgspec

from temporality.protocol.errors import InvalidMessage

_encoder = msgspec.json.Encoder()
_canonical_encoder = msgspec.json.Encoder(order="deterministic")


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def encode(message: object) -> bytes:
    """Return the JSON of a message."""
    return _encoder.encode(message)


def encode_canonical(value: object) -> bytes:
    """Return JSON with object keys sorted: equal values give equal bytes, so their digests compare."""
    return _canonical_encoder.encode(value)


def raw(message: object) -> msgspec.Raw:
    """Return a message encoded once, to be embedded in another without decoding it again."""
    return msgspec.Raw(_encoder.encode(message))


def decode(payload: bytes, kind: Any) -> Any:
    """Return the message of type `kind` (a struct, or a union of tagged ones) that `payload` holds.

    Raises `InvalidMessage` with the path of the first field that is wrong; unknown fields are ignored.
    """
    try:
        return _decoder(kind).decode(payload)
    except (msgspec.MsgspecError, ValueError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMessage(str(error)[:500]) from error
