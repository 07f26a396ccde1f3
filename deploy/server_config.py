"""The configuration of a nats-server that this system starts, written as JSON (a subset of its format)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Sync = Literal["always", "default"]
"""When stored messages reach the disk: before each acknowledgement, or every two minutes (a power cut loses
the acknowledged messages of that time; a killed process does not)."""

PAYLOAD_BYTES_MAX = 1024 * 1024
"""Largest message: a commit is at most 256 KiB and blobs travel in chunks, so 1 MiB bounds the server's
memory per connection without ever being met."""
CONNECTIONS_MAX = 1024
"""Bounds the server's file descriptors; a machine runs tens of actor processes."""
LOG_BYTES_MAX = 10 * 1024 * 1024
"""The server rotates its log at this size, so that an unattended one can't fill the disk."""
MEMORY_STORE_BYTES_MAX = 256 * 1024 * 1024
"""Memory storage holds only the state of ordered readers."""


@dataclass(frozen=True, slots=True)
class ServerUser:
    """A user of the server; None for a list of subjects means that every subject is allowed."""

    name: str
    password: str
    publish: tuple[str, ...] | None = None
    subscribe: tuple[str, ...] | None = None
    allow_responses: bool = False

    def entry(self) -> dict[str, Any]:
        """Return the user's entry in the server's configuration."""
        permissions: dict[str, Any] = {}
        if self.publish is not None:
            permissions["publish"] = {"allow": list(self.publish)}
        if self.subscribe is not None:
            permissions["subscribe"] = {"allow": list(self.subscribe)}
        if self.allow_responses:
            permissions["allow_responses"] = {"max": 64, "expires": "1m"}
        entry: dict[str, Any] = {"user": self.name, "password": self.password}
        if permissions:
            entry["permissions"] = permissions
        return entry


@dataclass(frozen=True, slots=True)
class ClusterRoute:
    """One node's place in a cluster: its route port and the route addresses of all nodes."""

    cluster_name: str
    port: int
    routes: tuple[str, ...]


def server_config(
    folder: Path,
    *,
    name: str,
    port: int,
    sync: Sync,
    users: Sequence[ServerUser],
    cluster: ClusterRoute | None = None,
) -> str:
    """Return the configuration text of one server that keeps everything under `folder` (port −1: any)."""
    jetstream: dict[str, Any] = {
        "store_dir": str(folder / "store"),
        "max_memory_store": MEMORY_STORE_BYTES_MAX,
    }
    if sync == "always":
        jetstream["sync_interval"] = "always"
    config: dict[str, Any] = {
        "server_name": name,
        "listen": f"127.0.0.1:{port}",
        "ports_file_dir": str(folder),
        "log_file": str(folder / "server.log"),
        "logfile_size_limit": LOG_BYTES_MAX,
        "logfile_max_num": 2,
        "max_payload": PAYLOAD_BYTES_MAX,
        "max_connections": CONNECTIONS_MAX,
        "jetstream": jetstream,
        "authorization": {"users": [user.entry() for user in users]},
    }
    if cluster is not None:
        config["cluster"] = {
            "name": cluster.cluster_name,
            "listen": f"127.0.0.1:{cluster.port}",
            "routes": list(cluster.routes),
        }
    return json.dumps(config, indent=1) + "\n"
