"""Measure what the retriever finds, what it withholds, and how long it takes (A19, A20, A23).

Three questions. *Ranking*: is the known remedy of a failing command the first of 166, by its words alone, and
when items carry one other failure as an example (the failure looked up is never its own example)? *Silence*:
at the shipped cut, and on the curve around it, how often is a remedy withheld that is known to be wrong, and
how many failures still get the right one first? *Speed*: a base of generated items in a file, the engine as a
process runs it. Cranfield and the stemmers' own vocabulary say whether the parts are sound.

Constants are judged by halves: remedies are split by the hash of their id, a cut is chosen on one half and
reported on the other. No constant was set by a single line. Without data only the speed is measured.
"""

import argparse
import json
import math
import os
import re
import statistics
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
from bench.retrieval_speed import measure_speed

from temporality.actors.language import stem, terms
from temporality.actors.retriever.query import ItemAnalyser, Query, analyse
from temporality.actors.retriever.ranking import MATCHER_VERSION, Statistics, Weigher
from temporality.actors.retriever.selection import HONEST_ZERO, Cut, Weighed, select
from temporality.protocol.editorial import KnowledgeItem
from temporality.protocol.hint import HintRequest
from temporality.protocol.trigger import TOOL_FAILED
from temporality.storage.knowledge_profile import Profile

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "bench" / "results" / "retrieval.json"
ITEMS = 100_000
HITS_KEPT = 0.88
"""Share of the first places of the uncut ranking that a cut chosen for silence must keep."""
CURVE = [
    Cut(support_min=support, coverage_min=coverage)
    for support in (0.0, 0.1, 0.2, 0.3, 0.5)
    for coverage in (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
]
CRANFIELD_DEPTH = 10


class Failure(msgspec.Struct, frozen=True):
    """A command that failed, its output, and the ids of what helps (or, of a negative, does not)."""

    command: str
    output: str
    remedies: tuple[str, ...] = ()
    not_rule: str = ""

    def query(self) -> Query:
        """Return the failure as the supervisor would ask about it."""
        return analyse(HintRequest(trigger=TOOL_FAILED, tool_input=self.command, tool_result=self.output))

    def example(self) -> str:
        """Return the failure as an item's example error."""
        return f"{self.command}\n{self.output}"


class Remedy(msgspec.Struct, frozen=True):
    """An item of the collection."""

    _id: str
    title: str
    text: str

    def item(self) -> KnowledgeItem:
        """Return it as knowledge."""
        return KnowledgeItem(knowledge_id=self._id, proposition=f"{self.title}: {self.text}")


def half(remedy: str) -> int:
    """Return the half that a remedy belongs to."""
    return zlib.crc32(remedy.encode()) % 2


def read_lines(path: Path, kind: type[Any]) -> list[Any]:
    """Read one message a line."""
    decoder = msgspec.json.Decoder(kind)
    return [decoder.decode(line) for line in path.read_bytes().splitlines() if line.strip()]


def statistics_of(profiles: Sequence[Profile]) -> Statistics:
    """Count the terms of a base as the index does."""
    frequencies = Counter(term for profile in profiles for term in profile.indexed())
    return Statistics(len(profiles), statistics.fmean(p.length for p in profiles), frequencies)


def share(hits: Iterable[bool]) -> float:
    """Return the share of true ones."""
    found = list(hits)
    return round(sum(found) / len(found), 4) if found else 0.0


class Remedies:
    """The collection, each failure weighed against each item once."""

    def __init__(self, folder: Path) -> None:
        analyser = ItemAnalyser()
        items = [remedy.item() for remedy in read_lines(folder / "items.jsonl", Remedy)]
        self.ids = [item.knowledge_id for item in items]
        self.profiles = [analyser.profile(item) for item in items]
        self.failures: list[Failure] = read_lines(folder / "failures.jsonl", Failure)
        known = set(self.ids)
        self.negatives = [n for n in read_lines(folder / "negatives.jsonl", Failure) if n.not_rule in known]
        self._examples = [
            analyser.profile(KnowledgeItem(proposition="x", example_errors=(failure.example(),))).examples
            for failure in self.failures
        ]
        self._of = defaultdict(list)
        for number, failure in enumerate(self.failures):
            for remedy in failure.remedies:
                self._of[remedy].append(number)

    def has_other_example(self, number: int) -> bool:
        """Tell whether a remedy of the failure is also that of another one."""
        return any(len(self._of[remedy]) > 1 for remedy in self.failures[number].remedies)

    def with_examples(self, left_out: int | None) -> list[Profile]:
        """Return the items, each with the first of its failures as example, never the one left out."""
        return [
            Profile(
                profile.keys,
                profile.text,
                profile.names,
                next((self._examples[n] for n in self._of.get(name, ()) if n != left_out), ()),
            )
            for name, profile in zip(self.ids, self.profiles, strict=True)
        ]

    def weighed(self, query: Query, profiles: Sequence[Profile]) -> list[Weighed]:
        """Weigh every item: no cap on what is looked up."""
        weigher = Weigher(query, statistics_of(profiles))
        return [
            Weighed(
                name, weigher.weigh(profile), profile, by_person=True, topic=None, is_covered_by_skill=False
            )
            for name, profile in zip(self.ids, profiles, strict=True)
        ]


Answers = list[tuple[Failure, Query, list[Weighed]]]


def ranking(answers: Answers, counted: Callable[[int], bool] = lambda _: True) -> dict[str, Any]:
    """Return how often a remedy stands first, and among the first three, without any cut."""
    first: list[bool] = []
    third: list[bool] = []
    halves: tuple[list[bool], list[bool]] = ([], [])
    for number, (failure, query, weighed) in enumerate(answers):
        if counted(number):
            names = [each.knowledge_id for each in select(weighed, query, TOOL_FAILED, cut=None)]
            first.append(bool(names) and names[0] in failure.remedies)
            third.append(any(name in failure.remedies for name in names[:3]))
            halves[half(failure.remedies[0])].append(first[-1])
    return {
        "hit@1": share(first),
        "hit@3": share(third),
        "hit@1 of halves": [share(part) for part in halves],
        "failures": len(first),
    }


def silence(failures: Answers, negatives: Answers, cut: Cut, part: int | None = None) -> dict[str, float]:
    """Return what a cut keeps and what it withholds, of one half or of all."""
    hits: list[bool] = []
    offers: list[int] = []
    withheld: list[bool] = []
    for failure, query, weighed in failures:
        if part in (None, half(failure.remedies[0])):
            names = [each.knowledge_id for each in select(weighed, query, TOOL_FAILED, cut=cut)]
            hits.append(bool(names) and names[0] in failure.remedies)
            offers.append(len(names))
    for negative, query, weighed in negatives:
        if part in (None, half(negative.not_rule)):
            names = [each.knowledge_id for each in select(weighed, query, TOOL_FAILED, cut=cut)]
            withheld.append(negative.not_rule not in names)
    return {
        "hit@1": share(hits),
        "withheld": share(withheld),
        "offers": round(statistics.fmean(offers), 2),
        "spoke": share(count > 0 for count in offers),
    }


def chosen_on(failures: Answers, negatives: Answers, part: int) -> Cut:
    """Return the cut that withholds most on one half while enough failures still get their remedy."""
    scored = [(silence(failures, negatives, cut, part), cut) for cut in CURVE]
    floor = HITS_KEPT * ranking([each for each in failures if half(each[0].remedies[0]) == part])["hit@1"]
    enough = [(figures, cut) for figures, cut in scored if figures["hit@1"] >= floor]
    return max(enough, key=lambda pair: (pair[0]["withheld"], pair[0]["hit@1"]))[1]


def measure_remedies(folder: Path) -> dict[str, Any]:
    """Measure ranking and silence on the collection of failing commands."""
    base = Remedies(folder)
    queries = [failure.query() for failure in base.failures]
    plain = [(f, q, base.weighed(q, base.profiles)) for f, q in zip(base.failures, queries, strict=True)]
    exampled = [
        (f, q, base.weighed(q, base.with_examples(number)))
        for number, (f, q) in enumerate(zip(base.failures, queries, strict=True))
    ]
    asked = [(n, n.query()) for n in base.negatives]
    wrong = [(n, q, base.weighed(q, base.profiles)) for n, q in asked]
    wrong_exampled = [(n, q, base.weighed(q, base.with_examples(None))) for n, q in asked]
    chosen = {part: chosen_on(plain, wrong, part) for part in (0, 1)}
    return {
        "command and output": ranking(plain),
        "one example each": ranking(exampled),
        "one example each, failures with another": ranking(exampled, base.has_other_example),
        "shipped cut": silence(plain, wrong, HONEST_ZERO),
        "shipped cut by halves": [silence(plain, wrong, HONEST_ZERO, part) for part in (0, 1)],
        "shipped cut, one example each": silence(exampled, wrong_exampled, HONEST_ZERO),
        "chosen on the other half": [
            {
                "support_min": chosen[1 - part].support_min,
                "coverage_min": chosen[1 - part].coverage_min,
                **silence(plain, wrong, chosen[1 - part], part),
            }
            for part in (0, 1)
        ],
        "curve": [
            {"support_min": cut.support_min, "coverage_min": cut.coverage_min, **silence(plain, wrong, cut)}
            for cut in CURVE
        ],
    }


def measure_cranfield(folder: Path) -> dict[str, float]:
    """Return MAP and nDCG@10 of the ranking alone: every document weighed, no caps and no cut."""
    documents = fields(folder / "cran.all.1400", "TW")
    profiles = [Profile((), terms(text), (), ()) for text in documents]
    counted = statistics_of(profiles)
    relevant: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for line in (folder / "cranqrel").read_text().splitlines():
        query, document, grade = map(int, line.split()[:3])
        if 1 <= grade <= 4:
            relevant[query][document] = 5 - grade
    precisions: list[float] = []
    gains: list[float] = []
    for number, text in enumerate(fields(folder / "cran.qry", "W"), start=1):
        if relevant[number]:
            weigher = Weigher(analyse(HintRequest(query=text)), counted)
            scores = [weigher.weigh(profile).score for profile in profiles]
            ranked = sorted(range(1, len(scores) + 1), key=lambda n: -scores[n - 1])
            precisions.append(average_precision(ranked, relevant[number]))
            gains.append(discounted_gain(ranked[:CRANFIELD_DEPTH], relevant[number]))
    return {"MAP": round(statistics.fmean(precisions), 4), "nDCG@10": round(statistics.fmean(gains), 4)}


def fields(path: Path, wanted: str) -> list[str]:
    """Return, for each record of a SMART file, its wanted fields (letters after the dot) as one text."""
    texts: list[str] = []
    field = ""
    for line in path.read_text(encoding="latin-1").splitlines():
        if line.startswith(".I "):
            texts.append("")
        elif re.fullmatch(r"\.[A-Z]", line.strip()):
            field = line.strip()[1]
        elif field in wanted:
            texts[-1] += line + "\n"
    return texts


def average_precision(ranked: Sequence[int], relevant: dict[int, int]) -> float:
    """Return the mean of the precisions at the places of the relevant ones."""
    found = 0
    total = 0.0
    for place, document in enumerate(ranked, start=1):
        if document in relevant:
            found += 1
            total += found / place
    return total / len(relevant)


def discounted_gain(ranked: Sequence[int], relevant: dict[int, int]) -> float:
    """Return the gain of a ranking against the best possible, discounted by place."""
    best = sorted(relevant.values(), reverse=True)[: len(ranked)]
    ideal = sum(gain / math.log2(place + 1) for place, gain in enumerate(best, start=1))
    gained = (relevant.get(d, 0) / math.log2(place + 1) for place, d in enumerate(ranked, start=1))
    return sum(gained) / ideal


def measure_stems(folder: Path) -> dict[str, float]:
    """Return the share of the stemmers' own vocabulary that gets the expected stem."""
    agreed = {}
    for language in ("english", "russian"):
        words = (folder / f"{language}.voc.txt").read_text(encoding="utf-8").split("\n")
        stems = (folder / f"{language}.output.txt").read_text(encoding="utf-8").split("\n")
        agreed[language] = share(stem(w) == s for w, s in zip(words, stems, strict=True) if w)
    return agreed


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures and write the results; return 0 also when there is no data to measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    default = os.environ.get("TEMPORALITY_DATA", str(REPOSITORY.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(default), help="folder of remedies/, cranfield/ …")
    parser.add_argument("--items", type=int, default=ITEMS, help="generated items for the speed; 0 for none")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    result: dict[str, Any] = {"matcher_version": MATCHER_VERSION}
    measures: list[tuple[str, Callable[[Path], Any]]] = [
        ("remedies", measure_remedies),
        ("cranfield", measure_cranfield),
        ("snowball", measure_stems),
    ]
    for name, measure in measures:
        if (options.data / name).is_dir():
            result[name] = measure(options.data / name)
            shown = {k: v for k, v in result[name].items() if k != "curve"}
            print(f"{name}: {json.dumps(shown, indent=1)}")
        else:
            print(f"retrieval: {name} skipped, no {options.data / name} (give --data or TEMPORALITY_DATA)")
    if options.items:
        result["speed"] = anyio.run(measure_speed, options.items)
        print(f"speed: {json.dumps(result['speed'], indent=1)}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(msgspec.json.format(json.dumps(result).encode(), indent=2) + b"\n")
    print(f"retrieval {MATCHER_VERSION}: {summary(result)}")
    return 0


def summary(result: dict[str, Any]) -> str:
    """Return the figures that matter in one line."""
    parts = []
    if "remedies" in result:
        remedies = result["remedies"]
        cut = remedies["shipped cut"]
        parts.append(f"hit@1 {remedies['command and output']['hit@1']:.3f}")
        parts.append(f"with an example {remedies['one example each, failures with another']['hit@1']:.3f}")
        parts.append(f"at the cut {cut['hit@1']:.3f} with {cut['withheld']:.3f} withheld")
    if "cranfield" in result:
        parts.append(f"MAP {result['cranfield']['MAP']:.3f}, nDCG@10 {result['cranfield']['nDCG@10']:.3f}")
    if "speed" in result:
        typical = result["speed"]["find_hints"]["typical"]
        parts.append(f"find_hints p50 {typical['p50_ms']} ms, p99 {typical['p99_ms']} ms")
    return "; ".join(parts) or "nothing measured"


if __name__ == "__main__":
    sys.exit(main())
