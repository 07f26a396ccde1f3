"""Steps for what depends on how many there were and how large: units, plurals, lists, repeated lines.

The last group turns the readable form into the key's form. A thing may be named now by its host name and
now by its address, a size now in bytes and now in megabytes; so the key knows that a value stood here, not
of which kind.
"""

import re

from temporality.protocol.fingerprint.numbers import UNIT
from temporality.protocol.fingerprint.step import Step

PLACEHOLDERS = tuple("time uuid url email str ip mac host path name val num hex version hash id".split())
"""Every type that a placeholder may have, as `<type>`."""

_TYPE = "|".join(PLACEHOLDERS)
STEPS = (
    Step(
        name="bounds",
        pattern=re.compile(r"[<>](?<![\w<>=].)=?<num>"),
        replacement="<num>",
        why="Less than one second is a duration like others.",
        before="done in <1 second",
        after="done in <num>",
        needs=("<<num>", "><num>", "=<num>"),
    ),
    Step(
        name="units",
        pattern=re.compile(rf"<num> ?{UNIT}(?!\w)"),
        replacement="<num>",
        why="The unit follows the size of the value.",
        before="stored 5.2 KB in 1 minute",
        after="stored <num> in <num>",
        needs=("<num>",),
    ),
    Step(
        name="plurals",
        pattern=re.compile(r"<num> ([^\W\d_]{2,}?)(?:(?<=[xh])es|(?<=[^sui])s)(?!\w)"),
        replacement=r"<num> \1",
        why="The plural follows the count.",
        before="found 2 errors, 1 error",
        after="found <num> error, <num> error",
        needs=("<num> ",),
    ),
    Step(
        name="lists",
        pattern=re.compile(rf"<({_TYPE})>(?:[ ,;:|/+-]{{1,3}}(?:<\1>|\*{{2,9}}(?![\w*])))+"),
        replacement=r"<\1>",
        why="How many values are listed varies like the values; stars stand for one that is missing.",
        before="delete blk_1 blk_2, blk_3; fans 3552 **** 3515",
        after="delete <id>; fans <num>",
        needs=("> <", "> *", ">,", ">;", ">:", ">|", ">/", ">+", ">-"),
    ),
    Step(
        name="repeated lines",
        pattern=re.compile(r"(?m:^)([^\n]++)(?:\n\1(?=\n|\Z))+"),
        replacement=r"\1",
        why="The same complaint about several places is the same complaint.",
        before="a.py:3: unused import\nb.py:7: unused import",
        after="<path>: unused import",
        needs=("\n",),
    ),
)
KEY_STEPS = (
    Step(
        name="types",
        pattern=re.compile(rf"<(?:{_TYPE})>"),
        replacement="<*>",
        why="One thing may be given by name or by number, so its type doesn't count.",
        before="peer <host>, peer <ip>",
        after="peer <*>, peer <*>",
    ),
    Step(
        name="said twice",
        pattern=re.compile(r"<\*> ?\((?:<\*>)?\)"),
        replacement="<*>",
        why="A parenthesis that says a value again in another form, or could have.",
        before="<num> (<num>) sent by <ip> ()",
        after="<*> sent by <*>",
    ),
    Step(
        name="mixed lists",
        pattern=re.compile(r"<\*>(?:[ ,;:|/+-]{0,3}<\*>)+"),
        replacement="<*>",
        why="As for lists, whatever the types.",
        before="<id>:<num>, <hex>",
        after="<*>",
    ),
    Step(
        name="records",
        pattern=re.compile(r"(<\*>[^\n]{1,40}?)\1++"),
        replacement=r"\1",
        why="A list of records, however long; the last one, which lacks the separator, stays.",
        before="nodes <id> <hex> up, <id> <hex> up, <id> <hex> up",
        after="nodes <*> up, <*> up",
    ),
)
