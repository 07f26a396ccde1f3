"""Subjects are built in one place, and no id can widen one or move a message to another."""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporality.protocol import subjects
from temporality.protocol.codec import decode, encode
from temporality.protocol.errors import InvalidMessage, InvalidSubject
from temporality.protocol.identity import RunIdentity, derived_id, new_run_id
from temporality.protocol.run import INBOX_KIND_TYPES, InboxMessage
from temporality.protocol.streams import stream_specs

ROOT = Path(__file__).parents[2]

BAD_IDS = [
    "", ".", "a.b", "*", ">", "a*", "run.>", "a b", "a\tb", "a\n", "\na", "a\r\nPUB x", "a\x00", "прогон",
    "é", "a/b", "a:b", "$JS", "{{wildcard(1)}}", "a" * (subjects.TOKEN_LENGTH_MAX + 1), "１", "a\u200b",
]  # fmt: skip

MAY_SPELL = ("protocol/subjects.py", "actors/conventions.py")
"""Where subjects are built; and where telemetry's names are, which begin with the same word."""

RUN_SUBJECTS: list[Callable[[str], str]] = [
    subjects.commit,
    lambda run: subjects.operation(run, "c"),
    lambda run: subjects.operation("r", run),
    lambda run: subjects.inbox(run, "command"),
    lambda run: subjects.timer(run, "expiry"),
    lambda run: subjects.timer("r", run),
    subjects.tool_pool,
    subjects.model_pool,
    lambda run: subjects.fact("p", run, "run.started"),
    lambda run: subjects.fact(run, "r", "run.started"),
    lambda item: subjects.knowledge("p", item),
    lambda stream: subjects.dead(stream, "malformed"),
    lambda reason: subjects.dead("RUNS", reason),
    subjects.turn_settled,
    subjects.hints_find,
    lambda actor: subjects.ask(actor, "tools"),
    lambda question: subjects.ask("executor", question),
    subjects.dead_letters,
]


@pytest.mark.parametrize("bad", BAD_IDS, ids=ascii)
@pytest.mark.parametrize("build", RUN_SUBJECTS, ids=range(len(RUN_SUBJECTS)))
def test_id_that_is_no_token_is_refused_wherever_it_would_stand(
    build: Callable[[str], str], bad: str
) -> None:
    with pytest.raises(InvalidSubject):
        build(bad)


@pytest.mark.parametrize("bad", [bad for bad in BAD_IDS if bad], ids=ascii)
def test_run_and_project_of_an_identity_are_checked_when_it_is_made_and_when_it_is_read(bad: str) -> None:
    with pytest.raises(InvalidSubject):
        RunIdentity(run=bad)
    with pytest.raises(InvalidSubject):
        RunIdentity(run="r", project=bad)
    with pytest.raises(InvalidMessage):
        decode(encode({"run": bad}), RunIdentity)


def test_message_of_a_run_with_an_impossible_id_is_an_invalid_message() -> None:
    """It goes to the dead letters like any other, instead of ending the actor that reads it."""
    start = {
        "type": "run.start",
        "identity": {"run": "a.b"},
        "agent": {"name": "x", "model": {"name": "y"}},
        "task": "t",
    }
    with pytest.raises(InvalidMessage, match=r"subject token.*\$\.identity"):
        decode(encode(start), InboxMessage)


@given(st.text(max_size=140))
def test_token_is_a_token_or_refused_but_never_changed(text: str) -> None:
    is_token = re.fullmatch(r"[A-Za-z0-9_=-]{1,128}", text, re.ASCII) is not None
    if is_token:
        assert subjects.subject_token(text) == text
    else:
        with pytest.raises(InvalidSubject):
            subjects.subject_token(text)


tokens = st.text(alphabet="abcXYZ019_=-", min_size=1, max_size=20)


@given(tokens, st.sampled_from(subjects.INBOX_KINDS), st.integers(0, 1_023))
def test_stored_inbox_subject_is_parsed_back_into_run_and_kind(run: str, kind: str, partition: int) -> None:
    sent = subjects.inbox(run, kind)
    stored = sent.replace(".inbox.", f".inbox.{partition}.")
    assert subjects.run_and_kind_of_inbox(stored) == (run, kind)


@given(tokens)
def test_commit_subject_is_parsed_back_into_its_run(run: str) -> None:
    assert subjects.run_of_commit(subjects.commit(run)) == run


@pytest.mark.parametrize(
    "subject", ["", "temporality", "temporality.inbox.r.command", "other.inbox.3.r.command"]
)
def test_subject_of_another_shape_is_no_inbox(subject: str) -> None:
    with pytest.raises(InvalidSubject):
        subjects.run_and_kind_of_inbox(subject)


