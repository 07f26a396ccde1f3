"""A scripted model: replies decided by rules over what a request holds, with no memory of its own.

A script stands in for a model wherever the same input must give the same output: in tests, demonstrations and
benchmarks of behaviour ("if the request holds this knowledge, act on it, else repeat the call"). The first
rule whose conditions all hold gives the reply; if none holds, that is an error and never a silent default.

Everything a rule can ask is read from the request: which turn it is, what was said, what the calls returned,
whether a block is there, how often the rule has replied before (its name is part of the ids of its calls). So
a script gives the same replies after a restart, behind a load balancer and to a redelivered call. The one
exception is `fail: {times: n}`, since a failed request leaves no trace in the next one.

The format is strict (docs/scripted_model.md): an unknown key is an error with its line and a suggestion.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

Positive = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0, le=3_600)]
RuleName = Annotated[str, Meta(pattern="^[a-z][a-z0-9-]{0,15}$")]
"""Short enough for an id of a call to hold it: providers allow 40 characters."""

Scope = Literal["system", "user", "replies", "last_reply", "block", "blocks", "request"]
"""A part of the request's text: see `conversation.py`."""


class Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a script; a key it doesn't know is an error."""


class Range(Strict, frozen=True, kw_only=True):
    """A number from `min` to `max`, both included."""

    min: Count = 0
    max: Count | None = None


class TextTest(Strict, frozen=True, kw_only=True):
    """Conditions on one part of the request; strings are compared exactly, `matches` is a regex (search)."""

    contains: str | tuple[str, ...] = ()
    not_contains: str | tuple[str, ...] = ()
    matches: str | None = None
    present: bool | None = None


Test = TextTest | str | tuple[str, ...] | bool
"""In short: a string or list is `contains`, true or false is `present`."""

Number = Range | Count


class When(Strict, frozen=True, kw_only=True):
    """Conditions of a rule; all that are given must hold.

    `turn` counts the model's replies, this one included; `new_replies` the tool replies since its last one;
    `failed` asks whether one of those is a failure (or of which error class); `called` names a tool that its
    last reply called; `calls` counts the calls of tools so far; `offers` names tools that the request offers.
    """

    system: Test | None = None
    user: Test | None = None
    replies: Test | None = None
    last_reply: Test | None = None
    block: Test | None = None
    blocks: Test | None = None
    request: Test | None = None
    last: Literal["user", "reply", "block"] | None = None
    turn: Number | None = None
    new_replies: Number | None = None
    failed: bool | str | None = None
    called: str | None = None
    calls: dict[str, Number] = field(default_factory=dict)
    offers: str | tuple[str, ...] = ()
    model: str | None = None


class Capture(Strict, frozen=True, kw_only=True):
    """A value for templates: the first group (or all) of the last match of a regex in a part of the request.

    A rule whose capture finds nothing doesn't apply.
    """

    matches: str
    scope: Scope = field(name="in", default="replies")


class CallReplied(Strict, frozen=True, kw_only=True):
    """A call of the reply: its arguments as an object, or raw as a model might get them wrong."""

    name: str
    arguments: dict[str, Any] | None = None
    raw_arguments: str | None = None
    repeat: Annotated[int, Meta(ge=1, le=64)] = 1

    def __post_init__(self) -> None:
        if self.arguments is not None and self.raw_arguments is not None:
            raise ValueError("a call has `arguments` or `raw_arguments`, not both")


class Reply(Strict, frozen=True, kw_only=True):
    """What the model says; `{{name}}` in any string is a capture or `{{turn}}`, `{{name:int}}` a number."""

    content: str = ""
    tool_calls: tuple[CallReplied, ...] = ()
    finish_reason: str | None = None


class Failure(Strict, frozen=True, kw_only=True):
    """A failure instead of a reply: an HTTP `status`, a broken answer, or a long silence; exactly one.

    With `times` only so many requests with these messages fail; then the rule no longer applies to them.
    """

    status: Annotated[int, Meta(ge=400, le=599)] | None = None
    malformed: Literal["json", "html", "no_choices", "truncated"] | None = None
    hang_s: Seconds | None = None
    retry_after_s: Seconds | None = None
    message: str = ""
    code: str | None = None
    times: Positive | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.status, self.malformed, self.hang_s) if value is not None]
        if len(given) != 1:
            raise ValueError("a failure needs exactly one of `status`, `malformed` and `hang_s`")
        if self.status is None and (self.retry_after_s is not None or self.message or self.code):
            raise ValueError("`retry_after_s`, `message` and `code` belong to a failure with a `status`")


class Rule(Strict, frozen=True, kw_only=True):
    """Under which conditions the model gives which reply, or fails how; `delay_s` before either.

    With `times` the rule gives at most so many replies in a conversation.
    """

    when: When = field(default_factory=When)
    reply: Reply | None = None
    fail: Failure | None = None
    name: RuleName | None = None
    capture: dict[str, Capture] = field(default_factory=dict)
    times: Positive | None = None
    delay_s: Seconds = 0.0

    def __post_init__(self) -> None:
        if (self.reply is None) == (self.fail is None):
            raise ValueError("a rule needs exactly one of `reply` and `fail`")
        if self.times is not None and not (self.reply and self.reply.tool_calls):
            raise ValueError("`times` counts replies by their calls: the reply needs `tool_calls`")


class Script(Strict, frozen=True, kw_only=True):
    """A whole script: the name of its model, and the rules in the order in which they are tried."""

    replies: Annotated[tuple[Rule, ...], Meta(min_length=1)]
    model: str = "scripted"

    def name_of(self, index: int) -> str:
        """Return a rule's name; unnamed ones are numbered from 1."""
        return self.replies[index].name or f"rule-{index + 1}"
