"""Every subject of the system, built and parsed in this one place.

An id becomes part of a subject only after `subject_token` has checked it, so no id can widen a permission
(`*`, `>`) or move a message to another subject (`.`). A sender addresses a run (`inbox.<run>.<kind>`) and
never a partition: the server's subject transform inserts the partition when it stores the message, so the
number of partitions is known to supervisors only.
"""

import re

from temporality.protocol.errors import InvalidSubject

PREFIX = "temporality"
TOKEN_LENGTH_MAX = 128
"""Longest id in a subject: keeps a whole subject far below the server's 4 KiB control line."""

_TOKEN = re.compile(r"[A-Za-z0-9_=-]+\Z")

RUNS_ALL = (f"{PREFIX}.run.*.commit", f"{PREFIX}.run.*.operation.*")
INBOX_ALL = (f"{PREFIX}.inbox.*.*", f"{PREFIX}.timer.*.*")
WORK_ALL = (f"{PREFIX}.tool.>", f"{PREFIX}.model.*")
FACTS_ALL = (f"{PREFIX}.fact.>",)
KNOWLEDGE_ALL = (f"{PREFIX}.knowledge.*.*",)
DEAD_ALL = (f"{PREFIX}.dead.>",)

INBOX_KINDS = ("command", "reply", "outcome", "candidate", "timer")


def subject_token(text: str) -> str:
    """Return `text` if it can stand as one token of a subject; raise `InvalidSubject` otherwise."""
    if len(text) > TOKEN_LENGTH_MAX or not _TOKEN.match(text):
        raise InvalidSubject(text)
    return text


def commit(run: str) -> str:
    """Name the subject that holds the commits of `run`."""
    return f"{PREFIX}.run.{subject_token(run)}.commit"


def all_commits() -> str:
    """Name the filter that matches the commits of every run."""
    return f"{PREFIX}.run.*.commit"


def operation(run: str, call: str) -> str:
    """Name the subject that holds the claim and the result of one tool call."""
    return f"{PREFIX}.run.{subject_token(run)}.operation.{subject_token(call)}"


def inbox(run: str, kind: str) -> str:
    """Name the subject to publish a message of `kind` for `run` to."""
    if kind not in INBOX_KINDS:
        raise InvalidSubject(kind)
    return f"{PREFIX}.inbox.{subject_token(run)}.{kind}"


def inbox_partition(partition: int) -> str:
    """Name the filter that matches the stored messages of one partition."""
    return f"{PREFIX}.inbox.{partition}.*.*"


def inbox_transform(partitions: int) -> tuple[str, str]:
    """Return source and destination of the transform that inserts the partition, a hash of the run."""
    destination = f"{PREFIX}.inbox.{{{{partition({partitions},1)}}}}.{{{{wildcard(1)}}}}.{{{{wildcard(2)}}}}"
    return f"{PREFIX}.inbox.*.*", destination


def run_and_kind_of_inbox(stored_subject: str) -> tuple[str, str]:
    """Return run and kind of a stored inbox message (`<prefix>.inbox.<partition>.<run>.<kind>`)."""
    tokens = stored_subject.split(".")
    if len(tokens) != 5 or tokens[:2] != [PREFIX, "inbox"]:
        raise InvalidSubject(stored_subject)
    return tokens[3], tokens[4]


def run_of_commit(subject: str) -> str:
    """Return the run whose commit was stored on `subject`."""
    tokens = subject.split(".")
    if len(tokens) != 4 or tokens[:2] != [PREFIX, "run"] or tokens[3] != "commit":
        raise InvalidSubject(subject)
    return tokens[2]


def timer(run: str, name: str) -> str:
    """Name the schedule subject of one timer of a run; publishing again replaces it, purging cancels it."""
    return f"{PREFIX}.timer.{subject_token(run)}.{subject_token(name)}"


def tool_pool(pool: str) -> str:
    """Name the queue of tool calls that any executor of `pool` may take."""
    return f"{PREFIX}.tool.{subject_token(pool)}"


def model_pool(pool: str) -> str:
    """Name the queue of model calls that any model caller of `pool` may take."""
    return f"{PREFIX}.model.{subject_token(pool)}"


def fact(project: str, run: str, kind: str) -> str:
    """Name the subject of a public fact; the dots of `kind` become dashes to keep one token."""
    return (
        f"{PREFIX}.fact.{subject_token(project)}.{subject_token(run)}.{subject_token(kind.replace('.', '-'))}"
    )


def facts(run: str | None = None) -> str:
    """Name the filter for the public facts of one run, or of all runs."""
    return f"{PREFIX}.fact.*.{subject_token(run)}.*" if run else f"{PREFIX}.fact.>"


def knowledge(project: str | None, item: str) -> str:
    """Name the subject of one knowledge item; items without a project live under `_all`."""
    return f"{PREFIX}.knowledge.{subject_token(project or '_all')}.{subject_token(item)}"


def all_knowledge() -> str:
    """Name the filter that matches every knowledge item."""
    return f"{PREFIX}.knowledge.*.*"


def dead(stream: str, reason: str) -> str:
    """Name the subject of a dead letter that came from `stream`."""
    return f"{PREFIX}.dead.{subject_token(stream)}.{subject_token(reason)}"


def dead_letters(stream: str) -> str:
    """Name the filter that matches the dead letters that came from `stream`."""
    return f"{PREFIX}.dead.{subject_token(stream)}.*"


def turn_settled(project: str) -> str:
    """Name the question put to every live evaluator when a turn has settled."""
    return f"{PREFIX}.turn.settled.{subject_token(project)}"


def all_turns_settled() -> str:
    """Name the subscription of an evaluator that serves every project."""
    return f"{PREFIX}.turn.settled.*"


def hints_find(project: str) -> str:
    """Name the question that a live retriever answers with hints."""
    return f"{PREFIX}.hints.find.{subject_token(project)}"


def all_hints_find() -> str:
    """Name the subscription of a retriever that serves every project."""
    return f"{PREFIX}.hints.find.*"


def ask(actor: str, question: str) -> str:
    """Name a question with a deadline that one live process of `actor` answers."""
    return f"{PREFIX}.ask.{subject_token(actor)}.{subject_token(question)}"
