"""How a stream is kept, as far as a bus decides it beyond the declaration of its subjects."""

import re

import msgspec

from temporality.protocol.streams import BLOBS_BUCKET, Retention, StreamSpec

DEDUPE_WINDOW_S = 120.0
"""A message id is remembered this long: longer than any outage after which a caller still repeats itself."""

SUBSCRIPTION_MESSAGES_MAX = 65_536
"""Core messages may be lost anyway: a reader this far behind loses the newest, and sees how many."""

_BUCKET_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")


class StreamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A stream's declaration with what only buckets and blobs use: an age limit and one value per subject."""

    spec: StreamSpec
    replicas: int = 1
    age_max_s: float = 0.0
    per_subject_max: int = 0

    @property
    def dedupe_window_s(self) -> float:
        """A window longer than the messages' age is refused by the server."""
        return min(DEDUPE_WINDOW_S, self.age_max_s) if self.age_max_s else DEDUPE_WINDOW_S


def bucket_settings(name: str, ttl_s: float, replicas: int) -> StreamSettings:
    """Return the stream of a key-value bucket, laid out as every NATS client lays it out."""
    if not _BUCKET_NAME.match(name):
        raise ValueError(f"{name!r} can't name a bucket: use A-Z a-z 0-9 _ -")
    spec = StreamSpec(
        name=f"KV_{name}", subjects=(f"$KV.{name}.>",), retention=Retention.LIMITS, private=True
    )
    return StreamSettings(spec=spec, replicas=replicas, age_max_s=ttl_s, per_subject_max=1)


def blob_settings(replicas: int) -> StreamSettings:
    """Return the stream that keeps the chunks of blobs."""
    spec = StreamSpec(
        name=BLOBS_BUCKET,
        subjects=(f"{BLOBS_BUCKET}.*.*",),
        retention=Retention.LIMITS,
        private=True,
        compressed=True,
    )
    return StreamSettings(spec=spec, replicas=replicas)
