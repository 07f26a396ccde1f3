"""What `temporality doctor` looks at: each check says what it found and, if that is wrong, what to do."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from temporality.actors.bus.nats import check_server_version
from temporality.actors.bus.port import AnswerTimeout, Bus, BusError, NoResponders
from temporality.actors.bus.service import service_infos
from temporality.deploy.assembly import open_bus
from temporality.deploy.config import Config, Environment
from temporality.deploy.local import server_url
from temporality.protocol import subjects
from temporality.protocol.agent import AgentSpec
from temporality.protocol.codec import decode, encode
from temporality.protocol.errors import InvalidMessage, TemporalityError, UserError
from temporality.protocol.hint import HintBatch, HintBatchAnswer, HintRequest
from temporality.protocol.streams import stream_specs
from temporality.protocol.tool import ListTools, ToolsAnswer, ToolsListed
from temporality.protocol.trigger import TRIGGER_SERVICE

CONNECT_TIMEOUT_S = 3.0
DISK_FREE_BYTES_MIN = 256 * 1024 * 1024
ROSTER_TIMEOUT_S = 0.5
QUESTION_TIMEOUT_S = 2.0
TOOLS_TIMEOUT_S = 60.0
PROVIDER_TIMEOUT_S = 10.0
START_ALL = "start all actors: temporality up"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: whether it is right, what was found, and what to do if it isn't."""

    name: str
    right: bool
    found: str
    do: str = ""


async def checks(config: Config, environment: Environment, agent: AgentSpec | None) -> AsyncIterator[Check]:
    """Look at everything that a run needs, in the order in which it is needed; never raises for what it
    finds.
    """
    yield _data_folder(config.data_path)
    async for check in _nats(config, agent):
        yield check
    if agent is not None:
        yield await _model(agent, environment.variables)


async def _nats(config: Config, agent: AgentSpec | None) -> AsyncIterator[Check]:
    try:
        url = server_url(config)
        where = url.rpartition("@")[2]
        async with open_bus(url, name="temporality-doctor", timeout_s=CONNECT_TIMEOUT_S) as bus:
            yield await _version(bus, where)
            async for check in _deployment(bus, config, agent):
                yield check
    except TemporalityError as error:
        found, _, do = str(error).partition(" — ")
        yield Check("NATS", False, found, do or "check that the server runs, and nats.url")


def _data_folder(path: Path) -> Check:
    name = "data folder"
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            free = shutil.disk_usage(path).free
    except OSError as error:
        return Check(name, False, f"{path}: {error.strerror}", "check its rights, or set data_dir")
    if free < DISK_FREE_BYTES_MIN:
        return Check(name, False, f"{path}: {free >> 20} MiB free", "make room, or set data_dir")
    return Check(name, True, f"{path}: {free >> 30} GiB free")


async def _version(bus: Bus, where: str) -> Check:
    version = await bus.server_version()
    try:
        check_server_version(version, where)
    except UserError as error:
        return Check("NATS", False, error.what, error.do)
    return Check("NATS", True, f"{where}, version {version}")


async def _deployment(bus: Bus, config: Config, agent: AgentSpec | None) -> AsyncIterator[Check]:
    for spec in stream_specs(config.partitions):
        try:
            await bus.last(spec.name, ">")
            yield Check(f"stream {spec.name}", True, "is there")
        except BusError as error:
            yield Check(f"stream {spec.name}", False, str(error), START_ALL)
    infos = await service_infos(bus, TRIGGER_SERVICE, timeout_s=ROSTER_TIMEOUT_S)
    kinds = sorted({info.metadata.get("kind", "?") for info in infos})
    yield Check("evaluators", bool(kinds), ", ".join(kinds) or "none is alive", "" if kinds else START_ALL)
    yield await _retriever(bus)
    yield await _tools(bus, agent)


async def _retriever(bus: Bus) -> Check:
    question = HintBatch(requests=(HintRequest(query="doctor", activation_id="doctor"),))
    try:
        answer = await bus.request(
            subjects.hints_find("default"), encode(question), timeout_s=QUESTION_TIMEOUT_S
        )
        version = decode(answer.payload, HintBatchAnswer).results[0].matcher_version
    except NoResponders:
        return Check("retriever", False, "none is alive", START_ALL)
    except (AnswerTimeout, InvalidMessage) as error:
        return Check("retriever", False, f"gave no usable answer: {type(error).__name__}", "read its log")
    return Check("retriever", True, f"answers, matcher {version}")


async def _tools(bus: Bus, agent: AgentSpec | None) -> Check:
    tools = agent.tools if agent else None
    question = ListTools(mcp=tools.mcp, python=tools.python) if tools else ListTools()
    name = "tools" if agent else "executor"
    try:
        reply = await bus.request(
            subjects.ask("executor", "tools"), encode(question), timeout_s=TOOLS_TIMEOUT_S
        )
        answer: ToolsAnswer = decode(reply.payload, ToolsAnswer)
    except NoResponders:
        return Check(name, False, "no executor is alive", START_ALL)
    except (AnswerTimeout, InvalidMessage) as error:
        return Check(name, False, f"gave no usable answer: {type(error).__name__}", "read its log")
    if isinstance(answer, ToolsListed):
        count = len(answer.tools)
        return Check(name, True, f"{count} tools" if agent else "answers")
    return Check(name, False, f"{answer.where}: {answer.what}", answer.do)


async def _model(agent: AgentSpec, variables: Mapping[str, str]) -> Check:
    from temporality.actors.model.reachable import reach_model

    fault = await reach_model(agent.model, variables, timeout_s=PROVIDER_TIMEOUT_S)
    if fault is None:
        return Check("model", True, f"{agent.model.name} is reachable")
    return Check("model", False, fault.what, fault.do)