@pytest.mark.parametrize(
    "subject",
    ["temporality.run.r.operation.c", "temporality.run.r", "temporality.fact.r.commit", "x.run.r.commit"],
)
def test_subject_of_another_shape_is_no_commit(subject: str) -> None:
    with pytest.raises(InvalidSubject):
        subjects.run_of_commit(subject)


def test_unknown_inbox_kind_is_refused() -> None:
    with pytest.raises(InvalidSubject):
        subjects.inbox("r", "approval")


# --- every kind carries its own messages and no others ----------------------------------------------------


def test_every_inbox_message_has_exactly_one_kind() -> None:
    listed = [kind for kinds in INBOX_KIND_TYPES.values() for kind in kinds]
    assert sorted(kind.__name__ for kind in listed) == sorted(
        kind.__name__ for kind in get_args(InboxMessage)
    )


def test_every_kind_that_carries_messages_can_be_addressed() -> None:
    assert set(INBOX_KIND_TYPES) <= set(subjects.INBOX_KINDS)


# --- streams keep what is published, questions are in none ------------------------------------------------


def matches(pattern: str, subject: str) -> bool:
    wanted, given_ = pattern.split("."), subject.split(".")
    for index, token in enumerate(wanted):
        if token == ">":
            return len(given_) > index
        if index >= len(given_) or token not in ("*", given_[index]):
            return False
    return len(wanted) == len(given_)


def streams_of(subject: str) -> list[str]:
    return [
        spec.name for spec in stream_specs(16) if any(matches(pattern, subject) for pattern in spec.subjects)
    ]


@pytest.mark.parametrize(
    ("subject", "stream"),
    [
        (subjects.commit("r"), "RUNS"),
        (subjects.operation("r", "c"), "RUNS"),
        *((subjects.inbox("r", kind), "INBOX") for kind in subjects.INBOX_KINDS),
        (subjects.timer("r", "expiry"), "INBOX"),
        (subjects.tool_pool("default"), "WORK"),
        (subjects.model_pool("default"), "WORK"),
        (subjects.fact("p", "r", "run.started"), "FACTS"),
        (subjects.knowledge(None, "i"), "KNOWLEDGE"),
        (subjects.dead("WORK", "failed"), "DEAD"),
    ],
)
def test_stored_subject_lies_in_exactly_one_stream(subject: str, stream: str) -> None:
    assert streams_of(subject) == [stream]


@pytest.mark.parametrize(
    "subject",
    [
        subjects.turn_settled("p"),
        subjects.hints_find("p"),
        subjects.ask("executor", "tools"),
    ],
)
def test_question_lies_in_no_stream(subject: str) -> None:
    """A stream would answer it with its own acknowledgement."""
    assert streams_of(subject) == []


@pytest.mark.parametrize("partitions", [0, 1_025, -1])
def test_inbox_has_one_to_1024_partitions(partitions: int) -> None:
    with pytest.raises(ValueError, match="partitions"):
        stream_specs(partitions)


def test_every_function_that_names_a_subject_begins_with_the_prefix() -> None:
    argument = {
        "partitions": 4,
        "partition": 1,
        "kind": "command",
        "run": "r",
        "stored_subject": None,
        "subject": None,
    }
    for name, function in vars(subjects).items():
        if not inspect.isfunction(function) or name.startswith(("_", "subject_token", "run_and", "run_of")):
            continue
        built: Any = function(
            *(argument.get(parameter, "x") for parameter in inspect.signature(function).parameters)
        )
        for text in [built] if isinstance(built, str) else built:
            assert text.startswith(f"{subjects.PREFIX}."), name


def test_no_other_module_writes_a_subject_as_text() -> None:
    """A subject that is spelled out elsewhere is one that nobody finds when subjects change."""
    wire = re.compile(
        rf"\b{subjects.PREFIX}\.(?:run|inbox|timer|tool|model|fact|knowledge|dead|turn|hints|ask|stream)\."
    )
    found = []
    for package in ("protocol", "storage", "actors", "deploy"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.relative_to(ROOT).as_posix() in MAY_SPELL:
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            found += [
                f"{path.relative_to(ROOT)}:{node.lineno} {node.value!r}"
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in documentation
                and wire.search(node.value)
            ]
    assert found == []


# --- ids --------------------------------------------------------------------------------------------------


@given(st.lists(st.text(max_size=6), max_size=4), st.lists(st.text(max_size=6), max_size=4))
def test_ids_of_different_causes_differ_and_of_equal_ones_are_equal(
    causes: list[str], others: list[str]
) -> None:
    """A49: and joining causes differently is a difference."""
    assert (derived_id("x", *causes) == derived_id("x", *others)) == (causes == others)


def test_ids_can_stand_in_subjects() -> None:
    assert subjects.commit(new_run_id()) != subjects.commit(new_run_id())
    assert subjects.operation("r", derived_id("tc", "r", 1, 0)).count(".") == 4
