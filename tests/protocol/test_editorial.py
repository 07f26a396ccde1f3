"""What a knowledge item may be, and how it is known (E2, E13, A21)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporality.protocol.editorial import (
    CAUTION_LENGTH_MAX,
    EXAMPLE_LENGTH_MAX,
    EXCERPT_LENGTH_MAX,
    PROPOSITION_LENGTH_MAX,
    Evidence,
    ItemDecided,
    ItemForgotten,
    KnowledgeItem,
    KnowledgeRecord,
    KnowledgeState,
    Scope,
    content_id,
)

WHOLE: dict[str, Any] = {
    "proposition": "A commit needs a ticket.",
    "tools": ["git_commit", "git_push"],
    "topics": ["commits", "tickets"],
    "scope": {"project": "demo", "team": "core"},
    "evidence": [{"kind": "file", "ref": "notes.md:12"}, {"kind": "file", "ref": "notes.md:13"}],
    "valid_until": "2027-01-31",
}


def item(**fields: Any) -> KnowledgeItem:
    return msgspec.convert({"proposition": "A commit needs a ticket.", **fields}, KnowledgeItem)


def test_only_the_proposition_is_required() -> None:
    plain = item()
    assert (plain.state, plain.reviewed_by, plain.scope) == (KnowledgeState.REVIEWED, "person", Scope())


@given(st.permutations(list(WHOLE)), st.permutations(WHOLE["tools"]), st.permutations(WHOLE["evidence"]))
def test_derived_id_does_not_depend_on_any_order(
    keys: list[str], tools: list[str], evidence: list[Any]
) -> None:
    reordered = {key: WHOLE[key] for key in keys} | {"tools": tools, "evidence": evidence}
    assert content_id(msgspec.convert(reordered, KnowledgeItem)) == content_id(
        msgspec.convert(WHOLE, KnowledgeItem)
    )


def test_derived_id_is_that_of_the_content_and_not_of_the_decision() -> None:
    whole = item(**WHOLE)
    for decision in ({"state": "challenged"}, {"reviewed_by": "policy"}, {"knowledge_id": "ticket"}):
        assert content_id(item(**WHOLE, **decision)) == content_id(whole)
    changes: list[dict[str, Any]] = [
        {"proposition": "Another."},
        {"tools": []},
        {"scope": {}},
        {"valid_until": "2027-02-01"},
    ]
    for content in changes:
        assert content_id(item(**{**WHOLE, **content})) != content_id(whole)


def test_own_id_is_kept_and_a_derived_one_is_known_as_such() -> None:
    assert item(knowledge_id="ticket").identified().knowledge_id == "ticket"
    assert not item(knowledge_id="ticket").has_derived_id
    assert item().identified().has_derived_id


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"proposition": " \n"}, "empty"),
        ({"proposition": "x" * (PROPOSITION_LENGTH_MAX + 1)}, "proposition"),
        ({"knowledge_id": "a.b"}, "subject token"),
        ({"knowledge_id": "*"}, "subject token"),
        ({"scope": {"project": "a>b"}}, "subject token"),
        ({"scope": {"team": ""}}, "never empty"),
        ({"valid_until": "soon"}, "ISO 8601"),
        ({"valid_from": "2027-02-01", "valid_until": "2027-01-01"}, "before"),
        ({"evidence": [{"kind": "file", "ref": "a", "excerpt": "x" * (EXCERPT_LENGTH_MAX + 1)}]}, "excerpt"),
        ({"evidence": [{"kind": "file", "ref": "a", "said_at": "yesterday"}]}, "ISO 8601"),
        ({"example_errors": ["x" * (EXAMPLE_LENGTH_MAX + 1)]}, "example_errors"),
        ({"cautions": ["x" * (CAUTION_LENGTH_MAX + 1)]}, "cautions"),
        ({"state": "perfect"}, "perfect"),
        ({"reviewed_by": "cat"}, "cat"),
    ],
)
def test_item_that_breaks_a_rule_is_refused_with_its_field(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=said):
        item(**fields)


def test_limits_hold_in_code_too() -> None:
    with pytest.raises(ValueError, match="proposition"):
        KnowledgeItem(proposition="x" * (PROPOSITION_LENGTH_MAX + 1))
    with pytest.raises(ValueError, match="example_errors"):
        KnowledgeItem(proposition="x", example_errors=("x" * (EXAMPLE_LENGTH_MAX + 1),))
    with pytest.raises(ValueError, match="cautions"):
        KnowledgeItem(proposition="x", cautions=("x" * (CAUTION_LENGTH_MAX + 1),))
    with pytest.raises(ValueError, match="excerpt"):
        Evidence(kind="file", ref="a", excerpt="x" * (EXCERPT_LENGTH_MAX + 1))


def test_day_of_validity_counts_from_its_start_to_its_end() -> None:
    begins, ends = item(valid_from="2027-01-01", valid_until="2027-01-31").validity()
    assert begins == datetime(2027, 1, 1, tzinfo=UTC)
    assert ends is not None
    assert datetime(2027, 2, 1, tzinfo=UTC) - ends < timedelta(seconds=1)
    assert item(valid_until="2027-01-31T12:00:00").validity()[1] == datetime(2027, 1, 31, 12, tzinfo=UTC)
    assert item().validity() == (None, None)


@pytest.mark.parametrize("state", list(KnowledgeState))
def test_only_reviewed_and_challenged_items_may_reach_an_agent(state: KnowledgeState) -> None:
    """A21."""
    assert state.is_offerable == (state in ("reviewed", "challenged"))


def test_record_of_a_decision_has_an_id_and_a_tombstone_has_no_content() -> None:
    """E13."""
    with pytest.raises(ValueError, match="identified"):
        ItemDecided(item=item(), decided_by="ann", decided_at="2027-01-01")
    decided = ItemDecided(
        item=item(**WHOLE).identified(), decided_by="ann", decided_at="2027-01-01T08:00:00Z"
    )
    forgotten = ItemForgotten(knowledge_id="ticket", decided_by="ann", decided_at="2027-01-01")
    for record in (decided, forgotten):
        assert msgspec.json.decode(msgspec.json.encode(record), type=KnowledgeRecord) == record
    assert set(msgspec.to_builtins(forgotten)) == {"type", "knowledge_id", "decided_by", "decided_at"}
