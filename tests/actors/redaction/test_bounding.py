"""A17: drop what is not text, pre-cut, redact, cut; no secret survives by being cut in half."""

from random import Random

import pytest

from temporality.actors.redaction import clean
from temporality.actors.redaction.bounding import CHARACTERS_LEAST, MARGIN_CHARACTERS, cut_mark
from temporality.actors.redaction.finding import MARK, MARK_OPENING
from temporality.actors.redaction.samples.places import every_kind
from temporality.actors.redaction.samples.secrets import TOKENS, Sample, characters, pem

BOUND = 600
HEAD = BOUND - BOUND // 3
WORDS = ("the", "worker", "read", "a", "file", "and", "then", "stopped", "because", "disk", "was", "full")


def prose(rng: Random, length: int) -> str:
    parts: list[str] = []
    size = 0
    while size <= length:
        parts.append(rng.choice(WORDS))
        size += len(parts[-1]) + 1
    return " ".join(parts)[:length]


def leaks(text: str, secret: str) -> bool:
    size = min(8, max(3, (len(secret) + 1) // 2))
    pieces = {secret[at : at + size] for at in range(len(secret) - size + 1)}
    return not pieces.isdisjoint([text[at : at + size] for at in range(len(text) - size + 1)])


FAR = 20_000
"""So much prose on one side of a secret leaves that side to the other end's window."""
FILLER = prose(Random("filler"), FAR)


def placed(sample: Sample, before: int, after: int) -> str:
    """Return a text with `before` characters of prose, the sample on its own line, and prose after it."""
    return f"{FILLER[:before]}\n{sample.text}\n{FILLER[:after]}"


OFFSETS = 10
"""How many places about an edge are tried for each kind; each kind begins at another."""


def offsets(edge: int, length: int, rng: Random) -> range:
    """Return offsets of a sample's begin from which it lies before, across and behind `edge`."""
    step = max(1, (length + 80) // OFFSETS)
    return range(max(0, edge - length - 40 + rng.randrange(step)), edge + 40, step)


@pytest.mark.parametrize("kind", every_kind())
def test_secret_at_any_offset_around_a_cut_leaves_no_piece(kind: str) -> None:
    rng = Random(f"cut {kind}")
    sample = every_kind()[kind](rng)
    for edge in (HEAD, HEAD + MARGIN_CHARACTERS):
        for before in offsets(edge, len(sample.text), rng):
            text = placed(sample, before, FAR)
            assert not leaks(clean(text, characters_max=BOUND).text, sample.secret), (edge, before, sample)
    for edge in (BOUND // 3, BOUND // 3 + MARGIN_CHARACTERS):
        for after in offsets(edge, len(sample.text), rng):
            text = placed(sample, FAR, after)
            assert not leaks(clean(text, characters_max=BOUND).text, sample.secret), (edge, after, sample)


@pytest.mark.parametrize("kind", ["token: github", "named: json", "placed: url password", "placed: cookie"])
def test_secret_at_every_single_offset_around_every_cut_leaves_no_piece(kind: str) -> None:
    sample = every_kind()[kind](Random(f"every offset {kind}"))
    for head, tail in ((HEAD, BOUND // 3), (HEAD + MARGIN_CHARACTERS, BOUND // 3 + MARGIN_CHARACTERS)):
        for offset in range(-len(sample.text) - 30, 30):
            ahead = f"{FILLER[: head + offset]} {sample.text}\n{FILLER}"
            behind = f"{FILLER}\n{sample.text} {FILLER[: tail + offset]}"
            assert not leaks(clean(ahead, characters_max=BOUND).text, sample.secret), (head, offset)
            assert not leaks(clean(behind, characters_max=BOUND).text, sample.secret), (tail, offset)


@pytest.mark.parametrize("length", [BOUND + 1, BOUND + 200, BOUND + 2 * MARGIN_CHARACTERS])
def test_text_between_the_bound_and_the_pre_cut_is_redacted_before_it_is_cut(length: int) -> None:
    rng = Random(length)
    for offset in range(HEAD - 90, HEAD + 30):
        secret = "ghp" + "_" + characters(rng, "abcdefABCDEF0123456789", 36)
        text = f"{prose(rng, offset)} {secret} {prose(rng, length)}"[:length]
        cleaned = clean(text, characters_max=BOUND)
        assert len(cleaned.text) <= BOUND
        assert not leaks(cleaned.text, secret)


def test_final_cut_never_splits_a_mark() -> None:
    rng = Random(7)
    for offset in range(HEAD - 120, HEAD + 10):
        secret = characters(rng, "abcdefABCDEF0123456789", 20)
        for text in (
            f"{prose(rng, offset)} password={secret} {prose(rng, 900)}",
            f"{prose(rng, 900)} password={secret} {prose(rng, offset - HEAD + 240)}",
        ):
            cleaned = clean(text, characters_max=BOUND).text
            assert cleaned.count(MARK_OPENING) == len(MARK.findall(cleaned))


@pytest.mark.parametrize("length", [3_000, 9_000, 40_000])
def test_private_key_longer_than_the_margin_is_secret_up_to_the_edge(length: int) -> None:
    rng = Random(length)
    lines = [characters(rng, "abcdefABCDEF0123456789+/", 64) for _ in range(length // 65)]
    label = "RSA PRIVATE KEY-----"
    key = "\n".join([f"-----BEGIN {label}", *lines, f"-----END {label}"])
    for before, after in ((100, 30_000), (30_000, 100), (100, 100)):
        cleaned = clean(f"{prose(rng, before)}\n{key}\n{prose(rng, after)}", characters_max=2_000).text
        assert not any(line[at : at + 8] in cleaned for line in lines for at in (0, 20, 56))


@pytest.mark.parametrize(
    "form", ['{{"token": "{}"}}', "password={}", "Authorization: Bearer {}", "https://x/?sig={}&b=1", "{}"]
)
def test_unbroken_secret_longer_than_the_margin_is_secret_up_to_the_edge(form: str) -> None:
    rng = Random(form)
    secret = TOKENS["jwt"](rng) + characters(rng, "abcdefABCDEF0123456789", 12_000)
    for before, after in ((50, 30_000), (30_000, 50), (10, 10)):
        text = f"{prose(rng, before)} {form.format(secret)} {prose(rng, after)}"
        assert not leaks(clean(text, characters_max=1_000).text, secret)


def test_room_that_redaction_makes_is_not_filled_from_the_margin() -> None:
    """A token that begins just before the window's edge is too short there to be recognised."""
    rng, bound = Random(10), 8_000
    edge = bound - bound // 3 + MARGIN_CHARACTERS
    long = "password=" + characters(rng, "abcdefABCDEF0123456789", 5_000) + "\n"
    secret = "ghp" + "_" + characters(rng, "abcdefABCDEF0123456789", 36)
    for visible in range(9, 21):
        text = long + prose(rng, edge - len(long) - visible - 1) + " " + secret + " " + prose(rng, 30_000)
        cleaned = clean(text, characters_max=bound)
        assert "[redacted:password]" in cleaned.text
        assert not leaks(cleaned.text, secret), visible


def test_secret_split_by_characters_that_are_dropped_is_found_joined() -> None:
    rng = Random(11)
    secret = "ghp" + "_" + characters(rng, "abcdefABCDEF0123456789", 36)
    split = secret[:9] + "\x00" + secret[9:15] + "\x1b[31m" + secret[15:25] + "\ud800" + secret[25:]
    assert clean(f"a {split} b", characters_max=BOUND).text == "a [redacted:github-token] b"


def test_head_and_tail_are_kept_around_a_mark_that_counts_what_is_left_out() -> None:
    rng = Random(12)
    for length in (BOUND + 1, 5_000, 50_000):
        text = prose(rng, length)
        cleaned = clean(text, characters_max=BOUND)
        head, tail = cleaned.text.split(cut_mark(length - (BOUND - len(cut_mark(length)))), 1)
        assert cleaned.cut
        assert len(cleaned.text) <= BOUND
        assert text.startswith(head)
        assert text.endswith(tail)
        assert abs(len(head) - 2 * len(tail)) <= 3


def test_short_text_is_kept_whole() -> None:
    for length in (0, 1, BOUND):
        text = prose(Random(length), length)
        cleaned = clean(text, characters_max=BOUND)
        assert (cleaned.text, cleaned.cut, cleaned.found_count, cleaned.kinds) == (text, False, 0, ())


def test_found_secrets_are_counted_by_kind() -> None:
    value = characters(Random(13), "abcdefgh0123456789", 12)
    cleaned = clean(f"password={value} token={value[::-1]}1", characters_max=BOUND)
    assert (cleaned.found_count, cleaned.kinds) == (2, ("password", "token"))


def test_what_is_not_text_is_dropped() -> None:
    text = "\x1b[1;31mred\x1b[0m\tand\x07 \x1b]0;title\x07plain\r\nnext\x00\ud83d\x7f\x9b2K ok\x1b"
    assert clean(text, characters_max=BOUND).text == "red\tand plain\nnext ok"


def test_parts_of_a_tool_result_that_are_not_text_are_dropped() -> None:
    result = [
        {"type": "text", "text": "first"},
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGVsbG8="},
        {"type": "resource", "resource": {"uri": "file:///x", "text": "inner"}},
        {"type": "resource", "resource": {"uri": "file:///x", "blob": "aGVsbG8="}},
        {"type": "text", "text": "last"},
    ]
    cleaned = clean(result, characters_max=BOUND).text
    assert [line for line in cleaned.split("\n") if line] == ["first", "inner", "last"]
    assert clean(b"bytes", characters_max=BOUND).text == ""
    assert clean(None, characters_max=BOUND).text == ""
    assert clean({"a": b"x", "n": 1, "ok": True, "none": None}, characters_max=BOUND).text == (
        '{"n": 1, "ok": true, "none": null}'
    )


def test_value_in_a_structure_is_redacted_by_its_name() -> None:
    value = characters(Random(14), "abcdefgh0123456789", 12)
    cleaned = clean({"user": "bob", "nested": {"password": value, "tags": ["a", 2]}}, characters_max=BOUND)
    assert cleaned.text == '{"user": "bob", "nested": {"password": "[redacted:password]", "tags": ["a", 2]}}'


def test_huge_structure_is_bounded_too() -> None:
    rng = Random(15)
    secret = "ghp" + "_" + characters(rng, "abcdefABCDEF0123456789", 36)
    many = [{"row": n, "text": prose(rng, 50)} for n in range(2_000)]
    cleaned = clean([*many, {"token": secret}], characters_max=BOUND)
    assert len(cleaned.text) <= BOUND
    assert cleaned.cut
    assert cleaned.text.endswith('{"token": "[redacted:github-token]"}]')
    deep: object = "x"
    for _ in range(5_000):
        deep = [deep]
    assert len(clean(deep, characters_max=BOUND).text) <= BOUND
    assert len(clean({"k": "y" * 1_000_000}, characters_max=BOUND).text) <= BOUND


def test_every_bound_is_kept() -> None:
    rng = Random(16)
    text = prose(rng, 20_000) + pem(rng) + prose(rng, 100)
    for bound in (CHARACTERS_LEAST, 65, 100, 999, 4_096, 8_192):
        for value in (text, text[:bound], text[: bound + 1], {"a": [text, 1, text]}):
            assert len(clean(value, characters_max=bound).text) <= bound
    with pytest.raises(ValueError, match="at least 64"):
        clean("", characters_max=CHARACTERS_LEAST - 1)
