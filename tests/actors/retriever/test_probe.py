"""`probe hints` answers in exactly the shared format (formats, "probe")."""

from datetime import UTC, datetime

import msgspec

from temporality.actors.retriever.probe import HintProbe
from temporality.actors.retriever.ranking import MATCHER_VERSION
from temporality.protocol.editorial import KnowledgeItem
from temporality.protocol.hint import HintRequest

ITEM = KnowledgeItem(proposition="If a port is already in use, stop the process that listens on it.")


def test_answer_names_every_field_of_the_format() -> None:
    answer = msgspec.to_builtins(HintProbe([ITEM]).answer(HintRequest(query="port already in use")))
    assert set(answer) == {"result", "matcher_version", "hints"}
    assert (answer["result"], answer["matcher_version"]) == ("success", MATCHER_VERSION)
    [hint] = answer["hints"]
    assert set(hint) >= {
        "hint_id",
        "knowledge_id",
        "proposition",
        "tier",
        "matched",
        "score",
        "state",
        "scope",
        "cautions",
    }
    assert hint["knowledge_id"] == ITEM.identified().knowledge_id
    assert hint["cautions"] == ()


def test_nothing_found_is_an_empty_answer_and_no_error() -> None:
    """A23."""
    answer = msgspec.to_builtins(HintProbe([]).answer(HintRequest(query="port already in use")))
    assert answer == {"result": "empty", "matcher_version": MATCHER_VERSION, "hints": ()}


def test_ranking_is_shown_whole_without_the_threshold() -> None:
    """A23."""
    request = HintRequest(query="port")
    assert HintProbe([ITEM]).answer(request).result == "empty"
    assert HintProbe([ITEM], threshold=False).answer(request).result == "success"


def test_validity_is_judged_at_the_given_time() -> None:
    """A24."""
    item = msgspec.structs.replace(ITEM, valid_until="2027-01-31")
    request = HintRequest(query="port already in use")
    for month, result in ((1, "success"), (2, "empty")):
        probe = HintProbe([item], now=datetime(2027, month, 15, tzinfo=UTC))
        assert probe.answer(request).result == result
