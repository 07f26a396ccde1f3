"""Measure how well the situation fingerprint groups messages that differ in their variable parts only (A30).

A set is a file of JSON lines `{"text", "group"}`, labelled by the statement that printed each line. Lines
with one key are one predicted group. Precision comes first: a merged key silences a new error, a split one
only costs a look-up. Two baselines run on the same lines, so that a figure is never compared across runs.
Only the public API is used, as any other caller would; without data there is nothing to measure.
"""

import argparse
import json
import os
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from temporality.protocol.fingerprint import FINGERPRINT_VERSION, normalize, situation_key

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "bench" / "results" / "grouping.json"
TEXT_LENGTH = 8_192
"""Characters of the timed text: the bound to which a diagnostic is cut before it is fingerprinted (A17)."""
TIMED_RUNS = 60
SCORED_DIGITS = 4

Key = Callable[[str], str]
_DIGITS = re.compile(r"\d+")


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One labelled message."""

    text: str
    group: str


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """Pairwise precision and recall, and grouping accuracy, of one key on one set; each from 0 to 1."""

    precision: float
    recall: float
    accuracy: float


def digits_masked(text: str) -> str:
    """Return `text` with every run of digits masked: the first baseline."""
    return _DIGITS.sub("#", text)


def tokens_masked(text: str) -> str:
    """Return `text` with every white-space token that holds a digit masked: the second baseline."""
    return " ".join("#" if _DIGITS.search(token) else token for token in text.split())


def ours(text: str) -> str:
    """Return the situation key that a failed tool call with this diagnostic would get."""
    return situation_key(trigger="tool.failed", source="bench", error_class="tool_error", text=text)


KEYS: dict[str, Key] = {"fingerprint": ours, "digits": digits_masked, "tokens": tokens_masked}


def pairs(sizes: Iterable[int]) -> int:
    """Count the unordered pairs within groups of these sizes."""
    return sum(size * (size - 1) // 2 for size in sizes)


def ratio(part: int, whole: int) -> float:
    """Return `part / whole`; an empty whole holds no mistake."""
    return part / whole if whole else 1.0


def score(lines: Sequence[Line], key: Key) -> Score:
    """Compare the groups that `key` makes of `lines` with their labels."""
    keys = [key(line.text) for line in lines]
    predicted = Counter(keys)
    labelled = Counter(line.group for line in lines)
    both = Counter(zip(keys, (line.group for line in lines), strict=True))
    together = pairs(both.values())
    exact = sum(n for (k, g), n in both.items() if n == predicted[k] == labelled[g])
    return Score(
        precision=ratio(together, pairs(predicted.values())),
        recall=ratio(together, pairs(labelled.values())),
        accuracy=ratio(exact, len(lines)),
    )


def mean(scores: Sequence[Score]) -> Score:
    """Average scores over sets, each set weighing the same."""
    return Score(
        precision=statistics.fmean(s.precision for s in scores),
        recall=statistics.fmean(s.recall for s in scores),
        accuracy=statistics.fmean(s.accuracy for s in scores),
    )


def read_sets(folder: Path) -> dict[str, list[Line]]:
    """Read every labelled set of `folder`, by name."""
    decoder = msgspec.json.Decoder(Line)
    return {
        path.stem: [decoder.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
        for path in sorted(folder.glob("*.jsonl"))
    }


def time_ms(sets: dict[str, list[Line]]) -> dict[str, float]:
    """Time `normalize` on texts of 8,192 characters made of each set's lines, in milliseconds."""
    bests: list[float] = []
    medians: list[float] = []
    for lines in sets.values():
        text = "\n".join(line.text for line in lines)[:TEXT_LENGTH]
        runs: list[float] = []
        for _ in range(TIMED_RUNS):
            started = time.perf_counter()
            normalize(text)
            runs.append((time.perf_counter() - started) * 1_000)
        bests.append(min(runs))
        medians.append(statistics.median(runs))
    return {
        "best_ms": round(statistics.fmean(bests), 3),
        "best_of_slowest_set_ms": round(max(bests), 3),
        "median_ms": round(statistics.fmean(medians), 3),
    }


def rounded(value: Score) -> dict[str, float]:
    """Return the three figures of `value` as they are reported."""
    return {name: round(number, SCORED_DIGITS) for name, number in msgspec.structs.asdict(value).items()}


def table(scores: dict[str, dict[str, Score]]) -> str:
    """Lay out `scores[key][set]` as one row a set, and the means below."""
    head = f"{'set':<14}" + "".join(f"{name:>12}  P     R    GA" for name in scores)
    names = list(next(iter(scores.values())))
    rows = [
        f"{row:<14}" + "".join(f"{s.precision:>11.4f} {s.recall:.3f} {s.accuracy:.3f}" for s in figures)
        for row, figures in [(name, [scores[key][name] for key in scores]) for name in names]
        + [("mean", [mean(list(by_set.values())) for by_set in scores.values()])]
    ]
    return "\n".join([head, *rows])


def as_lists(folder: Path, counts: dict[str, list[Line]]) -> str:
    """Name the pairs of labels that share a key, and the labels that have several, worst first."""
    rows: list[tuple[int, str]] = []
    for name, lines in counts.items():
        by_key: defaultdict[str, Counter[str]] = defaultdict(Counter)
        by_label: defaultdict[str, Counter[str]] = defaultdict(Counter)
        shapes: dict[str, str] = {}
        for line in lines:
            key = ours(line.text)
            shapes.setdefault(key, normalize(line.text))
            by_key[key][line.group] += 1
            by_label[line.group][key] += 1
        rows += [
            (n.total() - max(n.values()), f"{name} MERGED {dict(n)} {shapes[k][:150]!r}")
            for k, n in by_key.items()
            if len(n) > 1
        ]
        rows += [
            (
                n.total() - max(n.values()),
                f"{name} SPLIT {label} {[(c, shapes[k][:110]) for k, c in n.most_common(3)]}",
            )
            for label, n in by_label.items()
            if len(n) > 1
        ]
    return (
        "\n".join(f"{cost:>5} {row}" for cost, row in sorted(rows, reverse=True)) or f"no mistake in {folder}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and write the results; return 0 also when there is no data to measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    default = os.environ.get("TEMPORALITY_DATA", str(REPOSITORY.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(default), help="folder that holds loghub/*.jsonl")
    parser.add_argument("--mistakes", action="store_true", help="list what was merged and split, worst first")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    folder: Path = options.data / "loghub"
    sets = read_sets(folder)
    if not sets:
        print(f"grouping: skipped, no labelled sets in {folder} (give --data or TEMPORALITY_DATA)")
        return 0
    scores = {name: {s: score(lines, key) for s, lines in sets.items()} for name, key in KEYS.items()}
    speed = time_ms(sets)
    print(table(scores))
    if options.mistakes:
        print(as_lists(folder, sets))
    result = {
        "version": FINGERPRINT_VERSION,
        "sets": {name: {s: rounded(v) for s, v in by_set.items()} for name, by_set in scores.items()},
        "mean": {name: rounded(mean(list(by_set.values()))) for name, by_set in scores.items()},
        "text_length": TEXT_LENGTH,
        "time": speed,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(msgspec.json.format(json.dumps(result).encode(), indent=2) + b"\n")
    means = mean(list(scores["fingerprint"].values()))
    print(
        f"grouping {FINGERPRINT_VERSION}: precision {means.precision:.4f}, recall {means.recall:.3f}, "
        f"accuracy {means.accuracy:.3f} over {len(sets)} sets; "
        f"{speed['best_ms']} ms per 8 KB at best, {speed['median_ms']} ms in the median"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
