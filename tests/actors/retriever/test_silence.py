"""When nothing is said (A23): what a situation and an item share by chance is no reason to speak."""

import pytest

from temporality.actors.retriever.probe import HintProbe
from temporality.protocol.editorial import KnowledgeItem
from temporality.protocol.hint import HintRequest

ITEMS = (
    KnowledgeItem(
        knowledge_id="trunk",
        proposition="The main branch of every repository is called trunk.",
        tools=("git_diff",),
        mcp_servers=("git",),
        error_classes=("tool_error",),
    ),
    KnowledgeItem(
        knowledge_id="ticket",
        proposition="A commit message without a ticket number is rejected by the hook.",
        tools=("git_commit",),
        mcp_servers=("git",),
        error_classes=("tool_error",),
    ),
)


def found(**request: object) -> list[str]:
    answer = HintProbe(ITEMS).answer(HintRequest(**request))  # type: ignore[arg-type]
    return [hint.knowledge_id for hint in answer.hints]


def test_failure_of_one_tool_brings_nothing_that_is_known_of_its_servers_other_tools() -> None:
    assert (
        found(
            trigger="tool.failed",
            tool="git_log",
            mcp_server="git",
            error_class="tool_error",
            tool_input='{"max_count": 3}',
            tool_result="Error executing tool git_log: the index is locked",
        )
        == []
    )


@pytest.mark.parametrize(
    "place", ["/home/main/branch/repository", "~/main/branch/repository", r"C:\main\branch\repository"]
)
def test_folders_of_a_path_in_the_task_are_no_words_of_it(place: str) -> None:
    assert found(trigger="task.priming", query=f"What is new in {place} today?") == []


def test_words_of_the_task_are() -> None:
    assert found(trigger="task.priming", query="Compare with the main branch of the repository.") == ["trunk"]


def test_relative_path_in_the_task_names_what_it_is_about() -> None:
    assert found(trigger="task.priming", query="Compare main/branch of the repository.") == ["trunk"]


def test_revision_that_could_not_fit_is_withheld_and_a_newer_one_is_not() -> None:
    """A33: the items of a probe are revisions 1, 2 …, in their order."""
    query = "Compare with the main branch of the repository."
    assert found(query=query, suppressed_knowledge_ids=("trunk@1",)) == []
    assert found(query=query, suppressed_knowledge_ids=("trunk@0",)) == ["trunk"]
    assert found(query=query, suppressed_knowledge_ids=("trunk",)) == []
