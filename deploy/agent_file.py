"""Reading an agent's YAML file into the specification that a run carries."""

from pathlib import Path
from typing import Any

from temporality.deploy.yaml_file import read_yaml
from temporality.protocol.agent import AgentSpec
from temporality.protocol.errors import UserError
from temporality.protocol.strict import convert_strict


def load_agent(path: Path) -> AgentSpec:
    """Return the agent that a file describes; raise `UserError` with file, path and suggestion.

    A skill's `path`, relative to the agent's file, is read and travels as its text.
    """
    data = read_yaml(path)
    if not isinstance(data, dict):
        raise UserError(str(path), "an agent is a mapping of keys", "see docs/examples for one")
    if isinstance(data.get("skills"), list):
        skills = [
            _with_text(skill, path, f"{path}: $.skills[{index}]")
            for index, skill in enumerate(data["skills"])
        ]
        data = {**data, "skills": skills}
    agent: AgentSpec = convert_strict(data, AgentSpec, where=str(path))
    return agent


def _with_text(skill: Any, agent_path: Path, where: str) -> Any:
    if not isinstance(skill, dict) or not isinstance(skill.get("path"), str):
        return skill
    if "text" in skill:
        raise UserError(where, "has both `path` and `text`", "give one of them")
    source = agent_path.parent / skill["path"]
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UserError(f"{where}.path", f"{source} can't be read: {reason}", "check the path") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{where}.path", f"{source} is not UTF-8 text", "save it as UTF-8") from error
    return {**{key: value for key, value in skill.items() if key != "path"}, "text": text}
