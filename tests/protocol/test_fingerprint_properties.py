"""A30: what holds for all texts, and the shape of the patterns that keeps them linear."""

import random
import re
import string
import uuid
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from temporality.protocol import fingerprint
from temporality.protocol.fingerprint import (
    FINGERPRINT_VERSION,
    KEY_STEPS,
    NORMALIZE_STEPS,
    TEXT_LENGTH_MAX,
    FingerprintRequest,
    literals,
    normalize,
    numbers,
    probe,
    repeats,
    situation_key,
    wording,
)
from temporality.protocol.subjects import subject_token

WORDS = "the worker could not open its volume because quota ran out while draining shard"


def key(
    text: str, *, trigger: str = "tool.failed", source: str = "shell", error_class: str = "tool_error"
) -> str:
    """Return a situation key, by default that of a failed shell call."""
    return situation_key(trigger=trigger, source=source, error_class=error_class, text=text)


fragments = st.sampled_from(
    [
        *(
            "12",
            "0x1f",
            "1a2b3c4d",
            "10.0.0.1:80",
            "::1",
            "/a/b.c:3",
            "C:\\x\\y z",
            "user",
            "for user bob",
            "bob",
        ),
        *(
            "'a'",
            '"b c"',
            "'",
            '"',
            "`",
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            "=",
            ":",
            ": ",
            ", ",
            " ",
            "  ",
            "\n",
            "\t",
        ),
        *(
            "error",
            "code",
            "E0308",
            "exit code 1",
            "HTTP/1.1",
            "404",
            "not found",
            "No such file",
            "<num>",
            "<",
            ">",
        ),
        *(
            "2026-01-02",
            "12:30:01",
            "Tue Mar 4",
            "17 июня",
            "ms",
            "KB",
            "files",
            "a.example.com",
            "x@y.z",
            "…",
            "...",
        ),
        *(
            "https://h/p?q=1",
            "-",
            "/",
            "\\",
            "#",
            "@",
            "*",
            "**",
            ".",
            "%",
            "é",
            "й",
            "true",
            "name=",
            "host",
            "\x1b[1m",
        ),
    ]
)
texts = st.one_of(st.lists(fragments, max_size=30).map("".join), st.text(max_size=200))


