"""The engine on an index in a file: batches, repeats, order, what is left when items go (A12, A15, E13)."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporality.actors.retriever.find_hints import answer, find_hints
from temporality.actors.retriever.query import ItemAnalyser
from temporality.actors.retriever.selection import HONEST_ZERO, Cut
from temporality.protocol.editorial import ItemDecided, ItemForgotten, KnowledgeItem, KnowledgeState
from temporality.protocol.hint import HintBatch, HintContext, HintRequest, HintResult
from temporality.storage.knowledge import KnowledgeIndex, in_memory, open_knowledge
from temporality.storage.knowledge_fold import StoredRecord

NOW = datetime(2027, 1, 1, tzinfo=UTC)
PORT = KnowledgeItem(knowledge_id="port", proposition="If a port is already in use, stop the process on it.")
PUSH = KnowledgeItem(
    knowledge_id="push", proposition="A branch without upstream is pushed with --set-upstream."
)
BASE = (
    PORT,
    PUSH,
    KnowledgeItem(knowledge_id="lsof", proposition="The process on a port in use is shown by lsof."),
    KnowledgeItem(
        knowledge_id="disk", proposition="A full disk is cleaned from old images.", topics=("disk",)
    ),
    KnowledgeItem(
        knowledge_id="old-disk", proposition="A full disk is made larger.", supersedes=("older-disk",)
    ),
    KnowledgeItem(
        knowledge_id="older-disk", proposition="A full disk is replaced.", state=KnowledgeState.SUPERSEDED
    ),
)
REQUESTS = (
    HintRequest(query="which process is on the port in use?", activation_id="a1"),
    HintRequest(
        trigger="tool.failed", tool_input="git push", tool_result="no upstream branch", activation_id="a2"
    ),
    HintRequest(query="the disk is full", activation_id="a3"),
    HintRequest(query="paint the fence", activation_id="a4"),
)


def decided(sequence: int, item: KnowledgeItem) -> StoredRecord:
    return StoredRecord(
        sequence=sequence, record=ItemDecided(item=item, decided_by="ann", decided_at="2026-12-01")
    )


def forgotten(sequence: int, knowledge_id: str) -> StoredRecord:
    record = ItemForgotten(knowledge_id=knowledge_id, decided_by="ann", decided_at="2026-12-01")
    return StoredRecord(sequence=sequence, record=record)


def without_revisions(result: HintResult) -> object:
    """Revisions, and the ids that hold them, are places in the stream; the rest must not depend on them."""
    hints = [msgspec.structs.replace(hint, revision=0, hint_id="") for hint in result.hints]
    return msgspec.structs.replace(result, hints=tuple(hints))


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[KnowledgeIndex]:
    async with open_knowledge(tmp_path / "knowledge.db", ItemAnalyser()) as opened:
        await opened.fold(decided(number, item) for number, item in enumerate(BASE, start=1))
        yield opened


async def ids(index: KnowledgeIndex, query: str) -> list[str]:
    batch = HintBatch(requests=(HintRequest(query=query),))
    [result] = (await find_hints(index, batch, now=NOW, threshold=False)).results
    return [hint.knowledge_id for hint in result.hints]


async def test_batch_is_answered_request_by_request_in_order(index: KnowledgeIndex) -> None:
    """A12."""
    answered = await find_hints(index, HintBatch(requests=REQUESTS), now=NOW)
    alone = [
        (await find_hints(index, HintBatch(requests=(request,)), now=NOW)).results[0] for request in REQUESTS
    ]
    assert list(answered.results) == alone
    assert [result.activation_id for result in answered.results] == ["a1", "a2", "a3", "a4"]
    assert [result.result for result in answered.results] == ["success", "success", "success", "empty"]


async def test_context_of_a_batch_holds_for_each_request(index: KnowledgeIndex) -> None:
    """A12, A14."""
    context = HintContext(issued_knowledge_ids=("push", "lsof"))
    first, second, *_ = (
        await find_hints(index, HintBatch(context=context, requests=REQUESTS), now=NOW)
    ).results
    assert [hint.knowledge_id for hint in first.hints] == ["port"]
    assert second.result == "empty"


async def test_file_and_memory_give_the_same_answers(index: KnowledgeIndex) -> None:
    """A15."""
    snapshot = in_memory(BASE, ItemAnalyser())
    answered = await find_hints(index, HintBatch(requests=REQUESTS), now=NOW)
    assert list(answered.results) == [answer(snapshot, request, now=NOW) for request in REQUESTS]


async def test_same_question_gives_the_same_answer_with_the_same_ids(index: KnowledgeIndex) -> None:
    """A49."""
    batch = HintBatch(requests=REQUESTS)
    assert await find_hints(index, batch, now=NOW) == await find_hints(index, batch, now=NOW)


@settings(max_examples=25, deadline=None)
@given(st.permutations(BASE), st.sampled_from([HONEST_ZERO, None]))
def test_order_in_which_items_were_stored_does_not_matter(
    items: list[KnowledgeItem], cut: Cut | None
) -> None:
    """A15."""
    one, other = in_memory(BASE, ItemAnalyser()), in_memory(items, ItemAnalyser())
    for request in REQUESTS:
        expected = answer(one, request, now=NOW, cut=cut)
        found = answer(other, request, now=NOW, cut=cut)
        assert without_revisions(found) == without_revisions(expected)


async def test_records_that_come_again_change_nothing(index: KnowledgeIndex) -> None:
    before = await find_hints(index, HintBatch(requests=REQUESTS), now=NOW)
    assert await index.fold(decided(number, item) for number, item in enumerate(BASE, start=1)) == len(BASE)
    assert await index.fold([decided(2, PORT), forgotten(3, "port")]) == len(BASE)
    assert await find_hints(index, HintBatch(requests=REQUESTS), now=NOW) == before


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(BASE), max_size=8), st.permutations(BASE))
def test_history_before_the_last_records_leaves_no_trace(
    history: list[KnowledgeItem], last: list[KnowledgeItem]
) -> None:
    """What counts is each item's last record: earlier ones, of whatever state, are as if never written."""
    retired = [msgspec.structs.replace(item, state=KnowledgeState.RETIRED) for item in history]
    one, other = in_memory(last, ItemAnalyser()), in_memory((*retired, *history, *last), ItemAnalyser())
    for request in REQUESTS:
        assert without_revisions(answer(other, request, now=NOW)) == without_revisions(
            answer(one, request, now=NOW)
        )


