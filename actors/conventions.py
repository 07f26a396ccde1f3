"""The names of our spans and their attributes: an API that dashboards and alerts are written against.

Names come from the OpenTelemetry semantic conventions, pinned: package opentelemetry-semantic-conventions
0.66b2, schema 1.44.0. Its GenAI names have since moved to a repository of their own; they mean the same. What
the conventions have no word for stands under `temporality.`. A new or changed name gets a line in the
changelog, and `docs/telemetry.md` holds the table that `table()` writes.

Attributes that would hold content (messages, instructions, arguments, results, query texts) are left out on
purpose: spans carry ids, names, counts and durations (A47).
"""

from dataclasses import dataclass
from typing import Final

CONVENTIONS_VERSION: Final = "0.66b2"
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
INSTRUMENTATION: Final = "temporality"

# --- spans ----------------------------------------------------------------------------------------------
INVOKE_AGENT: Final = "invoke_agent"
TURN: Final = "turn"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
RETRIEVAL: Final = "retrieval"
EVALUATE: Final = "evaluate"
FIND_HINTS: Final = "find_hints"
INJECT: Final = "inject"
PROCESS: Final = "process"
SEND: Final = "send"
SETTLE: Final = "settle"

# --- attributes: GenAI ----------------------------------------------------------------------------------
GEN_AI_OPERATION_NAME: Final = "gen_ai.operation.name"
GEN_AI_PROVIDER_NAME: Final = "gen_ai.provider.name"
GEN_AI_AGENT_NAME: Final = "gen_ai.agent.name"
GEN_AI_CONVERSATION_ID: Final = "gen_ai.conversation.id"
GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
GEN_AI_RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
GEN_AI_USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
GEN_AI_USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
GEN_AI_TOOL_NAME: Final = "gen_ai.tool.name"
GEN_AI_TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
GEN_AI_TOOL_TYPE: Final = "gen_ai.tool.type"
GEN_AI_DATA_SOURCE_ID: Final = "gen_ai.data_source.id"

# --- attributes: messaging and errors -------------------------------------------------------------------
MESSAGING_SYSTEM: Final = "messaging.system"
MESSAGING_OPERATION_NAME: Final = "messaging.operation.name"
MESSAGING_OPERATION_TYPE: Final = "messaging.operation.type"
MESSAGING_DESTINATION_TEMPLATE: Final = "messaging.destination.template"
MESSAGING_DESTINATION_NAME: Final = "messaging.destination.name"
MESSAGING_CONSUMER_GROUP_NAME: Final = "messaging.consumer.group.name"
MESSAGING_MESSAGE_ID: Final = "messaging.message.id"
MESSAGING_MESSAGE_BODY_SIZE: Final = "messaging.message.body.size"
MESSAGING_BATCH_MESSAGE_COUNT: Final = "messaging.batch.message_count"
ERROR_TYPE: Final = "error.type"

# --- attributes: ours -----------------------------------------------------------------------------------
RUN_ID: Final = "temporality.run.id"
PROJECT: Final = "temporality.project"
TURN_NUMBER: Final = "temporality.turn"
COMMIT_NUMBER: Final = "temporality.commit.number"
GENERATION: Final = "temporality.generation"
CAUSE_ID: Final = "temporality.cause.id"
DELIVERED: Final = "temporality.message.delivered"
MODEL_CALL_ID: Final = "temporality.model.call.id"
MCP_SERVER: Final = "temporality.mcp.server"
TOOL_OUTCOME: Final = "temporality.tool.outcome"
TOOL_EFFECT: Final = "temporality.tool.effect"
TRIGGER_KIND: Final = "temporality.trigger.kind"
CANDIDATES: Final = "temporality.candidates"
ACTIVATION_ID: Final = "temporality.activation.id"
ACTIVATIONS: Final = "temporality.activations"
SITUATION_KEY: Final = "temporality.situation.key"
RETRIEVAL_RESULT: Final = "temporality.retrieval.result"
MATCHER_VERSION: Final = "temporality.matcher.version"
HINTS_FOUND: Final = "temporality.hints.found"
HINTS_INJECTED: Final = "temporality.hints.injected"
HINT_TOKENS: Final = "temporality.hints.tokens"
FACTS: Final = "temporality.facts"

MESSAGING_SYSTEM_NATS: Final = "nats"

DERIVED_IDS: Final = frozenset(
    {
        GEN_AI_CONVERSATION_ID,
        GEN_AI_TOOL_CALL_ID,
        MESSAGING_MESSAGE_ID,
        RUN_ID,
        CAUSE_ID,
        MODEL_CALL_ID,
        ACTIVATION_ID,
        SITUATION_KEY,
    }
)
"""Attributes that only ever hold ids of our own making: nothing in them can be a secret."""


@dataclass(frozen=True, slots=True)
class Name:
    """One name of the API and what it says; `pinned` ones are taken from the semantic conventions."""

    name: str
    meaning: str
    pinned: bool = False


