"""What stands in the place of what no longer holds, and which doubts travel with a hint (A22, A24)."""

from collections.abc import Callable

import pytest

from temporality.protocol.hint import HintResult

Find = Callable[..., HintResult]

PORT = {
    "knowledge_id": "port-in-use",
    "proposition": "If a port is already in use, stop the process that listens on it.",
}


def ids(result: HintResult) -> list[str]:
    return [hint.knowledge_id for hint in result.hints]


def test_superseded_item_that_matches_leads_to_its_successor(find: Find) -> None:
    """A22."""
    old = {
        "knowledge_id": "five-days",
        "proposition": "We notify the supplier five days ahead.",
        "state": "superseded",
    }
    new = {
        "knowledge_id": "ten-days",
        "proposition": "The notice period is ten days.",
        "supersedes": ["five-days"],
    }
    result = find([old, new], query="when do we notify the supplier?")
    assert ids(result) == ["ten-days"]
    assert result.hints[0].successor_of == "five-days"
    assert result.hints[0].proposition == "The notice period is ten days."


def test_item_still_called_reviewed_gives_way_to_what_supersedes_it_where_that_holds(find: Find) -> None:
    """A22."""
    old = {"knowledge_id": "five-days", "proposition": "We notify the supplier five days ahead."}
    new = {
        "knowledge_id": "ten-days",
        "proposition": "The notice period is ten days.",
        "supersedes": ["five-days"],
    }
    query = "when do we notify the supplier?"
    assert ids(find([old, new], query=query)) == ["ten-days"]
    elsewhere = {**new, "scope": {"project": "other"}}
    assert ids(find([old, elsewhere], query=query)) == ["five-days"]
    assert ids(find([old, elsewhere], query=query, project="other")) == ["ten-days"]


def test_line_of_successors_is_followed_to_its_end_and_a_cycle_ends(find: Find) -> None:
    """A22."""
    first = {
        "knowledge_id": "v1",
        "proposition": "We notify the supplier five days ahead.",
        "state": "superseded",
    }
    second = {
        "knowledge_id": "v2",
        "proposition": "It is ten days.",
        "supersedes": ["v1"],
        "state": "retired",
    }
    third = {"knowledge_id": "v3", "proposition": "It is a fortnight.", "supersedes": ["v2"]}
    query = "when do we notify the supplier?"
    assert ids(find([third, first, second], query=query)) == ["v3"]
    assert ids(find([first, second], query=query)) == []
    cycle = {**second, "state": "superseded"}
    assert ids(find([{**first, "supersedes": ["v2"]}, cycle], query=query)) == []


def test_issued_item_that_was_superseded_meanwhile_still_leads_to_its_successor(find: Find) -> None:
    """A14, A22."""
    new = {
        "knowledge_id": "new",
        "proposition": "Ask the owner of the machine.",
        "supersedes": ["port-in-use"],
    }
    old = {**PORT, "state": "superseded"}
    request = {"query": "port already in use", "issued_knowledge_ids": ["port-in-use"]}
    assert ids(find([old, new], **request)) == ["new"]
    assert ids(find([old, new], query="port already in use", issued_knowledge_ids=["new"])) == []


def test_cautions_travel_with_the_hint(find: Find) -> None:
    """A24; NOW is the first of January 2027."""
    item = {
        **PORT,
        "state": "challenged",
        "reviewed_by": "policy",
        "cautions": ["only on Linux"],
        "depends_on": ["gone", "fine", "unknown"],
        "valid_until": "2027-01-10",
    }
    gone = {"knowledge_id": "gone", "proposition": "Old.", "state": "retired"}
    fine = {"knowledge_id": "fine", "proposition": "Fine."}
    [hint] = find([item, gone, fine], query="port already in use").hints
    assert hint.cautions == (
        "only on Linux",
        "unconfirmed",
        "challenged",
        "depends on gone, which is retired",
        "validity ends 2027-01-10",
    )


@pytest.mark.parametrize(
    ("validity", "offered"),
    [
        ({"valid_until": "2026-12-31"}, False),
        ({"valid_until": "2027-01-01"}, True),
        ({"valid_from": "2027-01-02"}, False),
        ({"valid_from": "2027-01-01", "valid_until": "2028-01-01"}, True),
    ],
)
def test_item_is_offered_while_it_holds_and_warns_only_near_its_end(
    find: Find, validity: dict[str, str], offered: bool
) -> None:
    """A24."""
    result = find([{**PORT, **validity}], query="port already in use")
    assert bool(result.hints) is offered
    if offered:
        assert result.hints[0].cautions == (
            () if validity["valid_until"] == "2028-01-01" else ("validity ends 2027-01-01",)
        )