async def test_revision_is_the_sequence_of_the_last_record(index: KnowledgeIndex) -> None:
    await index.fold([decided(40, msgspec.structs.replace(PORT, reviewed_by="policy"))])
    [result] = (await find_hints(index, HintBatch(requests=REQUESTS[:1]), now=NOW)).results
    assert {hint.knowledge_id: hint.revision for hint in result.hints} == {"lsof": 3, "port": 40}


async def test_forgotten_item_is_not_found_again_and_what_needs_it_says_so(index: KnowledgeIndex) -> None:
    """A24, E13."""
    needs = KnowledgeItem(knowledge_id="needs", proposition="Ask before you stop it.", depends_on=("port",))
    await index.fold([decided(10, needs), forgotten(11, "port")])
    assert "port" not in await ids(index, "port already in use: stop the process")
    batch = HintBatch(requests=(HintRequest(query="ask before you stop it"),))
    [result] = (await find_hints(index, batch, now=NOW)).results
    assert result.hints[0].cautions == ("depends on port, which is deleted",)


async def test_change_of_an_item_takes_its_old_words_out(index: KnowledgeIndex) -> None:
    await index.fold([decided(10, KnowledgeItem(knowledge_id="push", proposition="Ask Vera about it."))])
    assert await ids(index, "upstream branch") == []
    assert await ids(index, "Vera") == ["push"]
