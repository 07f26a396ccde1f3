"""Text that only speaks of secrets, or looks like one, passes unchanged: hints are looked up by it (A14)."""

from random import Random

import pytest

from temporality.actors.redaction import redact
from temporality.actors.redaction.samples.ordinary import ORDINARY

SAMPLES_PER_KIND = 150
UNCHANGED_SHARE_MIN = 0.95


def test_there_are_at_least_twentyfive_kinds_of_ordinary_text() -> None:
    assert len(ORDINARY) >= 25


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_text_is_unchanged(kind: str) -> None:
    rng = Random(f"ordinary {kind}")
    texts = [ORDINARY[kind](rng) for _ in range(SAMPLES_PER_KIND)]
    changed = {text: redact(text).text for text in texts if redact(text).text != text}
    assert len(changed) <= (1 - UNCHANGED_SHARE_MIN) * SAMPLES_PER_KIND, (
        f"{kind}: {list(changed.items())[:3]}"
    )


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_text_is_unchanged_between_other_lines(kind: str) -> None:
    rng = Random(f"between {kind}")
    changed = []
    for _ in range(40):
        text = f"2026-11-30 12:00:00 ERROR worker: step failed\n{ORDINARY[kind](rng)}\nexit status 1"
        if redact(text).text != text:
            changed.append((text, redact(text).text))
    assert len(changed) <= 2, f"{kind}: {changed[:3]}"
