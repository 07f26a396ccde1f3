"""The situation fingerprint (A30, A31): one key for one kind of failure, whatever it happened to.

"85 identical failures, one activation" is easy while the failures are identical. They never are: each names
its own file, port, process, moment. A fingerprint replaces what varies by placeholders and hashes what
remains. It could learn what varies from the messages seen so far, as log parsers do; but then the same text
gets one key today and another tomorrow, two supervisors disagree, and a replay is not a replay. So this one
is stateless: a fixed, ordered table of steps, each a linear-time pattern, and nothing else. A change of any
step changes `FINGERPRINT_VERSION`, which is part of every key.

Its two mistakes are not equal. Splitting one situation in two costs one look-up more. Merging two
situations silences the second error for the whole run. So a step must have a reason in how messages are
made, numbers that were assigned a meaning stay (see `numbers`), and a word stays a word unless its
surroundings say that it is a name (see `wording`).

Two forms come out. `normalize` keeps the types of what it replaced, for people. The key drops the types,
because one message names a machine by host name and the next by address.
"""

import hashlib
import unicodedata

import msgspec

from temporality.protocol.fingerprint import literals, notation, numbers, repeats, wording
from temporality.protocol.fingerprint.step import Step
from temporality.protocol.trigger import TOOL_FAILED

FINGERPRINT_VERSION = "f1"
"""Name of the algorithm as a whole; a new one for any change that can change a key."""

TEXT_LENGTH_MAX = 4_096
"""Characters that are looked at, half of what a result may hold: protects a barrier from many long texts."""

KEY_BYTES = 12
"""96 bits: among 10^9 situations, a chance of 10^-11 that any two share a key."""

NORMALIZE_STEPS: tuple[Step, ...] = (
    *notation.STEPS,
    wording.SUGGESTIONS,
    *literals.STEPS,
    wording.QUOTES,
    *literals.AFTER_QUOTES,
    *wording.STEPS,
    *numbers.STEPS,
    *repeats.STEPS,
)
"""The steps of `normalize`, in order: the clearest notation first, so that later steps don't tear it."""

KEY_STEPS: tuple[Step, ...] = repeats.KEY_STEPS
"""The steps from the normalized text to the text that is hashed."""

_CUT = " … "


class FingerprintRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line to `probe fingerprint`: a failed call's diagnostic, and whose it is."""

    text: str
    tool: str = ""
    mcp_server: str = ""
    error_class: str = ""


class FingerprintAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One line from `probe fingerprint`."""

    key: str
    normalized: str
    version: str


def normalize(text: str) -> str:
    """Return `text` with its unstable parts replaced by typed placeholders such as `<path>` and `<num>`.

    Pure, and linear in the length; of a text beyond `TEXT_LENGTH_MAX` the first two thirds and the last third
    of the bound are looked at. Normalizing twice changes nothing. Rule A30.
    """
    text = _cut(text).strip()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    for step in NORMALIZE_STEPS:
        text = step.apply(text)
    return _cut(text.strip())


def situation_key(*, trigger: str, source: str, error_class: str, text: str) -> str:
    """Return the situation key: 24 hexadecimal characters, fit for a subject.

    `source` is the MCP server's key, or the tool's name where there is no server. Two texts that differ in
    unstable parts only have one key; another version, trigger, source or error class is another key.
    Rules A30, A31.
    """
    return _digest(trigger, source, error_class, normalize(text))


def probe(request: FingerprintRequest) -> FingerprintAnswer:
    """Answer one line of `probe fingerprint`, as for a call that failed (`tool.failed`)."""
    normalized = normalize(request.text)
    source = request.mcp_server or request.tool
    key = _digest(TOOL_FAILED, source, request.error_class, normalized)
    return FingerprintAnswer(key=key, normalized=normalized, version=FINGERPRINT_VERSION)


def _digest(trigger: str, source: str, error_class: str, normalized: str) -> str:
    """Hash the parts of a situation so that no part can run into the next."""
    for step in KEY_STEPS:
        normalized = step.apply(normalized)
    parts = msgspec.json.encode((FINGERPRINT_VERSION, trigger, source, error_class, normalized))
    return hashlib.blake2b(parts, digest_size=KEY_BYTES).hexdigest()


def _cut(text: str) -> str:
    """Cut `text` to `TEXT_LENGTH_MAX`: two thirds from the head, one from the tail, which says why."""
    if len(text) <= TEXT_LENGTH_MAX:
        return text
    kept = TEXT_LENGTH_MAX - len(_CUT)
    head = kept * 2 // 3
    return text[:head] + _CUT + text[len(text) - (kept - head) :]
