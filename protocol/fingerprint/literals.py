"""Steps for values that have a notation of their own: times, addresses of every kind, paths.

Each pattern begins with a set of characters, and only then looks behind: the regular-expression engine then
skips to the few places where a match can begin, which makes a step several times as fast.
"""

import re

from temporality.protocol.fingerprint.step import TOKEN, Step

_MONTHS = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    *("янв", "фев", "мар", "апр", "мая", "май", "июн", "июл", "авг", "сен", "окт", "ноя", "дек"),
)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "пн", "вт", "ср", "чт", "пт", "сб", "вс")


def _rest_of(words: tuple[str, ...]) -> str:
    """Return a pattern for what follows the first letter of any of `words`."""
    return "(?:" + "|".join(f"(?<={word[0]}){word[1:]}" for word in words) + ")"


_ENDING = r"[a-zа-я]{0,8}"
_MONTH = rf"(?:{'|'.join(_MONTHS)}){_ENDING}"
_ZONE = r"(?: ?(?:Z|UTC|GMT|MSK|МСК|[ECMP][SD]T|CES?T)\b| ?[+-]\d{2}:?\d{2}\b)?"
_AFTER_HOUR = rf":\d{{2}}(?::\d{{2}})?(?:[.,]\d{{1,9}})?(?: ?[AaPp]\.?[Mm]\b)?{_ZONE}"
_CLOCK = rf"\d{{1,2}}{_AFTER_HOUR}"
_YEAR = r"(?:,?[ /-]\d{4}\b(?: ?г(?:ода|\.)?)?)?"
_FIRST = "".join(sorted({word[0] for word in (*_MONTHS, *_DAYS)}))
_NAMED_DATE = re.compile(
    rf"[\d{_FIRST}](?<![\w.:/-].)(?:{_rest_of(_MONTHS)}{_ENDING}\.? \d{{1,2}}\b{_YEAR}"
    rf"|(?:(?<=\d)\d?|{_rest_of(_DAYS)}{_ENDING},? \d{{1,2}})[ /-]{_MONTH}\b\.?{_YEAR}"
    rf"|{_rest_of(_DAYS)}{_ENDING},? {_MONTH}\.? \d{{1,2}}\b{_YEAR})"
    rf"(?:(?:,? | at |,? в ){_CLOCK}(?: \d{{4}}\b)?)?(?![\w:]|[.-]\d)"
)
_TIME = re.compile(
    r"\d(?<![\w.:/-].)(?:(?:\d{3}[-/.]\d{1,2}[-/.]\d{1,2}|\d?[-/.]\d{1,2}[-/.]\d{4})"
    rf"(?:(?:T|,? |[:@]){_CLOCK})?|\d?{_AFTER_HOUR})(?![\w:]|[.-]\d)"
)

_URL = re.compile(
    r"[A-Za-z](?<![\w+.-].)[\w+.-]{1,20}+:(?:[A-Za-z][\w+.-]{1,20}+:)?//[^\s\"'<>\]){}|,;]*[^\s\"'<>\]){}|,;:.!?]"
)
_MAIL = re.compile(rf"[\w.+%-](?<![{TOKEN}>].)[\w.+%-]*+@[\w.-]*\w(?::[\w./~-]*\w)?")
_IP4 = re.compile(
    r"\d(?<![\w.-].)\d{0,2}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?:[:#]\d{1,5}|/\d{1,2})?(?![\w.]*\w|/[A-Za-z])"
)
_HEX_GROUPS = re.compile(
    r"[0-9A-Fa-f:](?<![\w:.>].)(?:(?<=:):[0-9A-Fa-f]{0,4}|[0-9A-Fa-f]{0,3}(?::[0-9A-Fa-f]{0,4}){2})"
    r"(?::[0-9A-Fa-f]{0,4}){0,29}(?:(?<=:)<ip>|(?:%\w{1,16})?(?![\w:<]))"
)
_HARDWARE = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5,31}")

_ZONES = (
    r"(?:com|net|org|edu|gov|mil|info|biz|io|dev|cloud|local|localdomain|lan|internal|intranet|corp|arpa"
    r"|example)"
)
_END = r"(?![\w-]|\.\w)(?::\d{1,5})?(?:/[\w./~%&?=+-]*+)?"
_HOST = re.compile(
    rf"[A-Za-z0-9_-](?<![{TOKEN}].)(?:[A-Za-z0-9_-]*+\.(?:[\w.-]*"
    rf"(?:(?<=\.){_ZONES}{_END}|\.[a-z]{{2}}{_END}|\w:\d{{2,5}}(?![\w-])))"
    rf"|(?<=l)ocalhost{_END})"
)

