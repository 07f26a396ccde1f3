"""Steps that need the words around a value: quotes, names that a word announces, values after a key.

A name made of letters only looks like any other word, so nothing but its surroundings can tell that it
varies. Where these are not clear the word stays: a key that is too fine costs a look-up, one too coarse
hides an error.
"""

import re

from temporality.protocol.fingerprint.step import TOKEN, Step

QUOTED_LENGTH_MAX = 200
"""Longest text between two quotes that counts as a value; beyond it, two quotes are rather not a pair."""
KEY_REACH = 48
"""Characters before a quoted value in which its key is looked for."""

_QUOTED = re.compile(
    rf"[\"'](?<![\w>].)(?:(?<=\")([^\"\n]{{0,{QUOTED_LENGTH_MAX}}})\"|(?<=')([^'\n]{{0,{QUOTED_LENGTH_MAX}}})')(?![\w<])"
)
_REPORT = re.compile(
    rf"(?i)(?<![{TOKEN}=])(?<!= )(?:errors?|exceptions?|fail\w*|denied|refused|reset|not|no|cannot|can't"
    r"|couldn't|unable|invalid|illegal|timed|timeout|expired|unknown|missing|forbidden|unauthorized|unavailable"
    r"|closed|broken|exceeded|conflict|ошибк\w*|отказано|не|нет|недоступ\w*|неверн\w*|истек\w*)\b"
)
_HTTP_REQUEST = re.compile(r"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE) \S")
_CODE = re.compile(r"E[A-Z]{3,}|ERR_[A-Z_]+")
_TELLING_KEY = re.compile(
    r"(?i)(?<![^\W_])(?:error(?:_?(?:message|description|code|type))?|message|msg|detail|reason|title|cause"
    r"|exception|errno|code|status|state|type|kind|tag|category|level|mode|phase|action|event|op|operation|method)"
    r"['\"]? ?[:=] ?\Z"
)


def _quoted(match: re.Match[str]) -> str:
    """Mask a quoted value; keep a key of JSON, a code, a request line, and words that report something."""
    value = match[1] if match[1] is not None else match[2]
    text, start, end = match.string, match.start(), match.end()
    before = text[max(0, start - KEY_REACH) : start]
    after = text[end : end + 3].lstrip(" ")[:2]
    if "<str>" in value or (after[:1] == ":" and after != "::" and before.rstrip()[-1:] in ("{", ",")):
        return match.group()
    if _HTTP_REQUEST.match(value) or _CODE.fullmatch(value) or (" " in value and _REPORT.search(value)):
        return match.group()
    sign = before.rstrip(" ")[-1:]
    may_be_told = sign == "=" or (sign == ":" and after[:1] in ("", "}", ",", "]", ")", "\n"))
    return match.group() if value and may_be_told and _TELLING_KEY.search(before) else "<str>"


_SYSTEM_ERROR = (
    r"(?:command not found|not found|No such|Permission denied|Is a directory|Not a directory|File exists"
    r"|Directory not empty|File name too long|Operation not|Read-only|Device or|Text file busy|Too many"
    r"|Connection|Invalid argument|cannot (?:open|execute|stat|access)"
    r"|команда не найдена|Нет такого|Отказано)"
)
_SUBJECT = re.compile(rf": ([^\s:<>'\"][^\s:'\"]*+)(?=: {_SYSTEM_ERROR}(?!: ))")
_COMMAND = re.compile(r"(?m:^)[^\s:<>'\"]++(?=: (?:command not found|команда не найдена)(?!: ))")
_TRAILING = re.compile(
    r"([CDFINPcdfinp](?<!\w.)(?:ommand not found|o such file or directory|ermission denied|ile exists"
    r"|s a directory|ot a directory): )[^\s<>'\":]+(?=\n|\Z)"
)

_NOUN = (
    r"(?:column|table|relation|schema|view|database|index|role|option|argument|flag|switch|command|subcommand"
    r"|action|operation|script|key|field|property|attribute|parameter|variable|name|identifier|symbol|function"
    r"|method|macro|module|package|distribution|requirement|library|file|directory|folder|host|hostname|service"
    r"|unit|target|task|job|container|image|volume|network|branch|tag|revision|ref|repository|remote|device"
    r"|interface|class|struct|trait|resource|plugin|extension|encoding|locale|keyword|operator|token|topic|queue"
    r"|bucket|node)s?"
)
_NOT_A_NAME = (
    r"(?!<|\w+ing\b|(?i:in|of|for|is|was|were|are|with|without|from|or|and|but|to|at|on|as|by|has|have|had|does"
    r"|did|the|an?|that|this|who|which|when|while|because|not|no|found|exists?|available|specified|given|unknown"
    r"|(?:error|name|id|request|account|input|session|group|mode|level|key|type|value|setting|permission|format"
    r"|length|size|version|character|state|code|number|list|path|definition|reference|call|agent|space)s?"
    r"|authentication|data|process(?:es)?|interface|access|syntax|status)(?![\w=-]))"
)
_NAMED = re.compile(
    r"([FILMNRSUfilmnrsu](?<!\w.)(?:(?:o|uch|n(?:known|defined|recogni[sz]ed|declared)|onexistent|ind|ocate|esolve"
    rf"|mport|oad|atisfies) (?:such |the |any |matching )?{_NOUN}(?: found)?(?: named| called| for)?:? "
    rf"|(?:nvalid|issing) {_NOUN}: ))"
    rf"{_NOT_A_NAME}[^\s<>'\"(),;:]+"
    r"(?=\.?(?:\Z|\n| [A-Z(]| ?[,;):]| (?:in|for|on|at|or|is|was|does|from|of) ))"
)
_ACCOUNT = re.compile(
    r"([AHLUahlu](?<!\w.)(?:ccount|ost|ogin|ser)(?:name)?:? )" + _NOT_A_NAME + r"[^\s<>'\"(),;:\[\]]+"
)
_ANNOUNCES = re.compile(r"(?i)(?<!\w)(?:for|by|of|as|to|from|on|invalid|unknown|illegal|such|resolve) \Z")
_FOR_FROM = re.compile(r" for ([\w.@\\-]+)(?= from <)")
_KEYED = re.compile(r"([=:](?:(?<=[\w\])]=)|(?<=\w =)|(?<=['\"]:)))( ?)([^\W\d][^\s<>'\"(),;\[\]{}=]*)(?!\()")
_CHOICE = re.compile(r"(?i:true|false|null|none|nil|yes|no|on|off|undefined)")
_DOTTED = re.compile(r"[A-Za-z_][\w$-]*+(?:\.[\w$-]+){1,12}")
_NAMING_KEY = re.compile(
    r"(?i)(?<![^\W_])(?:host(?:name)?|node|server|client|peer|name|label|id|path|file|dir)\Z"
)
_NAMING_ENDS = frozenset("st me de er nt el id th le ir".split())
"""How the names of naming keys end: a quick test that spares other keys the pattern."""


