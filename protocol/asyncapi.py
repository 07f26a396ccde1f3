"""The AsyncAPI document: every subject and message of the system, generated from this package.

    python -m temporality.protocol.asyncapi           print it
    python -m temporality.protocol.asyncapi --check   compare it with docs/asyncapi.json

It is written for people and programs in other languages; nothing here reads it back.
"""

import sys
from pathlib import Path
from typing import Any, get_args

import msgspec

from temporality.protocol import subjects
from temporality.protocol.editorial import KnowledgeRecord
from temporality.protocol.fact import PublicFact
from temporality.protocol.folding import AskPosition, FoldPosition
from temporality.protocol.hint import HintBatch, HintBatchAnswer
from temporality.protocol.message import CAUSE_HEADER, ID_HEADER, SCHEMA_HEADER, SCHEMA_VERSION, TRACE_HEADER
from temporality.protocol.model import ModelCall
from temporality.protocol.run import INBOX_KIND_TYPES, Commit
from temporality.protocol.tool import ListTools, OperationRecord, ToolCall, ToolsAnswer
from temporality.protocol.trigger import TurnEvaluated
from temporality.protocol.turn import TurnSettled

DOCUMENT = Path("docs/asyncapi.json")
_P = subjects.PREFIX

Kinds = tuple[type, ...]

STORED: dict[str, tuple[str, Kinds]] = {
    f"{_P}.run.{{run}}.commit": ("The commits of a run: its truth.", (Commit,)),
    f"{_P}.run.{{run}}.operation.{{call}}": (
        "Claim and result of one tool call.",
        get_args(OperationRecord),
    ),
    **{
        f"{_P}.inbox.{{run}}.{kind}": (f"Messages of kind {kind} to a run.", kinds)
        for kind, kinds in INBOX_KIND_TYPES.items()
    },
    f"{_P}.tool.{{pool}}": ("Tool calls that any executor of the pool may take.", (ToolCall,)),
    f"{_P}.model.{{pool}}": ("Model calls that any model caller of the pool may take.", (ModelCall,)),
    f"{_P}.fact.{{project}}.{{run}}.{{kind}}": ("Public facts, redacted and bounded.", (PublicFact,)),
    f"{_P}.knowledge.{{project}}.{{item}}": ("Records of a knowledge item.", get_args(KnowledgeRecord)),
}
"""Subjects of streams: what is published there."""

ASKED: dict[str, tuple[str, Kinds, Kinds]] = {
    f"{_P}.turn.settled.{{project}}": (
        "Asked of every live evaluator when a turn has settled.",
        (TurnSettled,),
        (TurnEvaluated,),
    ),
    f"{_P}.hints.find.{{project}}": (
        "Asked of one live retriever.",
        (HintBatch,),
        (HintBatchAnswer,),
    ),
    f"{_P}.ask.executor.tools": ("Asked of one live executor.", (ListTools,), get_args(ToolsAnswer)),
    f"{_P}.ask.retriever.position": ("Asked of one live retriever.", (AskPosition,), (FoldPosition,)),
}
"""Subjects of questions: what is asked there, and what is answered."""


def document() -> dict[str, Any]:
    """Return the AsyncAPI 3.0 document as plain values."""
    kinds = sorted(_kinds(), key=lambda kind: kind.__name__)
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    for address, (summary, sent) in STORED.items():
        name = _channel(channels, address, summary, sent)
        operations[f"publish_{name}"] = _operation("send", name)
    for address, (summary, asked, answered) in ASKED.items():
        name = _channel(channels, address, summary, asked)
        reply = _channel(channels, f"{address}#answer", f"Answers to {address}.", answered)
        channels[reply]["address"] = None
        operations[f"ask_{name}"] = {
            **_operation("send", name),
            "reply": {"channel": {"$ref": f"#/channels/{reply}"}},
        }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Temporality",
            "version": str(SCHEMA_VERSION),
            "description": "Messages between the actors, over NATS. Unknown fields are ignored.",
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {
            "messages": {kind.__name__: _message(kind) for kind in kinds},
            "schemas": schemas,
        },
    }


def rendered() -> str:
    """Return the document as the text of its file."""
    return msgspec.json.format(msgspec.json.encode(document(), order="sorted"), indent=1).decode() + "\n"


def _kinds() -> set[type]:
    stored = {kind for _, kinds in STORED.values() for kind in kinds}
    return stored | {kind for _, asked, answered in ASKED.values() for kind in (*asked, *answered)}


def _channel(channels: dict[str, Any], address: str, summary: str, kinds: Kinds) -> str:
    name = (
        address.removeprefix(f"{_P}.").replace("{", "").replace("}", "").replace(".", "_").replace("#", "_")
    )
    parameters = [token[1:-1] for token in address.split("#")[0].split(".") if token.startswith("{")]
    channels[name] = {
        "address": address,
        "description": summary,
        "parameters": {parameter: {} for parameter in parameters},
        "messages": {kind.__name__: {"$ref": f"#/components/messages/{kind.__name__}"} for kind in kinds},
    }
    return name


def _operation(action: str, channel: str) -> dict[str, Any]:
    return {"action": action, "channel": {"$ref": f"#/channels/{channel}"}}


def _message(kind: type) -> dict[str, Any]:
    headers = {name: {"type": "string"} for name in (ID_HEADER, CAUSE_HEADER, SCHEMA_HEADER, TRACE_HEADER)}
    return {
        "description": (kind.__doc__ or "").split("\n")[0],
        "headers": {"type": "object", "properties": headers},
        "payload": {"$ref": f"#/components/schemas/{kind.__name__}"},
    }


def main() -> int:
    """Print the document, or compare it with the file; 1 if they differ or there is none."""
    if "--check" not in sys.argv[1:]:
        sys.stdout.write(rendered())
        return 0
    if DOCUMENT.is_file() and DOCUMENT.read_text(encoding="utf-8") == rendered():
        return 0
    sys.stderr.write(f"{DOCUMENT} differs from protocol/: write it anew with\n")
    sys.stderr.write(f"  python -m temporality.protocol.asyncapi > {DOCUMENT}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