@settings(max_examples=600, derandomize=True)
@given(texts)
def test_normalizing_a_normalized_text_changes_nothing(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once


@given(texts, texts)
def test_a_key_depends_on_the_text_alone_and_not_on_what_came_before(text: str, earlier: str) -> None:
    alone = key(text)
    key(earlier)
    assert key(text) == alone


@given(texts)
def test_a_key_is_24_hexadecimal_characters_that_fit_a_subject(text: str) -> None:
    made = key(text)
    assert re.fullmatch(r"[0-9a-f]{24}", made)
    assert subject_token(made) == made


number = st.one_of(st.integers(0, 10**12).map(str), st.decimals(0, 9999, places=2).map(str))
word = st.text(string.ascii_lowercase, min_size=2, max_size=9)
name = st.builds(lambda a, b: a + b, word, st.sampled_from(["", "_id", "-1", ".x"]))
posix = st.lists(word, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
windows = st.lists(word, min_size=1, max_size=4).map(lambda parts: "C:\\" + "\\".join(parts) + ".txt")
clock = st.times().map(lambda t: t.strftime("%H:%M:%S"))
moment = st.datetimes().map(lambda t: t.isoformat(timespec="seconds"))
octet = st.integers(0, 255)
ip4 = st.builds(
    lambda a, b, c, d, p: f"{a}.{b}.{c}.{d}:{p}", octet, octet, octet, octet, st.integers(1, 65535)
)
quoted = name.map(lambda text: f"'{text}'")
url = st.builds(lambda h, p: f"https://{h}.example.com/{p}", word, word)
mail = st.builds(lambda a, b: f"{a}@{b}.org", word, word)
KINDS = {
    "number": number,
    "uuid": st.uuids().map(str),
    "hash": st.text("0123456789abcdef", min_size=40, max_size=40).filter(lambda t: not t.isdigit()),
    "pointer": st.integers(0, 2**48).map(hex),
    "path": posix,
    "windows path": windows,
    "time of day": clock,
    "moment": moment,
    "address": ip4,
    "address of version 6": st.ip_addresses(v=6).map(str).filter(lambda t: any(c.isdigit() for c in t)),
    "quoted value": quoted,
    "url": url,
    "mail": mail,
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(data=st.data())
def test_replacing_a_value_by_another_of_its_kind_keeps_the_key(kind: str, data: st.DataObject) -> None:
    one, other = data.draw(KINDS[kind]), data.draw(KINDS[kind])
    assert key(f"cannot open {one} while draining") == key(f"cannot open {other} while draining")
    assert key(f"drain ({one}): refused") == key(f"drain ({other}): refused")
    assert key(f"refused: {one}") == key(f"refused: {other}")


@given(st.sampled_from(range(13)), word.filter(lambda w: w not in WORDS.split()))
def test_replacing_a_word_by_another_word_gives_another_key(index: int, other: str) -> None:
    words = WORDS.split()
    changed = [*words[:index], other, *words[index + 1 :]]
    assert key(" ".join(words)) != key(" ".join(changed))


def test_trigger_source_error_class_and_text_each_make_another_key_and_never_run_into_each_other() -> None:
    same = key("refused")
    assert key("refused") == same
    others = [
        key("refused", trigger="mcp.first_call"),
        key("refused", source="git"),
        key("refused", error_class="timeout"),
        key("denied"),
        key("fused", error_class="tool_errorre"),
        key("refused", source="shelltool", error_class="_error"),
    ]
    assert len({same, *others}) == len(others) + 1


def test_an_empty_text_has_a_key_of_its_own() -> None:
    assert normalize("") == normalize(" \n\t ") == ""
    assert key("") != key("refused")


def test_a_huge_text_is_judged_by_its_head_and_its_tail() -> None:
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    chosen = random.Random(7)
    middle = " ".join(chosen.choice(words) for _ in range(200_000))
    huge = f"cannot open volume {middle} permission denied"
    shape = normalize(huge)
    assert len(shape) <= TEXT_LENGTH_MAX
    assert shape.startswith("cannot open volume")
    assert shape.endswith("permission denied")
    assert normalize(shape) == shape
    head, tail = shape.split(" … ")
    assert len(head) == pytest.approx(2 * len(tail), rel=0.01)


def test_the_probe_answers_with_the_key_of_a_failed_call() -> None:
    request = msgspec.json.decode(
        b'{"tool": "git_push", "mcp_server": "git", "error_class": "tool_error", "text": "exit 3 of 9"}',
        type=FingerprintRequest,
    )
    answer = probe(request)
    assert answer.key == key("exit 3 of 9", source="git")
    assert answer.normalized == normalize("exit 3 of 9")
    assert answer.version == FINGERPRINT_VERSION
    by_tool = probe(FingerprintRequest(text="x", tool="git_push"))
    assert by_tool.key == key("x", source="git_push", error_class="")
    assert probe(FingerprintRequest(text="x")).key == key("x", source="", error_class="")


def test_the_probe_refuses_a_line_with_an_unknown_key_or_without_a_text() -> None:
    for line in (b'{"text": "x", "tol": "y"}', b'{"tool": "x"}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(line, type=FingerprintRequest)


def test_a_pinned_key_changes_only_together_with_the_version() -> None:
    text = f"cat: /srv/{uuid.UUID(int=7)}/a.csv: No such file or directory"
    assert (FINGERPRINT_VERSION, key(text)) == ("f1", "cc6526e8d7ab2e927056a07d")


def repeats_without_bound_inside(parsed: Any, *, inside: bool = False) -> bool:
    """Tell whether a parsed pattern has an unbounded repeat within an unbounded repeat."""
    for operator, argument in parsed:
        unbounded = operator in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT) and argument[1] > 400
        if unbounded and inside:
            return True
        for part in argument if isinstance(argument, tuple | list) else (argument,):
            for deeper in part if isinstance(part, list) else (part,):
                if isinstance(deeper, _parser.SubPattern) and repeats_without_bound_inside(
                    deeper, inside=inside or unbounded
                ):
                    return True
    return False


def all_patterns() -> dict[str, re.Pattern[str]]:
    """Collect the patterns of the steps, and those that their callbacks use."""
    found = {step.name: step.pattern for step in (*NORMALIZE_STEPS, *KEY_STEPS)}
    for module in (literals, wording, numbers, repeats, fingerprint):
        found |= {n: v for n, v in vars(module).items() if isinstance(v, re.Pattern)}
    return found


@pytest.mark.parametrize("name", all_patterns())
def test_no_pattern_repeats_a_repeat(name: str) -> None:
    assert not repeats_without_bound_inside(_parser.parse(all_patterns()[name].pattern))


def test_the_check_for_nested_repeats_finds_one() -> None:
    assert repeats_without_bound_inside(_parser.parse(r"(?:a+b?)*c"))
    assert repeats_without_bound_inside(_parser.parse(r"x(?:y|(?:z\w*)+)"))
    assert not repeats_without_bound_inside(_parser.parse(r"a+(?:b{1,3}c)+"))


@example("a" * 8_000)
@example("a." * 4_000)
@example("/" * 8_000)
@example("1:" * 4_000)
@given(texts)
def test_a_text_without_anything_unstable_keeps_every_word(text: str) -> None:
    kept = normalize(f"{WORDS}\n{text}")
    assert kept.startswith(WORDS)
