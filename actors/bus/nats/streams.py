"""A stream's settings as JetStream's JSON, created or updated without ever losing messages."""

from typing import Any

from temporality.actors.bus.nats.api import ApiError, JetStreamApi
from temporality.actors.bus.settings import StreamSettings

NAME_IN_USE = 10058
"""The stream exists with another configuration."""
_NS = 1_000_000_000


async def declare(api: JetStreamApi, settings: StreamSettings) -> None:
    """Create the stream, or update it; the server refuses changes that would drop messages."""
    config = stream_config(settings)
    name = settings.spec.name
    try:
        await api.call(f"STREAM.CREATE.{name}", config)
    except ApiError as error:
        if error.fault.err_code != NAME_IN_USE:
            raise
        await api.call(f"STREAM.UPDATE.{name}", config)


def stream_config(settings: StreamSettings) -> dict[str, Any]:
    """Return the configuration: no limit under which the server would drop messages that are wanted."""
    spec = settings.spec
    config: dict[str, Any] = {
        "name": spec.name,
        "subjects": list(spec.subjects),
        "retention": spec.retention.value,
        "storage": "file",
        "num_replicas": settings.replicas,
        # No limit is set, so nothing is discarded; the server wants "old" where it keeps schedules.
        "discard": "old" if spec.schedules else "new",
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_msgs_per_subject": settings.per_subject_max or -1,
        "max_age": int(settings.age_max_s * _NS),
        "duplicate_window": int(settings.dedupe_window_s * _NS),
        "allow_direct": True,
        "compression": "s2" if spec.compressed else "none",
    }
    if spec.transform is not None:
        config["subject_transform"] = {"src": spec.transform[0], "dest": spec.transform[1]}
    if spec.schedules:
        config["allow_msg_schedules"] = True
    return config
