"""The page on telemetry lists every public name, as the code has them; a new name is a deliberate change.

A table that has changed is printed by the failing test, to be pasted into the page.
"""

from pathlib import Path

from temporality.actors import conventions
from temporality.actors.telemetry.decider import NAME_CHARACTERS_MAX, public_form
from temporality.protocol.fact import EXCERPT_CHARACTERS_MAX
from temporality.protocol.identity import DIGEST_LENGTH

from .test_decider import every_fact

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "telemetry.md").read_text(encoding="utf-8")


def facts_table() -> str:
    """The kinds of public facts with every field that any of them may have."""
    fields: dict[str, dict[str, None]] = {}
    for fact in every_fact(private="p", shown="s", name="n"):
        kind = str(type(fact).__struct_config__.tag)
        fields.setdefault(kind, {}).update(dict.fromkeys(public_form(fact)[1]))
    rows = [f"| `{kind}` | {', '.join(f'`{name}`' for name in fields[kind])} |" for kind in sorted(fields)]
    return "\n".join(["| Fact | Fields |", "|---|---|", *rows]) + "\n"


def test_page_lists_every_fact_and_its_fields() -> None:
    table = facts_table()
    assert table in PAGE, table


def test_page_lists_every_span_and_attribute() -> None:
    """Style rule 20."""
    table = conventions.table()
    assert PAGE.endswith(table), table


def test_page_names_the_pinned_version_and_the_limits() -> None:
    for said in (
        conventions.CONVENTIONS_VERSION,
        f"at most {EXCERPT_CHARACTERS_MAX} characters",
        f"cut at {NAME_CHARACTERS_MAX}\ncharacters",
        f"cut to {DIGEST_LENGTH} hex digits",
    ):
        assert said in PAGE
