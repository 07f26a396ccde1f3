"""`docs/redaction.md` says what the rules do: its table is the table of kinds, and its examples hold."""

import re
from pathlib import Path

from temporality.actors.redaction import redact
from temporality.actors.redaction.bounding import MARGIN_CHARACTERS, cut_mark
from temporality.actors.redaction.kinds import KINDS
from temporality.actors.redaction.vendors import VENDORS

PAGE = (Path(__file__).parents[3] / "docs" / "redaction.md").read_text(encoding="utf-8")


def test_table_of_kinds_is_the_table_of_the_code() -> None:
    section = PAGE.split("## What is redacted")[1].split("Known prefixes")[0]
    rows = dict(re.findall(r"^\| `([a-z\-]+)` \| (.+) \|$", section, re.MULTILINE))
    assert rows == dict(KINDS)


def test_every_rule_of_a_vendor_has_a_documented_kind() -> None:
    assert {vendor.kind for vendor in VENDORS} <= set(KINDS)


def test_examples_of_the_page_hold() -> None:
    text, result = re.findall(r'^redact\("(.+?)"\)\.text +# \'(.+)\'$', PAGE, re.MULTILINE)[0]
    assert redact(text).text == result
    assert cut_mark(123).strip() in PAGE
    assert f"{MARGIN_CHARACTERS:,} characters" in PAGE


def test_text_that_the_page_calls_ordinary_is_unchanged() -> None:
    section = PAGE.split("## What is not redacted")[1].split("Known limits")[0]
    examples = re.findall(r"`([^`]+)`", section)
    assert len(examples) >= 10
    assert [example for example in examples if redact(example).text != example] == []


def test_page_itself_holds_nothing_but_its_own_examples_to_redact() -> None:
    found = [PAGE[one.start : one.end] for one in redact(PAGE).found]
    assert set(found) <= {"hunter2", "password", "v"}
