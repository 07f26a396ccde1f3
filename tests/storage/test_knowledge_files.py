"""Knowledge as people write it: read strictly, written without loss (E9)."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporality.protocol.editorial import PROPOSITION_LENGTH_MAX, KnowledgeItem
from temporality.protocol.errors import UserError
from temporality.storage.knowledge_files import read_items, write_items

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
LINES = st.lists(
    st.one_of(
        st.sampled_from(["---", "\\---", "\\\\---", "--- ", "", "- a: b", "# t", "'", '"', "key: |"]), TEXT
    ),
    max_size=5,
).map("\n".join)
NAMES = st.lists(TEXT, max_size=3)
ITEMS = st.lists(
    st.fixed_dictionaries(
        {"proposition": LINES.filter(str.strip)},
        optional={
            "tools": NAMES,
            "topics": NAMES,
            "example_errors": st.lists(LINES, max_size=2),
            "cautions": NAMES,
            "state": st.sampled_from(["reviewed", "challenged", "candidate", "retired"]),
            "scope": st.sampled_from([{}, {"project": "demo"}, {"team": "null", "user": "1"}]),
            "valid_until": st.sampled_from(["2027-01-31", "2027-01-31T10:00:00+03:00"]),
            "value": st.one_of(
                st.none(), TEXT, st.sampled_from(["yes", "1", "null", "2027-01-01", "1e3", "=", "0x1"])
            ),
            "evidence": st.lists(
                st.fixed_dictionaries({"kind": TEXT, "ref": TEXT}, optional={"excerpt": LINES}), max_size=2
            ),
        },
    ),
    max_size=4,
)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path, text: str) -> UserError:
    with pytest.raises(UserError) as refused:
        read_items(write(path, text))
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 1_000
    return refused.value


@settings(max_examples=150, deadline=None)
@given(items=ITEMS, suffix=st.sampled_from([".md", ".jsonl"]))
def test_what_is_written_is_read_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, items: list[dict[str, Any]], suffix: str
) -> None:
    """E9."""
    given_items = {
        item.knowledge_id: item for item in (msgspec.convert(i, KnowledgeItem).identified() for i in items)
    }
    path = tmp_path_factory.mktemp("files") / f"items{suffix}"
    write_items(path, given_items.values())
    assert {item.knowledge_id: item for item in read_items(path)} == given_items
    written = path.read_bytes()
    write_items(path, read_items(path))
    assert path.read_bytes() == written


def test_markdown_file_of_one_item_and_of_several(tmp_path: Path) -> None:
    fields = "---\nknowledge_id: git-scope\ntools: [git_commit]\nvalid_until: 2027-01-31\n---\n"
    one = fields + "\nCommit messages\nbegin.\n"
    [item] = read_items(write(tmp_path / "one.md", one))
    assert (item.knowledge_id, item.tools, item.valid_until) == ("git-scope", ("git_commit",), "2027-01-31")
    assert item.proposition == "Commit messages\nbegin."
    two = one + "\n---\n---\nAn item with nothing but its text.\n"
    assert [item.proposition for item in read_items(write(tmp_path / "two.md", two))] == [
        "Commit messages\nbegin.",
        "An item with nothing but its text.",
    ]


def test_windows_line_ends_and_byte_order_mark_are_understood(tmp_path: Path) -> None:
    text = "\ufeff---\r\nknowledge_id: a\r\n---\r\nFirst line\r\nsecond.\r\n"
    path = tmp_path / "a.md"
    path.write_bytes(text.encode())
    [item] = read_items(path)
    assert (item.knowledge_id, item.proposition) == ("a", "First line\nsecond.")


def test_three_dashes_of_a_proposition_are_escaped_and_come_back(tmp_path: Path) -> None:
    proposition = "Above.\n---\nBelow.\n\\---\nEnd."
    path = tmp_path / "a.md"
    write_items(path, [KnowledgeItem(knowledge_id="a", proposition=proposition)])
    assert "\n\\---\n" in path.read_text()
    assert [item.proposition for item in read_items(path)] == [proposition]


def test_item_without_an_id_gets_the_same_one_from_both_formats(tmp_path: Path) -> None:
    [from_json] = read_items(write(tmp_path / "a.jsonl", '{"topics": ["x"], "proposition": "Say it."}\n\n'))
    [from_markdown] = read_items(write(tmp_path / "a.md", "---\ntopics: [x]\n---\nSay it.\n"))
    assert from_json == from_markdown
    assert from_json.has_derived_id


def test_same_item_twice_counts_once_and_two_items_of_one_id_are_refused(tmp_path: Path) -> None:
    line = '{"knowledge_id": "a", "proposition": "Say it."}\n'
    assert len(read_items(write(tmp_path / "a.jsonl", line + line))) == 1
    error = refusal(tmp_path / "b.jsonl", line + line.replace("Say", "Hide"))
    assert (error.where, error.do) == (f"{tmp_path}/b.jsonl:2", "give each item an id of its own")
    assert "line 1" in error.what
    elsewhere = '{"knowledge_id": "a", "proposition": "Hide it.", "scope": {"project": "p"}}'
    assert len(read_items(write(tmp_path / "c.jsonl", line + elsewhere))) == 2


@pytest.mark.parametrize(
    ("name", "text", "line", "what", "do"),
    [
        ("a.jsonl", '{"proposition": "x"}\n{"proposition": "y", "tolls": []}', 2, "'tolls'", "'tools'"),
        ("a.jsonl", '{"proposition": "x"}\n\n{"proposition": 5}', 3, "str", ""),
        ("a.jsonl", '{"proposition": "x"', 1, "not JSON", "one JSON object a line"),
        ("a.jsonl", "[1, 2]", 1, "object", ""),
        ("a.jsonl", '{"knowledge_id": "a"}', 1, "proposition", ""),
        ("a.jsonl", '{"proposition": "x", "scope": {"projet": "demo"}}', 1, "'projet'", "'project'"),
        ("a.jsonl", '{"proposition": "x", "knowledge_id": "a b"}', 1, "subject token", ""),
        ("a.jsonl", "[" * 100_000, 1, "", ""),
        ("a.md", "---\nproposition: x\ntolls: []\n---\n", 1, "'tolls'", "'tools'"),
        ("a.md", "---\n---\nx\n\n---\ntools: git\n---\ny\n", 5, "array", ""),
        ("a.md", "---\ntools: [a\n---\nx\n", 3, "not YAML", "\\---"),
        ("a.md", "---\n- a\n---\nx\n", 2, "fields are expected", "name: value"),
        ("a.md", "---\n---\nAbove.\n---\nBelow.\n", 4, "not an item", "\\---"),
        ("a.md", "Just text.\n", 1, "not an item", "---"),
        ("a.md", "# Title\n---\n---\nx\n", 1, "not an item", "---"),
        ("a.md", "---\nproposition: x\n---\ny\n", 1, "twice", "keep one"),
        ("a.md", "---\nproposition: !!python/object:os.system x\n---\n", 2, "not YAML", ""),
        ("a.md", "---\ntopics: &a [*a]\n---\nx\n", 1, "", ""),
        ("a.md", "---\n---\n", 1, "proposition", ""),
    ],
)
def test_mistake_is_named_with_its_line_and_what_to_do(
    tmp_path: Path, name: str, text: str, line: int, what: str, do: str
) -> None:
    error = refusal(tmp_path / name, text)
    assert error.where.startswith(f"{tmp_path / name}:{line}")
    assert error.where.removeprefix(f"{tmp_path / name}:{line}")[:1] in ("", ":")
    assert what in error.what
    assert do in error.do


@pytest.mark.parametrize("name", ["a.jsonl", "a.md"])
def test_proposition_of_a_megabyte_is_refused_with_one_short_line(tmp_path: Path, name: str) -> None:
    proposition = "x" * 1_000_000
    text = f'{{"proposition": "{proposition}"}}' if name == "a.jsonl" else f"---\n---\n{proposition}\n"
    error = refusal(tmp_path / name, text)
    assert (
        error.what == f"the proposition has 1000000 characters; at most {PROPOSITION_LENGTH_MAX} are allowed"
    )


def test_one_mistake_refuses_the_whole_file(tmp_path: Path) -> None:
    good = "".join(f'{{"proposition": "Item {n}."}}\n' for n in range(50))
    assert len(read_items(write(tmp_path / "a.jsonl", good))) == 50
    assert refusal(tmp_path / "a.jsonl", good + '{"proposition": ""}\n').where.endswith(":51: $.proposition")


def test_files_that_cannot_be_read_or_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read"):
        read_items(tmp_path / "none.jsonl")
    with pytest.raises(UserError, match=r"neither \.jsonl nor \.md"):
        read_items(write(tmp_path / "a.txt", "x"))
    (tmp_path / "latin.md").write_bytes("---\n---\nfine\nü\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"latin\.md:4: is not UTF-8"):
        read_items(tmp_path / "latin.md")
    with pytest.raises(UserError, match="can't be written"):
        write_items(tmp_path / "no" / "a.md", [])


def test_failed_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", "old")
    (tmp_path / "a.jsonl.unfinished").mkdir()
    with pytest.raises(UserError):
        write_items(path, [KnowledgeItem(proposition="x")])
    assert path.read_text() == "old"
