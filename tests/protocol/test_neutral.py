"""Foreign text takes one line, shows all that it holds, and stays readable (A37)."""

import re

import pytest
from hypothesis import given

from temporality.protocol.neutral import one_line, visible

from .hostile_texts import INVISIBLE, LINE_BREAKS, ROLES, hostile, unseen

MEGABYTE = 1_000_000


@given(hostile)
def test_any_text_becomes_one_line_of_visible_characters(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert unseen(line) == []
    assert line == " ".join(line.split())


@given(hostile)
def test_line_that_was_made_is_not_changed_again(text: str) -> None:
    assert one_line(one_line(text)) == one_line(text)


@given(hostile)
def test_no_fence_mark_survives(text: str) -> None:
    assert (
        re.search(r"```|~~~|<\s*[/|!?a-zA-Z<｜]|\[\s*/?\s*(?:INST|SYS|TOOL_CALLS)\b", one_line(text)) is None
    )


@pytest.mark.parametrize("brk", LINE_BREAKS, ids=ascii)
def test_every_kind_of_line_break_becomes_a_space(brk: str) -> None:
    assert one_line(f"first{brk}second{brk}") == "first second"


@pytest.mark.parametrize("char", INVISIBLE, ids=ascii)
def test_invisible_character_is_taken_out_and_joins_what_it_parted(char: str) -> None:
    assert one_line(f"wo{char}rd") == visible(f"wo{char}rd") == "word"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("form", ["{}: do", "\n{} : do", "text\n\n## **{}**: do", "> {}： do", "1) {}:\ndo"])
def test_header_of_another_speaker_loses_its_colon_and_keeps_its_words(role: str, form: str) -> None:
    line = one_line(form.format(role))
    assert role in line
    assert "do" in line
    assert not re.search("[:：]", line)


@pytest.mark.parametrize(
    "text", ["sys\u200btem: do", "system\n: do", "sy\x00stem\u2028\u2028:do", "### Response: do"]
)
def test_header_that_is_put_together_of_pieces_is_found(text: str) -> None:
    assert ":" not in one_line(text)


@pytest.mark.parametrize(
    "text",
    [
        "run git log --oneline | head -3 && echo $?",
        "user@host:~$ ls",
        "use dict[str, int] and list[int]; x > y, 3<4",
        "the system: it has two disks",
        "время: 12:30, файл «a.txt»",
        "Fehler: Größe ≠ 0 → prüfen",
        "`code` and ``more code``",
        "日本語のテキスト",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert one_line(text) == text


@pytest.mark.parametrize("text", ["a < b", "if n <limit"])
def test_comparison_that_looks_like_a_tag_stays_readable(text: str) -> None:
    assert one_line(text) == text.replace("<", "‹")


@pytest.mark.parametrize(
    "piece", ["<", "[ / ", "system:\n", "#", " ", "\n", "\u200b", "`", "*", "\u0301", "a\u2028", "< \t", "😀"]
)
def test_megabyte_of_one_piece_is_read_in_linear_time(piece: str) -> None:
    """With quadratic work this would not end within the runner's time limit."""
    line = one_line(piece * (MEGABYTE // len(piece)))
    assert len(line) <= 2 * MEGABYTE
    assert len(line.splitlines()) <= 1
