"""An agent as its author writes it: instructions, model, tools, and how much help it may be given.

The whole specification travels in a run's first message, so a run never depends on a file that may have
changed. Secrets are in it only as `${NAME}` references, resolved by the process that needs them from its
own environment.
"""

from typing import Annotated, Literal

from msgspec import Meta, field

from temporality.protocol.bounds import SKILL_LENGTH_MAX
from temporality.protocol.message import Record
from temporality.protocol.subjects import subject_token

Effect = Literal["none", "idempotent", "once"]
"""What running a call twice would do: nothing, the same thing given the same key, or harm."""

Positive = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]


class ModelSpec(Record, frozen=True, kw_only=True):
    """Which model to ask: `provider` openai (any compatible `base_url`) or scripted (replies of `script`)."""

    provider: Literal["openai", "scripted"] = "openai"
    name: str
    base_url: str | None = None
    api_key: str | None = None
    context_tokens: Positive = 128_000
    params: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    script: str | None = None
    request_timeout_s: Seconds = 300.0


class McpServerSpec(Record, frozen=True, kw_only=True):
    """An MCP server: `command` with `args` and `env` (stdio), or `url` with `headers` (streamable HTTP)."""

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    url: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    read_timeout_s: Seconds = 30.0
    session: Literal["shared", "run"] = "shared"
    effects: dict[str, Effect] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.command is None) == (self.url is None):
            raise ValueError("an MCP server needs exactly one of `command` and `url`")


class ToolsSpec(Record, frozen=True, kw_only=True):
    """The tools of an agent: MCP servers by their key, and Python functions as `package.module:function`."""

    mcp: dict[str, McpServerSpec] = field(default_factory=dict)
    python: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in self.mcp:
            subject_token(key)
            if "__" in key:
                raise ValueError(f"an MCP server's key can't contain `__`: {key!r}")


class PolicySpec(Record, frozen=True, kw_only=True):
    """Tools that must not run: `<server>.<tool>` or the name of a Python function; `*` matches any part."""

    deny: tuple[str, ...] = ()


class SkillSpec(Record, frozen=True, kw_only=True):
    """A named text that the agent works by; an item that it covers is offered last (A21)."""

    name: str
    text: Annotated[str, Meta(max_length=SKILL_LENGTH_MAX)]


class KnowledgeSpec(Record, frozen=True, kw_only=True):
    """Which knowledge is in scope: one project's, and one team's within it."""

    project: str | None = None
    team: str | None = None

    def __post_init__(self) -> None:
        if self.project is not None:
            subject_token(self.project)


class PrimingSpec(Record, frozen=True, kw_only=True):
    """What may be offered before the first request; 0 tokens turn priming off."""

    tokens: Count = 600


class ActivationLimits(Record, frozen=True, kw_only=True):
    """How many activations a turn, a run, one tool and one trigger may have (A32)."""

    turn: Annotated[int, Meta(ge=0, le=32)] = 3
    run: Count = 20
    tool: Count = 5
    trigger: Count = 10


class ActivationTokens(Record, frozen=True, kw_only=True):
    """Tokens that one activation, all activations of a run, and one hint may take (A40)."""

    activation: Count = 400
    run: Count = 1_600
    hint: Count = 120


class ActivationDeadlines(Record, frozen=True, kw_only=True):
    """How long a barrier waits for evaluators and for the retriever."""

    evaluators_ms: Positive = 250
    retrieval_ms: Positive = 800


class ActivationSpec(Record, frozen=True, kw_only=True):
    """What may be offered at turn barriers; `triggers` absent means all that are alive."""

    triggers: tuple[str, ...] | None = None
    limits: ActivationLimits = field(default_factory=ActivationLimits)
    tokens: ActivationTokens = field(default_factory=ActivationTokens)
    hints_max: Count = 8
    deadlines: ActivationDeadlines = field(default_factory=ActivationDeadlines)
    rejected_calls: bool = True


class RunLimits(Record, frozen=True, kw_only=True):
    """How long a run may go on, and how much of one tool reply the model sees."""

    turns_max: Positive = 200
    reply_bytes_max: Annotated[int, Meta(ge=1_024, le=1_048_576)] = 65_536


class AgentSpec(Record, frozen=True, kw_only=True):
    """A whole agent, as its YAML file says it and as a run's first message carries it."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    instructions: Annotated[str, Meta(max_length=65_536)] = ""
    model: ModelSpec
    tools: ToolsSpec = field(default_factory=ToolsSpec)
    policy: PolicySpec = field(default_factory=PolicySpec)
    skills: Annotated[tuple[SkillSpec, ...], Meta(max_length=32)] = ()
    knowledge: KnowledgeSpec = field(default_factory=KnowledgeSpec)
    priming: PrimingSpec = field(default_factory=PrimingSpec)
    activation: ActivationSpec = field(default_factory=ActivationSpec)
    limits: RunLimits = field(default_factory=RunLimits)
