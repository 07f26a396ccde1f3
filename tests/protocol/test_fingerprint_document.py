"""A30: the algorithm is documented, and the document is what the code does."""

from pathlib import Path

from temporality.protocol.fingerprint import (
    FINGERPRINT_VERSION,
    KEY_STEPS,
    NORMALIZE_STEPS,
    TEXT_LENGTH_MAX,
)
from temporality.protocol.fingerprint.repeats import PLACEHOLDERS
from temporality.protocol.fingerprint.step import Step

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "fingerprint.md"


def cell(text: str) -> str:
    """Write `text` as one cell of a table."""
    shown = text.replace("\x1b", "␛").replace("\n", "⏎").replace("\t", "⇥").replace("|", "\\|")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def rows(steps: tuple[Step, ...]) -> str:
    """Write the table of `steps` as the document must have it."""
    head = "| # | step | why | example | becomes |\n|---|---|---|---|---|\n"
    body = (
        f"| {number} | {step.name} | {step.why} | {cell(step.before)} | {cell(step.after)} |\n"
        for number, step in enumerate(steps, 1)
    )
    return head + "".join(body)


def test_the_document_lists_the_steps_in_order_with_the_examples_that_are_tested() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert rows(NORMALIZE_STEPS) in text
    assert rows(KEY_STEPS) in text


def test_the_document_names_version_limit_and_every_placeholder() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert f"`{FINGERPRINT_VERSION}`" in text
    assert f"{TEXT_LENGTH_MAX:,}" in text
    assert ", ".join(f"`<{kind}>`" for kind in PLACEHOLDERS) in text
