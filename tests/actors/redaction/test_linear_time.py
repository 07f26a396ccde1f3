"""The work is linear in the text (0-architecture, Security) and, for `clean`, in the bound alone (A17).

Shown by structure and by counting, not by clocks: no pattern can backtrack over more than a fixed number of
characters, and the number of calls made for a text grows with its length at most.
"""

import importlib
import pkgutil
import re
import re._parser as parser  # type: ignore[import-not-found]
import sys
from collections.abc import Callable, Iterator
from random import Random
from types import FrameType

import pytest

import temporality.actors.redaction as package
from temporality.actors.redaction import clean, redact
from temporality.actors.redaction.commands import PLACES
from temporality.actors.redaction.plain import windows_of
from temporality.actors.redaction.vendors import TOKEN_LENGTH_MIN, VENDORS

REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


def patterns() -> dict[str, re.Pattern[str]]:
    found: dict[str, re.Pattern[str]] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if not module.ispkg:
            names = vars(importlib.import_module(f"{package.__name__}.{module.name}"))
            found |= {f"{module.name}.{name}": it for name, it in names.items() if isinstance(it, re.Pattern)}
    found |= {f"commands.{place.literal}": place.pattern for place in PLACES}
    return found | {f"vendors.{vendor.prefixes[0]}": vendor.pattern() for vendor in VENDORS}


def faults(tree: object, repeated: bool = False) -> Iterator[str]:
    """Yield what could backtrack without limit, or multiply: only possessive repeats may do either."""
    for operation, argument in tree:  # type: ignore[attr-defined]
        name = str(operation)
        if name in REPEATS:
            least, most, inner = argument
            if name != "POSSESSIVE_REPEAT" and most is parser.MAXREPEAT:
                yield "an unbounded repeat that can backtrack"
            if name != "POSSESSIVE_REPEAT" and repeated and most > 1 and most != least:
                yield "a repeat inside a repeat"
            yield from faults(inner, repeated or most > 1)
        elif name == "SUBPATTERN":
            yield from faults(argument[-1], repeated)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from faults(branch, repeated)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from faults(argument[1], repeated)
        elif name == "ATOMIC_GROUP":
            yield from faults(argument, repeated)


def test_checker_sees_the_patterns_it_must_refuse() -> None:
    assert list(faults(parser.parse(r"(?:a{1,9}){2,9}")))
    assert list(faults(parser.parse(r"a+b")))
    assert not list(faults(parser.parse(r"(?:a{1,9}+b){2,9}+c*+")))


@pytest.mark.parametrize("name", patterns())
def test_pattern_can_not_backtrack_without_limit(name: str) -> None:
    pattern = patterns()[name]
    assert list(faults(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE))) == []


def calls_of(run: Callable[[], object]) -> int:
    """Count the calls of Python and C functions that `run` makes."""
    count = 0

    def profile(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


HOSTILE = (
    "password",
    "password=",
    'password="',
    "password: ",
    "key: x\n",
    "token(",
    "sk-",
    "eyJ",
    "eyJaaaaaa.",
    "a:",
    "://",
    "https://a:",
    "a@",
    "://a:b@",
    "-----BEGIN PRIVATE KEY-----\n",
    "PRIVATE KEY",
    "Bearer ",
    "Authorization: ",
    "Cookie: a=",
    "\\",
    '\\"',
    "%25",
    "[redacted:x]",
    "[redacted:",
    "password=[redacted:x]",
    "$2b$",
    "' -u a:",
    "1:2:",
    "<password>",
    "pass pass: ",
    "ghp_a ",
    "api key for a b c: ",
    '"token", ',
    "x.",
    "AKIA",
    "- a\n",
    "passphrase: a b c d\n",
    "token = f(",
    "İ",
    " ",
    "\n",
    "Private-Lines: 1\n",
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_number_of_steps_grows_with_the_text_at_most(piece: str) -> None:
    short, long = piece * (2_000 // len(piece)), piece * (8_000 // len(piece))
    few, many = calls_of(lambda: redact(short)), calls_of(lambda: redact(long))
    assert many <= 4.5 * few + 100


@pytest.mark.parametrize("piece", HOSTILE)
def test_steps_of_cleaning_do_not_depend_on_the_size_of_the_input(piece: str) -> None:
    short, long = piece * (24_000 // len(piece)), piece * (240_000 // len(piece))
    few = calls_of(lambda: clean(short, characters_max=999))
    many = calls_of(lambda: clean(long, characters_max=999))
    assert many <= 1.1 * few + 50


def test_only_the_windows_of_a_long_text_are_looked_at() -> None:
    class Counting(str):
        """A text that notes how many characters are taken out of it."""

        __slots__ = ()
        taken = 0

        def __getitem__(self, key: object) -> str:
            piece = str.__getitem__(self, key)  # type: ignore[index]
            Counting.taken += len(piece)
            return piece

    text = Counting("word " * 2_000_000)
    windows = windows_of(text, 10_000, 6_000)
    assert (len(windows.head), len(windows.tail or "")) == (10_000, 6_000)
    assert Counting.taken <= 16_000
    noise = Counting("\x00" * 10_000_000)
    Counting.taken = 0
    windows_of(noise, 10_000, 6_000)
    assert Counting.taken <= 16 * 16_000


def test_long_random_text_has_no_step_beyond_its_windows() -> None:
    rng = Random(1)
    text = "".join(rng.choice("abc =:\"'\n") for _ in range(30_000))
    assert calls_of(lambda: clean(text * 40, characters_max=999)) <= 1.2 * calls_of(
        lambda: clean(text, characters_max=999)
    )


def test_no_token_of_a_vendor_is_shorter_than_the_runs_that_are_searched() -> None:
    lengths = {prefix: len(prefix) + vendor.least for vendor in VENDORS for prefix in vendor.prefixes}
    assert {prefix for prefix, length in lengths.items() if length < TOKEN_LENGTH_MIN} == set()
