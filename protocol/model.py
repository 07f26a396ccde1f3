"""Model calls: the request carries no messages, only how far to fold the run's commits.

The model caller reads the commits up to `upto`, folds the transcript, and reports the digest of what it
sent. So a turn stores only what is new, and provider formats live at one boundary (`actors/model/render`).
"""

from msgspec import field

from temporality.protocol.message import Message, Record


class ProviderCall(Record, frozen=True, kw_only=True):
    """One tool call as the provider gave it: its id, the tool's model-visible name, raw JSON arguments."""

    id: str
    name: str
    arguments: str


class Usage(Record, frozen=True, kw_only=True):
    """Tokens as the provider counted them; 0 where it doesn't say."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


class ModelCall(Message, frozen=True, kw_only=True, tag="model.call"):
    """Ask for the model's next reply (stream WORK, at least once; `call` makes a repeat recognisable).

    `upto` is the number, within the run, of the commit that the transcript ends with; `tools` the blob digest
    of the frozen tool list (None: no tools); `transcript_digest` what the folded transcript must hash to.
    """

    run: str
    call: str
    turn: int
    upto: int
    model: str
    transcript_digest: str
    tools: str | None = None


class ModelCompleted(Message, frozen=True, kw_only=True, tag="model.completed"):
    """Report the model's reply to its run (stream INBOX, kind `reply`); repeats are dropped by call.

    `transcript_digest` is of the messages that the request really held (A26).
    """

    call: str
    transcript_digest: str
    content: str = ""
    tool_calls: tuple[ProviderCall, ...] = ()
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    duration_ms: int = 0


class ModelFailed(Message, frozen=True, kw_only=True, tag="model.failed"):
    """Report that the provider gave no usable reply (stream INBOX, kind `reply`).

    `error_class` is one of unauthorized, rate_limited, provider_error, malformed_reply, timeout, connection,
    refused, transcript_mismatch. With `retry_after_s` the call may be made again after that time; without,
    another try is pointless and the run fails with `message` and what to `do`.
    """

    call: str
    error_class: str
    message: str
    do: str = ""
    retry_after_s: float | None = None
    duration_ms: int = 0


ModelReport = ModelCompleted | ModelFailed
