"""How a fact becomes one small row, and the row a fact again.

A run leaves about five facts a turn, and most of their bytes are words that all of them share. So a row keeps
what is looked for in columns, and the rest as JSON deflated against a dictionary of those words: about a
third of its size, and a sixth of the fact as it travels. Times are whole microseconds. The dictionary is part
of the format: a blob begins with the number of the one it was made with, and dictionaries are only added.
"""

import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from temporality.protocol.fact import PublicFact

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

WINDOW_BITS = -11
"""A raw stream with a window of 2 KiB, as long as the dictionary: small, and fast to set up."""

DICTIONARIES = (
    b"",  # number 0 is never used
    b'","entities":0,"topics":0,"operation_id":"reason":"limit_turn","reason":"empty_diagnostic",'
    b'"where":"","what":"","do":"","answer":"","answer_characters":"turns":"agent":"model":"provider":"openai",'
    b'"mcp_servers":1,"python_tools":0,"task":"","task_characters":"session_id":"task_id":"actor_id":"user_id":"'
    b'"team_root":"trace_id":"digest":"","count":"detail":"no_answer","late","invalid",'
    b'"query_digest":"","query_shape":{"query":"tool_input":"tool_result":},"candidates":,"matcher_version":"",'
    b'"detail":"[redacted:","message":"Traceback (most recent call last):\\n  File Error: not found failed '
    b'","knowledge_id":"","revision":1,"tier":"situation","tool+error","terms","matched":{"error":1,"tool":1,'
    b'"word":},"score":0.,"injected":true}]"injected":false,"reason":"budget"}]"duplicate","suppressed",'
    b'"hint-","activation_ids":["act-"],"knowledge_ids":[""],"tokens":,"characters":}]'
    b'["call-","activation_id":"act-","trigger":"tool.failed","source_id":"call-","turn":,"situation_key":"",'
    b'"tool":"","mcp_server":"","error_class":"tool_error"}]["act-","hint_id":"hint-","activation_id":"act-",'
    b'"result":"success","found":1,"selected":1,"injected":1,"tokens":,"retrieval_ms":}]"result":"empty",'
    b'["outcome-",{"turn":,"evaluators":["tool.failed"],"barrier_ms":}]'
    b'["reply-",{"call":"call-","turn":,"tool":"","mcp_server":"","argument_digest":"","effect":"once"}]'
    b'["call-",{"call":"call-","turn":,"outcome":"failed","error_class":"tool_error","effect":"uncertain",'
    b'"message":""outcome":"succeeded","content_bytes":,"duration_ms":}]"effect":"none"}]'
    b'[{"call":"model-","turn":,"attempt":1,"model":"gpt-"}]["model-",{"call":"model-","turn":,"calls":1,'
    b'"content_characters":,"finish_reason":"tool_calls","stop","input_tokens":,"output_tokens":,'
    b'"cached_tokens":0,"transcript_digest":"","duration_ms":}]',
)
DICTIONARY = len(DICTIONARIES) - 1
"""Number of the dictionary that new rows are made with."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(tuple[str | None, dict[str, Any]])


def packed(fact: PublicFact) -> bytes:
    """Return cause and fields of a fact as one blob."""
    deflating = zlib.compressobj(
        6, zlib.DEFLATED, WINDOW_BITS, 3, zlib.Z_DEFAULT_STRATEGY, DICTIONARIES[DICTIONARY]
    )
    content = _encoder.encode((fact.cause, fact.data))
    return bytes([DICTIONARY]) + deflating.compress(content) + deflating.flush()


def unpacked(blob: bytes) -> tuple[str | None, dict[str, Any]]:
    """Return cause and fields of the fact that `blob` was made of."""
    inflating = zlib.decompressobj(WINDOW_BITS, DICTIONARIES[blob[0]])
    return _decoder.decode(inflating.decompress(blob[1:]) + inflating.flush())


def microseconds(at: str) -> int:
    """Return a wall time (RFC 3339, UTC if it names no zone) as microseconds since 1970."""
    moment = datetime.fromisoformat(at)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def rfc3339(at_us: int) -> str:
    """Return microseconds since 1970 as a wall time in UTC (RFC 3339)."""
    return (_EPOCH + at_us * _MICROSECOND).isoformat()
