"""A47: no secret crosses from private to public. Kinds × places × what follows, made at run time."""

from functools import cache
from random import Random

import pytest

from temporality.actors.redaction import Redacted, redact
from temporality.actors.redaction.kinds import KINDS
from temporality.actors.redaction.samples.places import every_kind
from temporality.actors.redaction.samples.secrets import Sample

SAMPLES_PER_KIND = 80
REMOVED_SHARE_MIN = 0.97
FRAGMENT = 8
"""A secret of which so many characters in a row remain has leaked."""

MADE = every_kind()


def leaks(text: str, secret: str) -> bool:
    """Say whether `FRAGMENT` consecutive characters of `secret` (half of a shorter one) are in `text`."""
    size = min(FRAGMENT, max(3, (len(secret) + 1) // 2))
    return any(secret[at : at + size] in text for at in range(len(secret) - size + 1))


def test_there_are_at_least_fortyfive_kinds() -> None:
    assert len(MADE) >= 45


@cache
def redacted(kind: str) -> list[tuple[Sample, Redacted]]:
    """Return samples of a kind, and what became of each."""
    rng = Random(f"secrets of {kind}")
    samples = [MADE[kind](rng) for _ in range(SAMPLES_PER_KIND)]
    return [(sample, redact(sample.text)) for sample in samples]


@pytest.mark.parametrize("kind", MADE)
def test_secret_is_removed_whatever_stands_around_it(kind: str) -> None:
    missed = [sample.text for sample, left in redacted(kind) if leaks(left.text, sample.secret)]
    assert len(missed) <= (1 - REMOVED_SHARE_MIN) * SAMPLES_PER_KIND, f"{kind}: {missed[:3]}"


@pytest.mark.parametrize("kind", MADE)
def test_text_around_a_secret_is_kept(kind: str) -> None:
    damaged = [
        (sample.text, left.text)
        for sample, left in redacted(kind)
        if not (left.text.startswith(sample.before) and left.text.endswith(sample.after))
    ]
    assert len(damaged) <= (1 - REMOVED_SHARE_MIN) * SAMPLES_PER_KIND, f"{kind}: {damaged[:2]}"


@pytest.mark.parametrize("kind", MADE)
def test_every_kind_that_is_found_is_documented(kind: str) -> None:
    found = {finding.kind for _, left in redacted(kind) for finding in left.found}
    assert found
    assert found <= set(KINDS)
