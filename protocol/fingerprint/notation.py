"""Steps that remove differences of notation: one text, however a terminal, a locale or a log wrapped it."""

import re

from temporality.protocol.fingerprint.step import Step

_BLANK = r" \t\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

STEPS = (
    Step(
        name="escapes",
        pattern=re.compile(
            r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u2060\ufeff]"
            r"(?:(?<=\x1b)(?:\[[0-9;?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]*+\x07?|[@-Z\\^_]))?"
        ),
        replacement="",
        why="Colours, control characters and zero-width characters carry no meaning.",
        before="\x1b[31merror\x1b[0m: no space left",
        after="error: no space left",
    ),
    Step(
        name="single quotes",
        pattern=re.compile(r"[‘’‚‛`´]"),
        replacement="'",
        why="By its locale a tool quotes ‘so’, `so' or 'so'.",
        before="cannot stat ‘notes’",
        after="cannot stat <str>",
        needs=("‘", "’", "‚", "‛", "`", "´"),
    ),
    Step(
        name="double quotes",
        pattern=re.compile(r"[“”„‟«»]"),
        replacement='"',
        why="The same for double quotes, those of Russian texts included.",
        before="не найден файл «отчёт»",
        after="не найден файл <str>",
        needs=("“", "”", "„", "‟", "«", "»"),
    ),
    Step(
        name="leaders",
        pattern=re.compile(r"\.{3,}+|\.\.(?![/\\.])"),
        replacement="…",
        why="Dots that fill a line up to a value are as long as the line happens to be.",
        before="checking quota......12",
        after="checking quota…<num>",
        needs=("..",),
    ),
    Step(
        name="blanks",
        pattern=re.compile(rf"[{_BLANK}](?:[{_BLANK}]++|(?<! ))"),
        replacement=" ",
        why="Tabs and alignment follow the width of the values beside them.",
        before="size:\t  small",
        after="size: small",
    ),
    Step(
        name="margins",
        pattern=re.compile(r"[ \n](?:(?<= )\n[ \n]*+|(?<=\n)[ \n]++)"),
        replacement="\n",
        why="Blank lines, indentation and trailing blanks are layout.",
        before="failed  \n\n   because",
        after="failed\nbecause",
        needs=("\n",),
    ),
)