def _account(match: re.Match[str]) -> str:
    """Mask the name when the words before say that a person, account or machine is meant."""
    before = match.string[max(0, match.start() - 12) : match.start()]
    return match[1] + "<name>" if _ANNOUNCES.search(before) else match.group()


def _keyed(match: re.Match[str]) -> str:
    """Mask a yes or no, a dotted name, and any word after a key that says it is a name."""
    sign, blank, value = match.groups()
    varies: object = _CHOICE.fullmatch(value)
    if sign == "=" and not varies:
        key = match.string[max(0, match.start() - 12) : match.start()].rstrip(" ")
        names = key[-2:].lower() in _NAMING_ENDS and _NAMING_KEY.search(key)
        varies = names or _DOTTED.fullmatch(value)
    return f"{sign}{blank}<val>" if varies else match.group()


_SUGGESTION = re.compile(
    r"[ \n.,;-]{0,4}\(?(?:[Dd]id you mean|[Mm]aybe you meant|[Tt]he most similar commands? (?:is|are)"
    r"|[Вв]озможно, вы имели в виду)[^\n?]*\??\)?(?:\n[^\s:]{1,40}(?=\n|\Z))*"
)

SUGGESTIONS = Step(
    name="suggestions",
    pattern=_SUGGESTION,
    replacement="",
    why="What a tool guesses was meant follows from the mistyped word, or is missing for it.",
    before="'psuh' is not a command. Did you mean this?\npush\npull",
    after="<str> is not a command",
    needs=("id you mean", "aybe you meant", "most similar command", "имели в виду"),
)
QUOTES = Step(
    name="quoted values",
    pattern=_QUOTED,
    replacement=_quoted,
    why="What is quoted varies; but keys of JSON, error codes, HTTP request lines and quoted reports stay.",
    before="unknown option 'foo'; \"permission denied\"",
    after='unknown option <str>; "permission denied"',
    needs=("'", '"'),
)
STEPS = (
    Step(
        name="subjects",
        pattern=_SUBJECT,
        replacement=": <name>",
        why="`program: subject: system error` is the shape of Unix messages; the subject varies.",
        before="cat: notes: No such file or directory",
        after="cat: <name>: No such file or directory",
        needs=(": ",),
    ),
    Step(
        name="commands",
        pattern=_COMMAND,
        replacement="<name>",
        why="The same without a program in front.",
        before="gti: command not found",
        after="<name>: command not found",
        needs=("command not found", "команда не найдена"),
    ),
    Step(
        name="trailing subjects",
        pattern=_TRAILING,
        replacement=r"\1<name>",
        why="Other shells put the subject behind the error.",
        before="cd: no such file or directory: projct",
        after="cd: no such file or directory: <name>",
        needs=("ommand not found: ", "directory: ", "ermission denied: ", "ile exists: "),
    ),
    Step(
        name="named things",
        pattern=_NAMED,
        replacement=r"\1<name>",
        why="A name announced by its noun in a report of absence; the noun stays.",
        before="no such column: price",
        after="no such column: <name>",
    ),
    Step(
        name="accounts",
        pattern=_ACCOUNT,
        replacement=_account,
        why="A user or host named after a preposition, or after `invalid` or `unknown`.",
        before="shell closed for user alice",
        after="shell closed for user <name>",
        needs=("ser", "ccount", "ogin", "ost"),
    ),
    Step(
        name="accounts before an origin",
        pattern=_FOR_FROM,
        replacement=" for <name>",
        why="The same without the noun, when an address follows.",
        before="Rejected key for alice from 10.0.0.7",
        after="Rejected key for <name> from <ip>",
        needs=(" from <",),
    ),
    Step(
        name="keyed values",
        pattern=_KEYED,
        replacement=_keyed,
        why="After `=`: yes, no, nothing, dotted names, and any word if the key says that it is a name; "
        "other words stay, they are a mode or a state.",
        before="ready=true owner=com.acme.app host=gandalf mode=fast",
        after="ready=<val> owner=<val> host=<val> mode=fast",
        needs=("=",),
    ),
)
