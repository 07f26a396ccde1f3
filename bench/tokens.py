"""Compare the token estimate with real tokenizers, by kind of text (A40).

    python -m bench.tokens [--data FOLDER]

A budget is kept by an estimate that is rarely too low, so what counts is the share of texts that take more
tokens than estimated, and by how much; being too high only leaves a little of the budget unused. The usual
rule of four characters a token runs beside it. The tokenizers come with the group `dev`, with their
vocabularies; without it there is nothing to compare with. Kinds of text: this project's own prose, code and
paths, sentences in other scripts, and logs and command output if the measuring data is there.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from bench.token_samples import CJK, OPAQUE, RUSSIAN

from temporality.protocol.tokens import estimate_tokens

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "bench" / "results" / "tokens.json"
ENCODINGS = ("cl100k_base", "o200k_base", "qwen3.5")
TEXTS_MAX = 1_000
"""Texts of one kind that are counted."""
CODE_CHARACTERS = 400
"""Length of a piece of code: about that of a hint."""


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How an estimate compares: estimated over real tokens in total and by text, and texts with too few."""

    texts: int
    total: float
    p1: float
    p5: float
    p50: float
    p95: float
    share_too_low: float


def four_characters(text: str) -> int:
    """Estimate a token for every four characters: the usual rule."""
    return -(-len(text) // 4)


def agreement(texts: Sequence[str], real: Sequence[int], estimate: Callable[[str], int]) -> Agreement:
    """Compare `estimate` with the real counts of `texts`."""
    estimated = [estimate(text) for text in texts]
    ratios = sorted(ours / theirs for ours, theirs in zip(estimated, real, strict=True))

    def quantile(share: float) -> float:
        return round(ratios[int(share * (len(ratios) - 1))], 2)

    return Agreement(
        texts=len(texts),
        total=round(sum(estimated) / sum(real), 2),
        p1=quantile(0.01),
        p5=quantile(0.05),
        p50=quantile(0.5),
        p95=quantile(0.95),
        share_too_low=round(sum(ratio < 1 for ratio in ratios) / len(ratios), 3),
    )


def own_texts() -> Iterator[tuple[str, list[str]]]:
    """Yield the kinds of text that the project itself has."""
    documents = sorted(REPOSITORY.glob("docs/**/*.md"))
    paragraphs = [part for path in documents for part in path.read_text(encoding="utf-8").split("\n\n")]
    yield "english", [part for part in paragraphs if not part.startswith(("|", "```", "#"))]
    code = [
        path.read_text(encoding="utf-8")
        for folder in ("protocol", "storage", "actors", "deploy")
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
    ]
    yield (
        "code",
        [text[at : at + CODE_CHARACTERS] for text in code for at in range(0, len(text), CODE_CHARACTERS * 3)],
    )
    yield "paths and ids", list(OPAQUE)
    yield "russian", list(RUSSIAN)
    yield "cjk", list(CJK)


def measured_texts(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the kinds of text of the measuring data, those that are there."""
    logs = [
        json.loads(line)["text"]
        for path in sorted((data / "loghub").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()[::10]
    ]
    yield "logs", logs
    failures = data / "remedies" / "failures.jsonl"
    lines = failures.read_text(encoding="utf-8").splitlines() if failures.is_file() else []
    yield "command and output", [f"{case['command']}\n{case['output']}" for case in map(json.loads, lines)]


def measure(kinds: dict[str, list[str]], count: Callable[[list[str], str], list[int]]) -> dict[str, object]:
    """Compare both estimates with every encoding on every kind of text."""
    results: dict[str, object] = {}
    for encoding in ENCODINGS:
        for kind, texts in kinds.items():
            real = count(texts, encoding)
            ours = agreement(texts, real, estimate_tokens)
            rule = agreement(texts, real, four_characters)
            results[f"{encoding} {kind}"] = {"estimate": ours, "four characters": rule}
            print(
                f"{encoding:<12} {kind:<19} {ours.texts:>5} texts: total {ours.total:.2f}, p1 {ours.p1:.2f}, "
                f"p50 {ours.p50:.2f}, p95 {ours.p95:.2f}, too low {ours.share_too_low:>6.1%}"
                f"   (four characters: total {rule.total:.2f}, too low {rule.share_too_low:.1%})"
            )
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparison and write the results; return 0 also when there is no tokenizer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    default = os.environ.get("TEMPORALITY_DATA", str(REPOSITORY.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(default), help="folder with loghub and remedies")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    try:
        from toktok import batch_count  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        print("tokens: skipped, no tokenizer to compare with (pip install toktok-rs)")
        return 0
    found = (*own_texts(), *measured_texts(options.data))
    kinds = {kind: [text for text in texts if text.strip()][:TEXTS_MAX] for kind, texts in found}
    results = measure({kind: texts for kind, texts in kinds.items() if texts}, batch_count)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")
    print(f"tokens: {len(results)} comparisons with {len(ENCODINGS)} encodings")
    return 0


if __name__ == "__main__":
    sys.exit(main())
