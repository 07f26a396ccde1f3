"""`knowledge import|list|show|export`: what goes in comes out, all or nothing, and is offered at once."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from temporality.actors.bus.memory import MemoryServer
from temporality.deploy.knowledge import current_items, import_items
from temporality.protocol import subjects
from temporality.protocol.codec import encode
from temporality.protocol.editorial import ItemForgotten, KnowledgeItem, Scope
from temporality.protocol.errors import UserError
from temporality.protocol.folding import FoldPosition
from temporality.protocol.streams import stream_specs

from .command_line import Here
from .scene import Deployment

ITEMS = (
    {
        "knowledge_id": "git-scope",
        "proposition": "Commit messages begin with a [scope], such as `shop:`.",
        "tools": ["git_commit"],
        "entities": ["scope"],
        "example_errors": ["{}\nrejected: no scope"],
        "scope": {"project": "demo"},
        "evidence": [{"kind": "file", "ref": "notes.md:12", "author": "Vera"}],
    },
    {"knowledge_id": "vpn", "proposition": "Склад отвечает только через VPN.\nСначала подключить его."},
)


def write_items(path: Path, *items: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items), encoding="utf-8")
    return path


def listed(up: Deployment, here: Here) -> dict[str, dict[str, Any]]:
    done = here("--config", up.config, "knowledge", "list", "--json")
    assert done.status == 0
    items = [json.loads(line) for line in done.out.splitlines()]
    return {item["knowledge_id"]: item for item in items}


def test_import_returns_when_a_run_is_offered_the_item(up: Deployment, here: Here, tmp_path: Path) -> None:
    item = {"knowledge_id": "quokka", "proposition": "The quokka exporter needs the flag --gently."}
    done = here("--config", up.config, "knowledge", "import", write_items(tmp_path / "a.jsonl", item))
    assert (done.status, done.out) == (0, "")
    assert done.err == "1 items read, 1 new or changed; a retriever offers them\n"
    done = here("--config", up.config, "run", "--json", up.agent(), "Run the quokka exporter with its flag")
    assert json.loads(done.out)["knowledge_ids"] == ["quokka"]


async def test_import_waits_for_the_position_of_its_last_item_not_for_any_answer() -> None:
    """A retriever has folded one item, then two: the import of two returns at the second answer."""
    server = MemoryServer()
    async with server.connect() as bus, anyio.create_task_group() as tasks:
        await bus.declare(stream_specs(4))
        answered: list[int] = []

        async def answer(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            async with bus.subscribe(subjects.ask("retriever", "position")) as questions:
                task_status.started()
                async for question in questions:
                    answered.append(min(len(answered) + 1, 2))
                    assert question.reply is not None
                    await bus.send(question.reply, encode(FoldPosition(sequence=answered[-1])))

        await tasks.start(answer)
        items = [KnowledgeItem(proposition=text) for text in ("One.", "Two.")]
        assert await import_items(bus, items, decided_by="tester") == 2
        assert answered == [1, 2]
        tasks.cancel_scope.cancel()


async def test_import_without_a_retriever_says_that_the_items_are_stored_and_what_is_missing() -> None:
    server = MemoryServer()
    async with server.connect() as bus:
        await bus.declare(stream_specs(4))
        items = [KnowledgeItem(proposition="Kept.").identified()]
        with pytest.raises(UserError, match=r"stored.*temporality actor retriever"):
            await import_items(bus, items, decided_by="tester", fold_wait_s=0.05)
        assert await current_items(bus) == tuple(items)


async def test_one_id_in_several_projects_is_several_items_each_forgotten_by_itself() -> None:
    async with MemoryServer().connect() as bus:
        await bus.declare(stream_specs(4))
        items = [
            KnowledgeItem(knowledge_id="ports", proposition=f"In {project}.", scope=Scope(project=project))
            for project in (None, "desk", "shop")
        ]
        with pytest.raises(UserError, match="stored"):
            await import_items(bus, items, decided_by="tester", fold_wait_s=0.05)
        assert await current_items(bus) == tuple(items)
        forgotten = ItemForgotten(
            knowledge_id="ports", project="desk", decided_by="tester", decided_at="2026-12-01"
        )
        await bus.publish(subjects.knowledge("desk", "ports"), encode(forgotten), message_id="forget")
        assert await current_items(bus) == (items[0], items[2])


def test_importing_the_same_again_changes_nothing_and_a_change_counts_alone(
    up: Deployment, here: Here, tmp_path: Path
) -> None:
    path = write_items(tmp_path / "twice.jsonl", {"proposition": "One twice."}, {"proposition": "Two twice."})
    assert "2 new or changed" in here("--config", up.config, "knowledge", "import", path).err
    assert "2 items read, 0 new or changed" in here("--config", up.config, "knowledge", "import", path).err
    changed = write_items(tmp_path / "c.jsonl", {"knowledge_id": "c", "proposition": "Three, twice."})
    here("--config", up.config, "knowledge", "import", changed)
    write_items(changed, {"knowledge_id": "c", "proposition": "Three, changed."})
    assert "1 new or changed" in here("--config", up.config, "knowledge", "import", path, changed).err
    assert listed(up, here)["c"]["proposition"] == "Three, changed."


def test_what_is_exported_is_imported_without_loss_in_both_formats(
    up: Deployment, here: Here, tmp_path: Path
) -> None:
    here("--config", up.config, "knowledge", "import", write_items(tmp_path / "in.jsonl", *ITEMS))
    before = listed(up, here)
    for name in ("out.jsonl", "out.md"):
        done = here("--config", up.config, "knowledge", "export", tmp_path / name)
        assert (done.status, done.out) == (0, "")
        assert done.err == f"{len(before)} items written to {tmp_path / name}\n"
        done = here("--config", up.config, "knowledge", "import", tmp_path / name)
        assert f"{len(before)} items read, 0 new or changed" in done.err
    assert listed(up, here) == before


def test_list_and_show_print_an_item_as_it_is(up: Deployment, here: Here, tmp_path: Path) -> None:
    here("--config", up.config, "knowledge", "import", write_items(tmp_path / "in.jsonl", *ITEMS))
    table = here("--config", up.config, "knowledge", "list").out
    (row,) = [line for line in table.splitlines() if "git-scope" in line]
    assert "reviewed" in row
    assert "demo" in row
    assert "Commit messages begin with a [scope], such as `shop:`." in row
    shown = json.loads(here("--config", up.config, "knowledge", "show", "git-scope").out)
    assert shown == listed(up, here)["git-scope"]
    assert shown["evidence"] == [ITEMS[0]["evidence"][0]]  # type: ignore[index]
    done = here("--config", up.config, "knowledge", "show", "no-such-item")
    assert "temporality knowledge list" in done.one_line(2)


def test_one_bad_line_imports_nothing_of_all_files(up: Deployment, here: Here, tmp_path: Path) -> None:
    before = listed(up, here)
    good = write_items(tmp_path / "good.jsonl", {"proposition": "Good, but in bad company."})
    bad = write_items(tmp_path / "bad.jsonl", {"proposition": "Good too."}, {"propositoin": "Bad."})
    said = here("--config", up.config, "knowledge", "import", good, bad).one_line(2)
    assert f"{bad}:2: $: unknown key 'propositoin'" in said
    assert "did you mean 'proposition'?" in said
    for path in (tmp_path / "none.jsonl", tmp_path, write_items(tmp_path / "items.csv")):
        assert str(path) in here("--config", up.config, "knowledge", "import", good, path).one_line(2)
    assert listed(up, here) == before


def test_an_export_to_where_nothing_can_be_written_is_one_line(
    up: Deployment, here: Here, tmp_path: Path
) -> None:
    for name in ("none/out.jsonl", "out.txt"):
        said = here("--config", up.config, "knowledge", "export", tmp_path / name).one_line(2)
        assert name in said
    assert list(tmp_path.iterdir()) == []
