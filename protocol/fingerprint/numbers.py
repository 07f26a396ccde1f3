"""The steps for whatever holds a digit, and the numbers that are not values but words.

A token with a digit in it is an identifier, a count, a measurement: it varies. The exceptions are few and
have a common ground: *somebody assigned the number to a meaning*. An exit status, an errno, an HTTP status,
a compiler's `E0308`, a database's `ORA-00942` each stand for a sentence, and `ipv6` or `sha256` are words.
Two errors that differ in such a number are two errors. They are recognised by the word that announces them,
or by the shape of a code in a code's place; a bare number never is.
"""

import re

from temporality.protocol.fingerprint.step import TOKEN, Step

CONTEXT_REACH = 32
"""Characters before a number in which the word that gives it a meaning is looked for."""

_NO_DIGIT = r"A-Za-z_.+@~#$%*&/|\\\-\u00aa-\u02af\u0370-\u058f"
_TOKEN_WITH_DIGIT = re.compile(
    rf"[{_NO_DIGIT}\d](?<![{TOKEN}].)(?:(?:(?<=\d)|[{_NO_DIGIT}]*+\d)[{TOKEN}]*+|(?<=[a-f])[a-f]{{7,}}+(?![{TOKEN}]))"
)
UNIT = (
    r"(?:[kKMGTP]i?[Bb]|B|bytes?|[mnuµ]s|s|secs?|mins?|h|hrs?|(?:milli|micro|nano)?seconds?|minutes?|hours?|days?"
    r"|[kMG]?Hz|мс|сек(?:унд[аыу]?)?|мин(?:ут[аыу]?)?|час(?:а|ов)?|дн(?:я|ей)|день|байта?|[КМГТ]?Б)"
)
"""Units of sizes and durations, as they follow a number with or without a blank."""
_TYPED = re.compile(
    r"(?P<uuid>[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})"
    r"|(?P<version>[vV]?\d+(?:\.\d+){2,12}(?:[-+][\w.+-]*)?|[vV]\d+(?:\.\d+){0,12})"
    rf"|(?P<num>[-+~#$]*\d[\d.,/]*(?:%|{UNIT})?)"
    r"|(?P<hex>[@#*-]?0[xX][0-9A-Fa-f]+)"
    r"|(?P<hash>[0-9a-f]{7,}|[0-9A-F]{7,})"
)

_STATUS = re.compile(r"-?\d{1,5}|-?0[xX][0-9A-Fa-f]{1,8}")
_HTTP_STATUS = re.compile(r"[1-5]\d\d")
_CODE = re.compile(r"[A-Z]{1,8}-?\d{2,6}")
_MAY_MEAN = re.compile(r"-?\d{1,5}|-?0[xX][0-9A-Fa-f]{1,8}|[A-Z]{1,8}-?\d{2,6}|[0-9A-Z]{5}")
_BEFORE_MEANING = frozenset(("", " ", ":", "=", "#", "(", "[", "'", '"', "\n"))
_SQLSTATE = re.compile(r"[0-9A-Z]{5}")
_TYPE_NAME = re.compile(r"(?:[A-Za-z_]\w{0,63}\.){1,12}[A-Z][A-Za-z_]+")
_WORD_START = rf"(?<![{TOKEN}])[a-z_]*"
_ANNOUNCED = r"['\"]?[ :=#(\[]{1,3}['\"]?\Z"
_SQLSTATE_WORD = re.compile(rf"{_WORD_START}(?:sqlstate|code){_ANNOUNCED}")
_STATUS_WORD = re.compile(
    rf"{_WORD_START}(?:code|status|errno|error|retval|hresult|(?<![a-z])(?:err|rc|ret|signal|sig|exit(?:ed)?)"
    r"|код(?:ом|а)?|статус(?:ом)?|ошибка|сигнал(?:ом)?)"
    r"(?: (?:code|status|value|number|ошибки|возврата|выхода|ответа|состояния))?"
    rf"(?: (?:is|was|of|with|code|status)){{0,2}}{_ANNOUNCED}"
)
_HTTP_WORD = re.compile(
    rf"{_WORD_START}(?:http(?:/[\d.]+)?\"?|err!|returned|responded(?: with)?|response|got|failed|request)"
    r":? ?[ (\[]\Z"
)
_LAST_WORDS = (
    *(
        "code",
        "status",
        "errno",
        "error",
        "err",
        "retval",
        "hresult",
        "rc",
        "ret",
        "signal",
        "sig",
        "exit",
        "exited",
    ),
    *("value", "number", "is", "was", "of", "with", "код", "кодом", "кода", "статус", "статусом", "ошибка"),
    *("сигнал", "сигналом", "ошибки", "возврата", "выхода", "ответа", "состояния"),
    *(
        "http",
        "/1.0",
        "/1.1",
        "/2",
        "/3",
        "err!",
        "returned",
        "responded",
        "response",
        "got",
        "failed",
        "request",
    ),
)
"""How the text before a status ends: a quick test that spares most numbers the patterns above."""
_LONG_CODE = re.compile(r"\d{3}\Z")
_SEVERITY_BEFORE = re.compile(rf"{_WORD_START}(?:error|warning|fatal|note|rule|code){_ANNOUNCED}")
_CODE_PLACE = re.compile(r"(?:^|\n|: )\Z")
_AFTER_CODE = (":", "]")
_SEVERITY = re.compile(r"(?<![a-z])(?:error|err): ?\Z")
_WORDS = frozenset(
    "utf-8 utf8 utf-16 utf16 utf-32 utf32 latin-1 latin1 base64 md5 sha1 sha-1 sha256 sha-256 sha384 sha512 "
    "ipv4 ipv6 http/1.0 http/1.1 http/2 http/3 http2 oauth2 x86 x86_64 x64 amd64 arm64 i386 i686 win32 "
    "python2 python3 c++11 c++14 c++17 c++20 log4j s3 ec2 k8s i18n l10n e2e".split()
)


