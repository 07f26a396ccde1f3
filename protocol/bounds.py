"""How long a text of a message may be, where several messages hold the same kind of text.

A sender cuts to these bounds, and whoever decodes refuses what is beyond them, so a number that stood in two
places would sooner or later be a message that its receiver refuses. What only one message holds is bounded
beside it. Lengths are in characters.
"""

from typing import Annotated

from msgspec import Meta

QUERY_LENGTH_MAX = 4_096
"""Characters of the run's task as a search text: one screen, and the bound of the public API (A16)."""
TOOL_INPUT_LENGTH_MAX = 4_096
"""Characters of a call's arguments: a command line or a small document, sent to every evaluator."""
TOOL_RESULT_LENGTH_MAX = 8_192
"""Characters of a result: keeps both ends of a traceback, and bounds the work of one look-up (A16)."""
SKILL_LENGTH_MAX = 8_192
"""Characters of a skill's text: bounds the work of telling whether it covers an item."""
NAME_LENGTH_MAX = 256
"""Characters of a name, key, author, reference or id."""
NAMES_MAX = 64
"""Names in one list: entities, topics or tools of one request, candidate or item."""

Name = Annotated[str, Meta(max_length=NAME_LENGTH_MAX)]
Names = Annotated[tuple[Name, ...], Meta(max_length=NAMES_MAX)]


def bounded(field: str, text: str, length_max: int) -> None:
    """Raise `ValueError` for a text that is too long: decoding checks bounds, building a message doesn't."""
    if len(text) > length_max:
        raise ValueError(f"`{field}` has {len(text)} characters; at most {length_max} are allowed")
