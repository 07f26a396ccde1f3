"""`probe …`: one JSON line out for each line in, in order, whatever the lines hold."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from temporality.actors.redaction import probe as redact_probe
from temporality.deploy import probing
from temporality.deploy.probing import serve_lines
from temporality.protocol import fingerprint
from temporality.protocol.hint import HintRequest

from . import command_line
from .command_line import Here

ITEMS = (
    {
        "knowledge_id": "trunk",
        "proposition": "The default branch is trunk; compare a feature branch with target trunk.",
        "tools": ["git_diff"],
        "error_classes": ["tool_error"],
        "example_errors": ["{}\nRef 'main' did not resolve to an object"],
        "scope": {"project": "demo"},
    },
    {"knowledge_id": "vetka", "proposition": "Ветка по умолчанию называется trunk, сравнивать с ней."},
    {"knowledge_id": "branches", "proposition": "A feature branch is merged by two reviewers."},
)
HINT_KEYS = {
    "hint_id", "knowledge_id", "proposition", "tier", "matched", "score", "state", "scope", "cautions",
}  # fmt: skip


@pytest.fixture
def knowledge(tmp_path: Path) -> Path:
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in ITEMS), encoding="utf-8")
    return path


def fingerprints(*lines: bytes) -> tuple[bool, list[dict[str, Any]]]:
    return served(fingerprint.FingerprintRequest, fingerprint.probe, *lines)


def served(kind: Any, answer: Any, *lines: bytes) -> tuple[bool, list[dict[str, Any]]]:
    out = io.BytesIO()
    good = serve_lines([line + b"\n" for line in lines], out, kind, answer)
    return good, [json.loads(line) for line in out.getvalue().splitlines()]


def hints(knowledge: Path, *lines: object, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Ask the program; all lines are good."""
    stdin = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
    done = command_line.run(
        "probe", "hints", "--knowledge", knowledge, *options, cwd=knowledge.parent, stdin=stdin
    )
    assert (done.status, done.err) == (0, "")
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert len(answers) == len(lines)
    return answers


def test_lines_are_answered_one_for_one_in_order_and_a_bad_one_does_not_stop_the_next() -> None:
    good, answers = fingerprints(b'{"text": "a 1"}', b"nonsense", b'{"text": "b"}', b'{"text": "a 2"}')
    assert not good
    assert [sorted(answer) for answer in answers] == [
        ["key", "normalized", "version"],
        ["error"],
        ["key", "normalized", "version"],
        ["key", "normalized", "version"],
    ]
    assert answers[0]["key"] == answers[3]["key"] != answers[2]["key"]


def test_empty_lines_are_no_lines() -> None:
    assert fingerprints(b"", b'{"text": "a"}', b"  ", b"\r")[0]
    assert len(fingerprints(b"", b'{"text": "a"}', b"  ", b"\r")[1]) == 1


@pytest.mark.parametrize(
    ("line", "path", "words"),
    [
        (b'{"txt": "a"}', "$", "did you mean 'text'?"),
        (b'{"text": 1}', "$.text", "Expected `str`, got `int`"),
        (b"{}", "$", "required field `text`"),
        (b"null", "$", "required field `text`"),
        (b'["text"]', "$", "Expected `object`, got `array`"),
        (b'{"text": "a"', "$", "not JSON"),
        (b'{"text": "\xff"}', "$", "UTF-8"),
        (b'{"text": "\\ud800"}', "$", "not JSON"),
        (b"[" * 100_000, "$", "nested too deeply"),
        (b'{"text": "a"} {"text": "b"}', "$", "not JSON"),
    ],
)
def test_a_bad_line_is_answered_by_where_it_is_wrong_and_what_to_do(
    line: bytes, path: str, words: str
) -> None:
    good, (answer, next_answer) = fingerprints(line, b'{"text": "next"}')
    assert not good
    assert set(answer) == {"error"}
    assert set(answer["error"]) == {"path", "message"}
    assert answer["error"]["path"] == path
    assert words in answer["error"]["message"]
    assert next_answer["normalized"] == "next"


def test_an_error_quotes_no_secret_and_has_a_bound() -> None:
    key = "AKIA" + "Z7QK4M2XW9PLN5TB"
    good, (answer,) = fingerprints(f'{{"{key}{"x" * 10_000}": 1}}'.encode())
    assert not good
    assert key not in answer["error"]["message"]
    assert len(answer["error"]["message"]) <= 500


