"""`demo`: in any folder, with one command, a run shows what the system is for, and leaves the proof."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from temporality.deploy.demo import EXAMPLES

from . import command_line
from .command_line import Done

ITEM = "default-branch-is-trunk"
SERVERS_WORDS = "Error executing tool git_diff: Ref 'main' did not resolve to an object"


@dataclass(frozen=True)
class Shown:
    """A demo that has ended, and what it left."""

    done: Done
    folder: Path

    @property
    def requests(self) -> list[list[dict[str, Any]]]:
        """The messages of each request, as the model's HTTP server received them."""
        lines = (self.folder / "model_requests.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["body"]["messages"] for line in lines]

    def facts(self, *kinds: str) -> list[dict[str, Any]]:
        """The public facts of these kinds, in order."""
        lines = (self.folder / "facts.jsonl").read_text(encoding="utf-8").splitlines()
        return [fact for fact in map(json.loads, lines) if fact["kind"] in kinds]


def demo(cwd: Path, *options: str) -> Shown:
    return Shown(command_line.run("demo", *options, cwd=cwd), cwd / ".temporality" / "demo")


@pytest.fixture(scope="module")
def failure(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return demo(tmp_path_factory.mktemp("demo"))


def test_it_ends_well_prints_the_timeline_and_one_line_that_sums_up(failure: Shown) -> None:
    assert failure.done.status == 0, failure.done
    timeline = (failure.folder / "timeline.txt").read_text(encoding="utf-8")
    assert timeline.strip() in failure.done.out
    last = failure.done.out.splitlines()[-1]
    assert last.startswith(f"demo: ok — 3 turns, injected {ITEM}, in ")
    assert last.endswith("see .temporality/demo")


def test_the_task_matches_nothing_and_the_first_call_fails_in_the_servers_own_words(failure: Shown) -> None:
    """A56: only the error leads to the item."""
    priming, *_ = failure.facts("activation.settled")
    assert (priming["data"]["trigger"], priming["data"]["result"]) == ("task.priming", "empty")
    first, second, _ = failure.requests
    assert ITEM not in str(first)
    assert SERVERS_WORDS in second[-2]["content"]


def test_the_item_is_in_the_next_request_after_the_replies_and_the_next_call_works(failure: Shown) -> None:
    """A1, A34, A38: one block after the replies; what came before keeps its bytes."""
    first, second, third = failure.requests
    assert [message["role"] for message in second[-3:]] == ["assistant", "tool", "user"]
    block = second[-1]["content"]
    assert block.startswith("<temporality.memory>")
    assert f"[{ITEM}]" in block
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert str(third).count("<temporality.memory>") == 1
    outcomes = [fact["data"]["outcome"] for fact in failure.facts("tool.replied")]
    assert outcomes == ["failed", "succeeded"]
    assert "Diff with trunk" in third[-1]["content"]


def test_facts_link_the_failed_call_to_the_activation_and_the_hint(failure: Shown) -> None:
    """A45: the chain can be read from one id."""
    failed, _ = failure.facts("tool.replied")
    (activation,) = [
        fact for fact in failure.facts("activation.requested") if fact["data"]["trigger"] == "tool.failed"
    ]
    (offer,) = failure.facts("hint.offered")
    (delivery,) = failure.facts("hint.delivery")
    assert activation["data"]["source_id"] == failed["data"]["call"]
    assert offer["data"]["activation_id"] == activation["data"]["activation_id"]
    assert delivery["data"]["hint_id"] == offer["data"]["hint_id"]
    assert (delivery["data"]["injected"], delivery["data"]["knowledge_id"]) == (True, ITEM)


def test_the_primed_task_finds_the_item_before_its_first_request_and_fails_at_nothing(tmp_path: Path) -> None:
    shown = demo(tmp_path, "--scenario", "priming")
    assert shown.done.status == 0, shown.done
    assert shown.done.out.splitlines()[-1].startswith(f"demo: ok — 2 turns, injected {ITEM}, in ")
    first, _ = shown.requests
    block, task = first[-2:]
    assert f"[{ITEM}]" in block["content"]
    assert "Compare the feature branch" in task["content"]
    assert [fact["data"]["outcome"] for fact in shown.facts("tool.replied")] == ["succeeded"]


def test_a_real_model_without_a_key_is_refused_before_anything_starts(tmp_path: Path) -> None:
    said = command_line.run("demo", "--model", "gpt", cwd=tmp_path).one_line(2)
    assert said.startswith("OPENAI_API_KEY: it is not set")
    assert not (tmp_path / ".temporality" / "demo" / "nats").exists()


def test_its_files_lie_in_the_package_so_that_an_installed_program_has_them() -> None:
    assert EXAMPLES.parent.name == "deploy"
    for name in ("git-helper.yaml", "knowledge/git.jsonl", "scripts/git-helper.yaml"):
        assert (EXAMPLES / name).is_file()