SPANS: Final = (
    Name(INVOKE_AGENT, "a run, from its start to its end: `invoke_agent <agent>`", True),
    Name(TURN, "a turn: from a model's reply to the next request"),
    Name(CHAT, "one request to the model: `chat <model>`", True),
    Name(EXECUTE_TOOL, "one tool call where it is executed: `execute_tool <tool>`", True),
    Name(RETRIEVAL, "the look-up of one batch, asked by the supervisor", True),
    Name(EVALUATE, "one trigger evaluates one turn: `evaluate <kind>`"),
    Name(FIND_HINTS, "the retriever answers one batch"),
    Name(INJECT, "the barrier puts a block into the history"),
    Name(PROCESS, "an actor handles one message: `process <subject template>`", True),
    Name(SEND, "an actor publishes stored messages", True),
    Name(SETTLE, "an actor settles a delivery", True),
)

ATTRIBUTES: Final = (
    Name(GEN_AI_OPERATION_NAME, "invoke_agent, chat, execute_tool or retrieval", True),
    Name(GEN_AI_PROVIDER_NAME, "provider of the model", True),
    Name(GEN_AI_AGENT_NAME, "name of the agent", True),
    Name(GEN_AI_CONVERSATION_ID, "the run", True),
    Name(GEN_AI_REQUEST_MODEL, "model as requested", True),
    Name(GEN_AI_RESPONSE_FINISH_REASONS, "why the model stopped", True),
    Name(GEN_AI_USAGE_INPUT_TOKENS, "tokens of the request", True),
    Name(GEN_AI_USAGE_OUTPUT_TOKENS, "tokens of the reply", True),
    Name(GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, "tokens of the request read from a cache", True),
    Name(GEN_AI_TOOL_NAME, "the tool's own name, without its server", True),
    Name(GEN_AI_TOOL_CALL_ID, "our id of the call", True),
    Name(GEN_AI_TOOL_TYPE, "`extension` (MCP) or `function` (Python)", True),
    Name(GEN_AI_DATA_SOURCE_ID, "the project whose knowledge is searched", True),
    Name(MESSAGING_SYSTEM, "`nats`", True),
    Name(MESSAGING_OPERATION_NAME, "process, send or settle", True),
    Name(MESSAGING_OPERATION_TYPE, "process, send or settle", True),
    Name(MESSAGING_DESTINATION_TEMPLATE, "the subject with wildcards for ids", True),
    Name(MESSAGING_DESTINATION_NAME, "the stream", True),
    Name(MESSAGING_CONSUMER_GROUP_NAME, "the durable or queue group", True),
    Name(MESSAGING_MESSAGE_ID, "id of the message", True),
    Name(MESSAGING_MESSAGE_BODY_SIZE, "bytes of the message", True),
    Name(MESSAGING_BATCH_MESSAGE_COUNT, "messages sent together", True),
    Name(ERROR_TYPE, "an exception's class or an error class, never its message", True),
    Name(RUN_ID, "the run"),
    Name(PROJECT, "the run's project"),
    Name(TURN_NUMBER, "number of the turn in its run"),
    Name(COMMIT_NUMBER, "number of the commit in its run"),
    Name(GENERATION, "generation of the run"),
    Name(CAUSE_ID, "id of the message that caused this one"),
    Name(DELIVERED, "how often the message has been delivered"),
    Name(MODEL_CALL_ID, "our id of the model call"),
    Name(MCP_SERVER, "key of the MCP server in the configuration"),
    Name(TOOL_OUTCOME, "succeeded, failed, blocked, denied, cancelled or accepted"),
    Name(TOOL_EFFECT, "what is known of a call's effect: none, done or uncertain"),
    Name(TRIGGER_KIND, "kind of the trigger"),
    Name(CANDIDATES, "candidates of a trigger or a barrier"),
    Name(ACTIVATION_ID, "the activation"),
    Name(ACTIVATIONS, "activations of a batch"),
    Name(SITUATION_KEY, "identity of the situation"),
    Name(RETRIEVAL_RESULT, "success, empty, timeout or error"),
    Name(MATCHER_VERSION, "version of the ranking"),
    Name(HINTS_FOUND, "hints the retriever offered"),
    Name(HINTS_INJECTED, "hints in the block"),
    Name(HINT_TOKENS, "tokens of the block"),
    Name(FACTS, "public facts of a commit"),
)


def spanned(span: str, target: str) -> str:
    """Return a span's name with the one low-cardinality word that tells it apart: `chat gpt-5`."""
    return f"{span} {target}" if target else span


def table() -> str:
    """Return the Markdown tables of `docs/telemetry.md`."""
    return "\n".join([*_rows("Span", SPANS), "", *_rows("Attribute", ATTRIBUTES)]) + "\n"


def _rows(title: str, names: tuple[Name, ...]) -> list[str]:
    rows = [
        f"| `{entry.name}` | {entry.meaning} | {'conventions' if entry.pinned else 'ours'} |"
        for entry in names
    ]
    return [f"| {title} | Meaning | Source |", "|---|---|---|", *rows]