def test_the_program_serves_unicode_bytes_that_are_no_text_and_a_line_of_a_megabyte(tmp_path: Path) -> None:
    lines = [
        '{"text": "нет файла «x»"}'.encode(),
        b'{"text": "\xff\xfe"}',
        b'{"text": "' + b"x y " * 262_144 + b'"}',
        '{"text": "最後"}'.encode(),
    ]
    done = command_line.run("probe", "fingerprint", cwd=tmp_path, stdin=b"\n".join(lines))
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert (done.status, done.err, len(answers)) == (1, "", 4)
    assert answers[0]["normalized"].startswith("нет файла")
    assert "error" in answers[1]
    assert len(answers[2]["normalized"]) < 20_000
    assert answers[3]["normalized"] == "最後"


def test_fingerprint_takes_the_calls_tool_server_and_class_into_the_key() -> None:
    line = {"tool": "t", "mcp_server": "s", "error_class": "c", "text": "no file /a/1"}
    variants = [
        line,
        {**line, "text": "no file /b/2"},
        {**line, "error_class": "d"},
        {**line, "mcp_server": "z"},
    ]
    good, answers = fingerprints(*(json.dumps(variant).encode() for variant in variants))
    keys = [answer["key"] for answer in answers]
    assert good
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_redact_says_what_was_where_in_the_text_that_was_sent(tmp_path: Path) -> None:
    text = "пароль ниже: password=Tr0ub4dor&3xyz конец"
    lines = [json.dumps({"text": text}).encode(), b'{"text": "nothing here"}', b'{"text": ""}', b"{}"]
    done = command_line.run("probe", "redact", cwd=tmp_path, stdin=b"\n".join(lines))
    secret, plain, empty, bad = [json.loads(line) for line in done.out.splitlines()]
    assert (done.status, done.err) == (1, "")
    (found,) = secret["found"]
    assert set(found) == {"kind", "start", "end"}
    assert text[found["start"] : found["end"]] == "Tr0ub4dor&3xyz"
    assert "Tr0ub4dor" not in secret["text"]
    assert secret["text"].endswith(" конец")
    assert plain == {"text": "nothing here", "found": []}
    assert empty == {"text": "", "found": []}
    assert bad["error"]["path"] == "$"
    assert served(redact_probe.RedactRequest, redact_probe.probe, lines[0])[0]


def test_hints_gives_every_key_best_first_and_honest_zero_is_no_error(knowledge: Path) -> None:
    failed = {"project": "demo", "tool": "git_diff", "error_class": "tool_error"}
    found, russian, elsewhere, nothing = hints(
        knowledge,
        {**failed, "tool_result": "Ref 'main' did not resolve to an object"},
        {"query": "сравнить ветки по умолчанию"},
        {"query": "default branch, compare with the target", "project": "other"},
        {"query": "zebra stripes"},
    )
    assert set(found) == {"result", "matcher_version", "hints"}
    assert found["result"] == "success"
    assert all(set(hint) >= HINT_KEYS for hint in found["hints"])
    assert found["hints"][0]["knowledge_id"] == "trunk"
    scores = [hint["score"] for hint in found["hints"]]
    assert scores == sorted(scores, reverse=True)
    assert russian["hints"][0]["knowledge_id"] == "vetka"
    assert "trunk" not in [hint["knowledge_id"] for hint in elsewhere["hints"]], "it is another project's"
    assert (nothing["result"], nothing["hints"]) == ("empty", [])


def test_hints_without_the_threshold_show_the_whole_ranking(knowledge: Path) -> None:
    line = {"query": "zebra stripes of a feature", "project": "demo"}
    (cut,) = hints(knowledge, line)
    (whole,) = hints(knowledge, line, options=("--threshold", "off"))
    assert cut["hints"] == []
    assert {hint["knowledge_id"] for hint in whole["hints"]} >= {"branches", "trunk"}


def test_hints_demote_what_an_active_skill_covers_and_a_bare_name_covers_nothing(knowledge: Path) -> None:
    line = {"query": "compare a feature branch with the default branch", "project": "demo"}
    skill = {"name": "git", "text": ITEMS[0]["proposition"]}
    plain, covered, named, written = (
        [hint["knowledge_id"] for hint in answer["hints"]]
        for answer in hints(
            knowledge,
            line,
            {**line, "active_skills": [skill]},
            {**line, "active_skills": ["git"]},
            {**line, "active_skills": [{"name": "git"}]},
            options=("--threshold", "off"),
        )
    )
    assert plain[0] == "trunk"
    assert covered[0] != "trunk"
    assert "trunk" in covered, "demoted, not dropped"
    assert named == written == plain