def _means_something(token: str, before: str, after: str) -> bool:
    """Tell whether a number or code was assigned a meaning, by its shape and by what is around it."""
    if _STATUS.fullmatch(token):
        if not before.rstrip(" :=#([\"'").endswith(_LAST_WORDS):
            return False
        if _STATUS_WORD.search(before):
            return after != " " or not _SEVERITY.search(before)
        return bool(_HTTP_STATUS.fullmatch(token) and _HTTP_WORD.search(before))
    if _CODE.fullmatch(token):
        return bool(
            _SEVERITY_BEFORE.search(before)
            or (_LONG_CODE.search(token) and (after in _AFTER_CODE or _CODE_PLACE.search(before)))
        )
    return bool(_SQLSTATE.fullmatch(token) and _SQLSTATE_WORD.search(before))


def _value(match: re.Match[str]) -> str:
    """Give the value its type; hand the punctuation behind it back to the sentence."""
    text, start, end = match.string, match.start(), match.end()
    body = match.group().rstrip(r".-/+*&|#\~@$")
    tail = text[start + len(body) : end]
    if body[:1].isalpha() and (body.lower() in _WORDS or _TYPE_NAME.fullmatch(body)):
        return match.group()
    if _MAY_MEAN.fullmatch(body) and text[start - 1 : start] in _BEFORE_MEANING:
        before = text[max(0, start - CONTEXT_REACH) : start].lower()
        if _means_something(body, before, tail[:1] or text[end : end + 1]):
            return match.group()
    if body.isdecimal():
        return f"<num>{tail}"
    typed = _TYPED.fullmatch(body)
    return f"<{typed.lastgroup if typed else 'id'}>{tail}"


STEPS = (
    Step(
        name="rows of numbers",
        pattern=re.compile(rf"(\d(?<![{TOKEN}].)\d*+)[ ,;]{{1,2}}\d[\d ,;]*(?<=\d)(?![{TOKEN}])"),
        replacement=r"\1",
        why="As many numbers as the data happens to have; the first stands for all, and may be a status.",
        before="exit code 3 14 15, 92",
        after="exit code 3",
    ),
    Step(
        name="ranges of names",
        pattern=re.compile(r"\[(?<=[\w-].)(?:(?<=-.)|(?=\d+[-,]))(\d+)[\d,-]*+\]"),
        replacement=r"\1",
        why="Clusters write many nodes as one name with a range; the first stands for all.",
        before="drained node-[40-63,70] and node-129",
        after="drained <id> and <id>",
        needs=("[",),
    ),
    Step(
        name="numbers and identifiers",
        pattern=_TOKEN_WITH_DIGIT,
        replacement=_value,
        why="Any other token with a digit, unless a meaning was assigned to it: a status, a code, a word.",
        before="blk_-12: attempt 3 of 5 at 0x7ffe, exit code 2",
        after="<id>: attempt <num> of <num> at <hex>, exit code 2",
    ),
)