_EXTENSION = re.compile(
    r"(?:py[cix]?|ipynb|[cm]?[jt]s|[jt]sx|vue|cc|cpp|cxx|[ch]|hh|hpp|java|kt|scala|[jw]ar|go|rs|rb|php|pl|pm|sh|bash"
    r"|ps1|bat|cmd|exe|dll|so|dylib|ko|lib|txt|md|rst|log|[ct]sv|jsonl?|xml|ya?ml|toml|ini|cfg|conf|properties"
    r"|html?|s?css|sql|db|sqlite3?|pid|sock|tmp|bak|zip|tar|gz|bz2|xz|tgz|whl|deb|rpm|iso|img|dat|png|jpe?g|gif"
    r"|svg|pdf|docx?|xlsx?|pem|crt|proto|cs|vb|swift|lua|tf|gradle|cmake|mk|xsd|plist)"
)
_IN_PATH = r"\w.+@~#$%*&=/\\\-"
_PLACE = r"(?:(?::\d+){1,3}|\(\d+(?:,\d+)?\))?"
_WINDOWS_PATH = re.compile(
    r"[A-Za-z\\](?<![\w>].)(?:(?<!\\):[\\/]|(?<=\\)\\(?=[\w.$]))"
    rf"(?:[{_IN_PATH},{{}}()]| (?=[\w.()]{{1,20}}(?: [\w.()]{{1,20}})?\\))*+{_PLACE}"
)
_PATH = re.compile(
    rf"[\w.+@~/-](?<![{TOKEN}>].)(?:(?<=/)[{_IN_PATH}]*+|[\w+@~-]*+(?:/[{_IN_PATH}]*+|\.[\w.+@~-]*+(?:/[{_IN_PATH}]*+)?))"
    rf"{_PLACE}"
)
_PLAIN_PAIR = re.compile(r"[^\W\d]+/[^\W\d]+|\d+/\d+|HTTP/[\d.]+|/")


def _hex_groups(match: re.Match[str]) -> str:
    """Type a run of hexadecimal groups: a hardware address, an IPv6 address, or neither."""
    text = match.group()
    if _HARDWARE.fullmatch(text):
        return "<mac>"
    groups = text.partition("%")[0]
    complete = groups.count(":") == 7 or groups.count("::") == 1
    numeric = groups.endswith("<ip>") or any(character.isdigit() for character in groups)
    return "<ip>" if complete and numeric else text


def _path(match: re.Match[str]) -> str:
    """Mask what has a slash, or ends as a file name does; keep `input/output` and other dotted names."""
    text = match.group()
    if "/" in text:
        return text if _PLAIN_PAIR.fullmatch(text) else "<path>"
    name = text.partition(":")[0].partition("(")[0].rstrip(".")
    stem, _, extension = name.rpartition(".")
    follower = match.string[match.end() : match.end() + 1]
    if not stem or follower == "(" or not _EXTENSION.fullmatch(extension):
        return text
    return "<path>" + ("." if text.endswith(".") else "")


STEPS = (
    Step(
        name="named dates",
        pattern=_NAMED_DATE,
        replacement="<time>",
        why="Dates that name the month, English or Russian, with the day of the week and the time if there.",
        before="at Tue Mar 4 05:06:07 2031",
        after="at <time>",
        needs=_MONTHS,
    ),
    Step(
        name="times",
        pattern=_TIME,
        replacement="<time>",
        why="Dates in digits and times of day, with fractions and zone.",
        before="since 2026-02-03T04:05:06.789Z, last 14:30:00",
        after="since <time>, last <time>",
        needs=(":", "-", "/", "."),
    ),
    Step(
        name="URLs",
        pattern=_URL,
        replacement="<url>",
        why="A URL names one resource; what became of it is said by the words around it.",
        before="GET https://api.example.com/v1/users?id=7 failed",
        after="GET <url> failed",
        needs=("://",),
    ),
    Step(
        name="mail",
        pattern=_MAIL,
        replacement="<email>",
        why="Mail addresses, and the `user@host:path` of ssh and git.",
        before="rejected ann@example.com",
        after="rejected <email>",
        needs=("@",),
    ),
)
AFTER_QUOTES = (
    Step(
        name="IPv4",
        pattern=_IP4,
        replacement="<ip>",
        why="An address, with its port or prefix length.",
        before="refused by 10.0.0.7:5432",
        after="refused by <ip>",
        needs=(".",),
    ),
    Step(
        name="hexadecimal groups",
        pattern=_HEX_GROUPS,
        replacement=_hex_groups,
        why="IPv6 and hardware addresses.",
        before="fe80::1%eth0 is at 00:1b:44:11:3a:b7",
        after="<ip> is at <mac>",
        needs=(":",),
    ),
    Step(
        name="dressed addresses",
        pattern=re.compile(r"(?<![\w./>-])[\w.-]*/<ip>|\[<ip>\](?::\d{1,5}\b)?"),
        replacement="<ip>",
        why="Java writes `host/address`, or `/address` without a name; a port puts IPv6 in brackets.",
        before="Connecting to gandalf/10.0.0.7:8030, [::1]:80",
        after="Connecting to <ip>",
        needs=("/<ip>", "[<ip>]"),
    ),
    Step(
        name="Windows paths",
        pattern=_WINDOWS_PATH,
        replacement="<path>",
        why="Drive and UNC paths, with blanks in folder names, and the line behind them.",
        before=r"C:\Program Files\app\main.c(3): syntax",
        after="<path>: syntax",
        needs=(":\\", "\\\\", ":/"),
    ),
    Step(
        name="paths",
        pattern=_PATH,
        replacement=_path,
        why="POSIX paths and bare file names, with the line and column behind them; pairs of words stay.",
        before="main.rs: input/output error in ../include/stdio.h:12:5",
        after="<path>: input/output error in <path>",
        needs=("/", "."),
    ),
    Step(
        name="hosts",
        pattern=_HOST,
        replacement="<host>",
        why="Names that end as domain names do, and dotted names with a port.",
        before="no answer from db.example.com:5432",
        after="no answer from <host>",
        needs=(".", "localhost"),
    ),
)
