"""`temporality knowledge import|list|show|export`: what agents may be offered, in and out."""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from temporality.deploy.cli.settings import Settings, progress_console, result_console
from temporality.protocol.errors import UserError

if TYPE_CHECKING:
    from temporality.protocol.editorial import KnowledgeItem

app = typer.Typer(help="Import, list, show and export knowledge.", no_args_is_help=True)


@app.command("import")
def import_(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(help="Files of JSON lines or Markdown.")],
    reason: Annotated[str, typer.Option(help="Why, for the next reviewer.")] = "",
) -> None:
    """Import items as reviewed by you; returns when a live retriever offers them. All files, or none."""
    from temporality.deploy.event_loop import run_async
    from temporality.deploy.knowledge import import_items
    from temporality.storage.knowledge_files import read_items

    items = tuple(item for path in paths for item in read_items(path))
    console = progress_console()

    async def run() -> int:
        async with Settings.of(context).bus("knowledge") as bus:
            with console.status(f"importing {len(items)} items …"):
                return await import_items(bus, items, decided_by=getpass.getuser(), reason=reason)

    changed = run_async(run)
    console.print(f"{len(items)} items read, {changed} new or changed; a retriever offers them")


@app.command("list")
def list_(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON an item.")] = False,
) -> None:
    """List all items with their states."""
    import msgspec
    from rich.markup import escape
    from rich.table import Table

    items = _items(context)
    if json:
        for item in items:
            print(msgspec.json.encode(item).decode())
        return
    table = Table("id", "state", "scope", "proposition")
    for item in items:
        scope = " ".join(part for part in (item.scope.project, item.scope.team, item.scope.user) if part)
        table.add_row(
            item.knowledge_id, item.state, escape(scope or "every project"), escape(item.proposition)
        )
    result_console().print(table)


@app.command("show")
def show(context: typer.Context, knowledge_id: Annotated[str, typer.Argument(help="The item's id.")]) -> None:
    """Print one item as JSON."""
    import msgspec

    found = [item for item in _items(context) if item.knowledge_id == knowledge_id]
    if not found:
        raise UserError(knowledge_id, "there is no such item", "list them: temporality knowledge list")
    for item in found:
        print(msgspec.json.format(msgspec.json.encode(item), indent=2).decode())


@app.command("export")
def export(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="File to write: .jsonl or .md.")],
) -> None:
    """Write all items to a file that `import` reads back without loss."""
    from temporality.storage.knowledge_files import write_items

    items = _items(context)
    write_items(path, items)
    progress_console().print(f"{len(items)} items written to {path}")


def _items(context: typer.Context) -> "tuple[KnowledgeItem, ...]":
    from temporality.deploy.event_loop import run_async
    from temporality.deploy.knowledge import current_items

    async def run() -> "tuple[KnowledgeItem, ...]":
        async with Settings.of(context).bus("knowledge") as bus:
            return await current_items(bus)

    return run_async(run)
