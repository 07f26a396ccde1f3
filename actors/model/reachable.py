"""Whether an agent's model can be reached: asked by `temporality doctor`, before a run finds out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio

from temporality.actors.model.openai import OpenAIProvider
from temporality.actors.model.provider import CallFailed
from temporality.protocol.agent import ModelSpec


@dataclass(frozen=True, slots=True)
class Unreachable:
    """What is wrong, and what to do about it."""

    what: str
    do: str


async def reach_model(
    spec: ModelSpec, environment: Mapping[str, str], *, timeout_s: float
) -> Unreachable | None:
    """Ask the agent's provider which models it has; None if it answers, else what is wrong.

    A provider that has no such list but answers is reachable. Nothing is generated, so nothing is paid.
    """
    if spec.provider == "scripted":
        return None
    provider = OpenAIProvider(environment, now=lambda: datetime.now(UTC))
    try:
        with anyio.fail_after(timeout_s):
            await provider.reach(spec)
    except TimeoutError:
        return Unreachable(f"no answer within {timeout_s:.0f} s", "check `model.base_url` and the network")
    except CallFailed as failed:
        return Unreachable(failed.message, failed.do)
    finally:
        await provider.aclose()
    return None
