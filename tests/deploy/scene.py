"""What tests of the command line act on: a running deployment, its agents, a model that answers by script."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from .command_line import Running

SERVER = Path(__file__).parents[1] / "actors" / "executor" / "servers" / "misbehaving.py"
"""An MCP server over stdio, fast to start, that behaves as its first argument says."""

SCRIPT = """
replies:
  - {when: {user: no key}, fail: {status: 401, message: the key is wrong}}
  - {when: {user: no model}, fail: {status: 404}}
  - {when: {user: too many}, fail: {status: 429, retry_after_s: 0.2, times: 1}}
  - {when: {user: down once}, fail: {status: 500, times: 1}}
  - {when: {user: garbage once}, fail: {malformed: json, times: 1}}
  - {when: {user: garbage always}, fail: {malformed: json}}
  - when: {user: unknown tool, turn: 1}
    reply: {tool_calls: [{name: no_such_tool, arguments: {}}]}
  - when: {user: broken arguments, turn: 1}
    reply: {tool_calls: [{name: raw__t, raw_arguments: '{"path": '}]}
  - when: {user: call the tool, turn: 1}
    reply: {tool_calls: [{name: raw__t, arguments: {}}]}
  - {when: {user: take your time, turn: 1}, delay_s: 1, reply: {content: Done at last.}}
  - {when: {user: long answer}, reply: {content: "LONG"}}
  - reply: {content: "An answer [with] brackets."}
""".replace("LONG", "word " * 400)


@dataclass(frozen=True)
class Deployment:
    """A folder with a configuration, where commands are given, and what runs on it."""

    folder: Path
    config: Path
    model_url: str
    process: Running

    def agent(self, name: str = "tester", **settings: object) -> Path:
        """Write an agent that asks the scripted model; return its file."""
        return write_agent(self.folder / f"{name}.yaml", self.model_url, **settings)


def write_agent(path: Path, model_url: str, **settings: object) -> Path:
    """Write an agent's file (JSON is YAML)."""
    model = {"name": "scripted", "base_url": model_url, "api_key": "${MODEL_KEY}"}
    path.write_text(json.dumps({"name": path.stem, "model": model, **settings}), encoding="utf-8")
    return path


def mcp_server(mode: str = "fine") -> dict[str, object]:
    """Return the specification of an MCP server that behaves as `mode` says."""
    return {"command": sys.executable, "args": [str(SERVER), mode]}


def write_config(folder: Path, **settings: object) -> Path:
    """Write a configuration for a deployment that is quick to start and to notice a death."""
    config = {
        "data_dir": str(folder / "data"),
        "nats": {"embedded": {"sync": "default"}},
        "partitions": 4,
        "lease_ttl_s": 1,
        "executor": {"start_timeout_s": 3},
        **settings,
    }
    path = folder / "temporality.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path
