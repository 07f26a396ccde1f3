"""Golden files: the bytes of every message as they were first released, kept for ever.

    python -m tests.protocol.golden_files                  write the files that are missing
    python -m tests.protocol.golden_files --replace NAME…  write these anew, keeping their old bytes

`golden/v<SCHEMA_VERSION>/<Type>.json` is what today's code must write for the sample of that type. A new type
gets a sample in `sample_messages.py` and its file by the first command. A type that gained a field gets it in
its sample, and its file by the second, which first makes sure that today's code still reads the old bytes and
then keeps them as `<Type>.<n>.json`. Nothing is overwritten otherwise: a file that differs without its author
having asked for it is a change of the wire format, which the tests are there to find.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from temporality.protocol.codec import decode, encode
from temporality.protocol.message import SCHEMA_VERSION

from .sample_messages import SAMPLES

FOLDER = Path(__file__).with_name("golden")


def golden_file(name: str, folder: Path = FOLDER) -> Path:
    """Return where the bytes of the type called `name` are kept today."""
    return folder / f"v{SCHEMA_VERSION}" / f"{name}.json"


def golden_bytes(sample: object) -> bytes:
    """Return the content of a golden file: the message in one line."""
    return encode(sample) + b"\n"


def all_golden_files(folder: Path = FOLDER) -> Iterator[tuple[str, Path]]:
    """Yield the type's name and the path of every file, of all versions and also replaced ones."""
    for path in sorted(folder.glob("v*/*.json")):
        yield path.name.split(".")[0], path


def write_missing(samples: dict[str, Any] = SAMPLES, folder: Path = FOLDER) -> list[Path]:
    """Write the files that do not exist and return their paths."""
    written = []
    for name, sample in samples.items():
        path = golden_file(name, folder)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(golden_bytes(sample))
            written.append(path)
    return written


def replace(name: str, sample: object, folder: Path = FOLDER) -> Path:
    """Write one file anew and return where its old bytes are kept; they must still be readable.

    Raises `InvalidMessage` if today's code can't read them: old messages are still out there.
    """
    path = golden_file(name, folder)
    before = path.read_bytes()
    decode(before, type(sample))
    number = 1
    while (kept := path.with_suffix(f".{number}.json")).exists():
        number += 1
    kept.write_bytes(before)
    path.write_bytes(golden_bytes(sample))
    return kept


def main(arguments: Sequence[str], say: Callable[[str], object] = sys.stdout.write) -> int:
    """Do what the arguments ask for; 2 if they make no sense."""
    if arguments[:1] == ["--replace"] and set(arguments[1:]) <= set(SAMPLES):
        for name in arguments[1:]:
            say(f"{golden_file(name)} written, old bytes kept in {replace(name, SAMPLES[name]).name}\n")
        return 0
    if arguments:
        say(f"{__doc__}")
        return 2
    for path in write_missing():
        say(f"{path} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