@pytest.mark.parametrize(
    ("line", "path", "words"),
    [
        ({"tool": "git_diff"}, "$", "give `query` or `tool_result`"),
        ({"query": "  ", "tool_result": ""}, "$", "give `query` or `tool_result`"),
        ({"query": "x" * 4_097}, "$.query", "4096"),
        ({"tool_result": "x" * 8_193}, "$.tool_result", "8192"),
        ({"query": "x", "active_skills": [{"name": "a", "txt": "b"}]}, "$.active_skills[0]", "'text'"),
        ({"query": "x", "entities": "main"}, "$.entities", "array"),
        ({"query": "x", "issued_knowledge_id": []}, "$", "'issued_knowledge_ids'"),
    ],
)
def test_a_hint_request_that_can_not_be_answered_is_refused_at_its_place(
    line: dict[str, object], path: str, words: str
) -> None:
    good, (answer,) = served(HintRequest, probing.searchable, json.dumps(line).encode())
    assert not good
    assert answer["error"]["path"] == path
    assert words in answer["error"]["message"]


def test_hints_that_can_not_begin_say_so_in_one_line(knowledge: Path, here: Here) -> None:
    done = here("probe", "hints", "--knowledge", knowledge.parent / "none.jsonl")
    assert "none.jsonl" in done.one_line(2)
    done = here("probe", "hints", "--knowledge", knowledge, "--threshold", "low")
    assert "'low'" in done.one_line(2)
    knowledge.write_text('{"proposition": "a", "tool": []}')
    done = here("probe", "hints", "--knowledge", knowledge)
    assert "items.jsonl:1" in done.one_line(2)
    assert "did you mean 'tools'?" in done.err


def test_block_takes_hints_as_they_were_printed_and_says_what_it_dropped(knowledge: Path) -> None:
    request = {"query": "compare a feature branch with trunk", "project": "demo"}
    (answer,) = hints(knowledge, request, options=("--threshold", "off"))
    assert len(answer["hints"]) >= 2
    everything = block(hints=answer["hints"])
    assert set(everything) == {"text", "tokens", "dropped"}
    assert everything["dropped"] == []
    assert all(hint["proposition"] in everything["text"] for hint in answer["hints"])
    first = block(hints=answer["hints"][:1])
    limited = block(hints=answer["hints"], tokens_max=first["tokens"])
    assert limited["text"] == first["text"]
    assert limited["dropped"] == [
        {"knowledge_id": hint["knowledge_id"], "reason": "budget"} for hint in answer["hints"][1:]
    ]
    assert block(hints=answer["hints"], tokens_max=0)["text"] == ""


def test_block_with_an_uncertain_effect_permits_no_repeat() -> None:
    hint = {"knowledge_id": "a", "proposition": "Send again with a key."}
    certain, uncertain = block(hints=[hint]), block(hints=[hint], effect="uncertain")
    assert "uncertain" not in certain["text"]
    assert "uncertain" in uncertain["text"]
    assert uncertain["tokens"] > certain["tokens"]
    assert block(hints=[], effect="uncertain")["text"] == "", "no hint, no block"


@pytest.mark.parametrize(
    ("line", "path", "words"),
    [
        ({}, "$", "required field `hints`"),
        ({"hints": [{"knowledge_id": "a"}]}, "$.hints[0]", "required field `proposition`"),
        ({"hints": [{"knowledge_id": "a", "proposition": "b", "tire": "x"}]}, "$.hints[0]", "'tier'"),
        ({"hints": [], "effect": "certain"}, "$.effect", "uncertain"),
        ({"hints": [], "tokens_max": -1}, "$.tokens_max", ">= 0"),
    ],
)
def test_a_block_request_that_is_wrong_is_refused_at_its_place(
    line: dict[str, object], path: str, words: str
) -> None:
    good, (answer,) = served(probing.BlockRequest, probing.block, json.dumps(line).encode())
    assert not good
    assert answer["error"]["path"] == path
    assert words in answer["error"]["message"]


def test_the_block_probe_is_a_command(tmp_path: Path) -> None:
    done = command_line.run("probe", "block", cwd=tmp_path, stdin=b'{"hints": []}')
    assert (done.status, json.loads(done.out)) == (0, {"text": "", "tokens": 0, "dropped": []})


def test_a_probe_needs_no_configuration_and_a_broken_one_does_not_disturb_it(tmp_path: Path) -> None:
    (tmp_path / "temporality.yaml").write_text("nonsense: [")
    done = command_line.run("probe", "fingerprint", cwd=tmp_path, stdin=b'{"text": "a"}')
    assert (done.status, done.err) == (0, "")


def block(**line: object) -> dict[str, Any]:
    good, (answer,) = served(probing.BlockRequest, probing.block, json.dumps(line).encode())
    assert good
    return answer
