"""The configuration of a deployment: defaults, a file, the environment, in that order; read here only.

One frozen value is passed down from here; no other module reads the environment or a settings file.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, field

from temporality.deploy.yaml_file import read_yaml
from temporality.protocol.errors import UserError
from temporality.protocol.message import Record
from temporality.protocol.strict import convert_strict

CONFIG_FILE = "temporality.yaml"
PREFIX = "TEMPORALITY_"
MISTYPED_LIKENESS = 0.9
"""How like one of ours a variable's name is that was meant to be it; other programs' variables are let be."""
CRASH_VARIABLE = "TEMPORALITY_CRASH_AT"
"""Arms one crash point (`supervisor.committed:3`); for tests that kill a process between two steps."""
CHILD_VARIABLE = "TEMPORALITY_CHILD_CONFIG"
"""Carries the whole configuration, NATS password included, to an actor's process that `up` starts."""

NATS_SCHEMES = frozenset({"nats", "tls", "ws", "wss"})


class EmbeddedNats(Record, frozen=True, kw_only=True):
    """The nats-server that `temporality up` starts; `sync` always survives a power cut."""

    sync: Literal["always", "default"] = "always"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 0


class NatsSettings(Record, frozen=True, kw_only=True):
    """Where NATS is: a `url` (with user and password in it), or the embedded server."""

    url: str | None = None
    embedded: EmbeddedNats = field(default_factory=EmbeddedNats)
    replicas: Annotated[int, Meta(ge=1, le=5)] = 1

    def __post_init__(self) -> None:
        for url in self.url.split(",") if self.url is not None else ():
            parts = urlsplit(url.strip())
            if parts.scheme not in NATS_SCHEMES or not parts.hostname:
                raise ValueError("`url` must be like nats://host:4222, several of them separated by commas")


class ExecutorSettings(Record, frozen=True, kw_only=True):
    """What an executor may start and call, and how long an MCP server may take to start.

    No list means anything under `temporality up`, and nothing for `temporality actor` at a given `nats.url`.
    """

    allow_commands: tuple[str, ...] | None = None
    allow_python: tuple[str, ...] | None = None
    start_timeout_s: Annotated[float, Meta(gt=0, le=600)] = 30.0


class OtelSettings(Record, frozen=True, kw_only=True):
    """Where spans go over OTLP/HTTP; None sends none."""

    endpoint: str | None = None


class Config(Record, frozen=True, kw_only=True):
    """A whole deployment."""

    data_dir: str = ".temporality"
    nats: NatsSettings = field(default_factory=NatsSettings)
    partitions: Annotated[int, Meta(ge=1, le=1_024)] = 16
    lease_ttl_s: Annotated[float, Meta(ge=0.5, le=60)] = 5.0
    executor: ExecutorSettings = field(default_factory=ExecutorSettings)
    otel: OtelSettings = field(default_factory=OtelSettings)

    @property
    def data_path(self) -> Path:
        """Return the folder of everything this deployment keeps on this machine."""
        return Path(self.data_dir)


@dataclass(frozen=True, slots=True)
class Environment:
    """The process's environment, split into what configures us and what tools and models may refer to."""

    variables: Mapping[str, str]

    @property
    def crash_at(self) -> str:
        """Return the armed crash point, "" for none."""
        return self.variables.get(CRASH_VARIABLE, "")


_OVERRIDES: dict[str, tuple[str, ...]] = {
    "DATA_DIR": ("data_dir",),
    "NATS_URL": ("nats", "url"),
    "NATS_SYNC": ("nats", "embedded", "sync"),
    "NATS_PORT": ("nats", "embedded", "port"),
    "NATS_REPLICAS": ("nats", "replicas"),
    "PARTITIONS": ("partitions",),
    "LEASE_TTL_S": ("lease_ttl_s",),
    "ALLOW_COMMANDS": ("executor", "allow_commands"),
    "ALLOW_PYTHON": ("executor", "allow_python"),
    "START_TIMEOUT_S": ("executor", "start_timeout_s"),
    "OTEL_ENDPOINT": ("otel", "endpoint"),
}
"""Which variable (after `TEMPORALITY_`) overrides which key; lists are separated by commas."""


def load_config(environment: Environment, path: Path | None = None) -> Config:
    """Return the configuration; raise `UserError` with file or variable, path and suggestion.

    `path` must exist if given; otherwise `temporality.yaml` of the current folder is read if it is there.
    """
    _refuse_mistyped(environment.variables)
    found = path or (Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None)
    data = read_yaml(found) if found else {}
    convert_strict(data, Config, where=str(found))
    merged: dict[str, Any] = dict(data or {})
    for name, keys in _OVERRIDES.items():
        text = environment.variables.get(PREFIX + name)
        if text is None:
            continue
        _set(merged, keys, _value(text, keys))
        convert_strict(merged, Config, where=f"environment variable {PREFIX}{name}")
    config: Config = convert_strict(merged, Config, where=str(found or "configuration"))
    return config


def handed_down(config: Config, variables: Mapping[str, str], url: str) -> dict[str, str]:
    """Return the environment of a child that works at `url` by this configuration, whatever files say."""
    whole = msgspec.structs.replace(
        config,
        data_dir=str(config.data_path.absolute()),
        nats=msgspec.structs.replace(config.nats, url=url),
    )
    return {**variables, CHILD_VARIABLE: msgspec.json.encode(whole).decode()}


def taken_over(variables: Mapping[str, str]) -> tuple[Config, Environment]:
    """Return what `handed_down` handed to this child; tools and models can't refer to it."""
    config = msgspec.json.decode(variables[CHILD_VARIABLE], type=Config)
    return config, Environment({name: text for name, text in variables.items() if name != CHILD_VARIABLE})


def _refuse_mistyped(variables: Mapping[str, str]) -> None:
    """Refuse a variable that is nearly one of ours: a setting that silently does not hold."""
    known = [PREFIX + name for name in _OVERRIDES] + [CRASH_VARIABLE, CHILD_VARIABLE]
    for name in variables:
        if name.startswith(PREFIX) and name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=MISTYPED_LIKENESS)
            if close:
                raise UserError(f"environment variable {name}", "is not known", f"did you mean {close[0]}?")


def _value(text: str, keys: tuple[str, ...]) -> Any:
    if keys[-1] in ("allow_commands", "allow_python"):
        return [part for part in text.split(",") if part]
    if keys[-1] in ("partitions", "lease_ttl_s", "port", "replicas", "start_timeout_s"):
        try:
            return msgspec.json.decode(text.encode())
        except msgspec.DecodeError:
            return text
    return text


def _set(data: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    *parents, last = keys
    for key in parents:
        child = data.get(key)
        data[key] = dict(child) if isinstance(child, dict) else {}
        data = data[key]
    data[last] = value
