"""Put attack strings into every place of a hint and look whether anything leaves its line or its fence (A37).

    python -m bench.injection [--data FOLDER]

Data: JSON lines `{"text", "attack"}` in `injection/*/attack_strings.jsonl`, and `benign_strings.jsonl` beside
them, of which as little as possible may be changed. This measures the frame, not the model: that the words of
an attack are still read, as the data that they are, is by design; what a model makes of them is measured by
behaviour. Without data there is nothing to measure.
"""

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from temporality.protocol.block import CLOSING, OPENING, PREAMBLE, hint_line, render_hint_block
from temporality.protocol.editorial import KnowledgeState, Scope
from temporality.protocol.hint import Hint, Tier
from temporality.protocol.neutral import one_line, visible

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "bench" / "results" / "injection.json"
TAG = re.compile(r"<\s*[/|!?A-Za-z<]")


class Outcome(msgspec.Struct, kw_only=True):
    """What came of the strings: how many were tried, how many left the frame (and how), how many changed."""

    strings: int
    blocks: int
    escaped: int
    escapes: dict[str, int]
    attacks: dict[str, int]
    benign: int
    benign_changed: int


def hint_with(text: str) -> Hint:
    """Return a hint that carries `text` wherever somebody else's text may stand."""
    return Hint(
        hint_id="hint-1",
        knowledge_id=text,
        revision=1,
        proposition=text,
        tier=Tier.TERMS,
        matched=(text,),
        score=1.0,
        state=KnowledgeState.REVIEWED,
        scope=Scope(team=text, user=text),
        cautions=(text,),
        successor_of=text,
    )


def escapes(texts: Sequence[str]) -> list[str]:
    """Render `texts` as one block and name every way in which it is not one block of one line a hint."""
    block = render_hint_block([hint_with(text) for text in texts])
    lines = block.text.splitlines()
    notes = lines[2:-1]
    found = {
        "lines": len(notes) != len(texts) or not all(line.startswith("- [") for line in notes),
        "fence": (lines[:2], lines[-1]) != ([OPENING, PREAMBLE], CLOSING),
        "tag": len(TAG.findall(block.text)) != 2,
        "code fence": "```" in block.text or "~~~" in block.text,
        "invisible": visible(block.text) != block.text,
        "not stable": any(
            hint_line(hint_with(one_line(text))) != hint_line(hint_with(text)) for text in texts
        ),
    }
    return [name for name, is_so in found.items() if is_so]


def read(folder: Path, name: str) -> list[dict[str, str]]:
    """Return the rows of every file called `name`."""
    return [
        json.loads(line)
        for path in sorted(folder.glob(f"**/{name}"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]


def measure(attacks: list[dict[str, str]], benign: list[dict[str, str]]) -> Outcome:
    """Try every attack alone, all together, and each behind ordinary text; look what benign text loses."""
    texts = [row["text"] for row in attacks]
    blocks = [[text] for text in texts] + [[f"An ordinary note.{text}"] for text in texts] + [texts]
    found = [escapes(block) for block in blocks]
    return Outcome(
        strings=len(texts),
        blocks=len(blocks),
        escaped=sum(map(bool, found)),
        escapes=dict(Counter(name for names in found for name in names)),
        attacks=dict(Counter(row.get("attack", "unnamed") for row in attacks)),
        benign=len(benign),
        benign_changed=sum(one_line(row["text"]) != " ".join(row["text"].split()) for row in benign),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the results; 1 if a string left its line or fence, 0 also when there is no data."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    default = os.environ.get("TEMPORALITY_DATA", str(REPOSITORY.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(default), help="folder that holds injection/")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    folder: Path = options.data / "injection"
    attacks = read(folder, "attack_strings.jsonl")
    if not attacks:
        print(f"injection: skipped, no attack strings in {folder} (give --data or TEMPORALITY_DATA)")
        return 0
    outcome = measure(attacks, read(folder, "benign_strings.jsonl"))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(msgspec.json.format(msgspec.json.encode(outcome), indent=2) + b"\n")
    print(
        f"injection: {outcome.escaped} of {outcome.blocks} blocks of {outcome.strings} attacks were left "
        f"{outcome.escapes or ''}; {outcome.benign_changed} of {outcome.benign} benign strings changed"
    )
    return 1 if outcome.escaped else 0


if __name__ == "__main__":
    sys.exit(main())
