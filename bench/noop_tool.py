"""The tool of the turn bench: does nothing, answers 2 KB."""

ANSWER_CHARACTERS = 2_048


def noop(n: int) -> str:
    """Return a text of 2 KB that differs for each `n`."""
    return (f"answer {n}: " + "the quick brown fox jumps over the lazy dog, again and again. " * 40)[
        :ANSWER_CHARACTERS
    ]


noop.temporality_effect = "none"  # type: ignore[attr-defined]
