"""Knowledge as people write it: JSON lines, one item a line, or Markdown with front matter.

A Markdown file holds one item or several. Each begins with a line `---`, has its fields as YAML up to the
next such line, and its proposition after that, up to the next item or the end:

    ---
    knowledge_id: git-scope
    tools: [git_commit]
    ---
    Commit messages in this repository begin with a scope.

A line of a proposition that is itself three dashes is written `\\---`, and one that is already so gets one
more backslash, so that nothing a proposition says can begin an item. White space around a proposition means
nothing in Markdown; one that begins or ends with it, or has line ends that an editor would change, is written
into the front matter as `proposition`, and what was written comes back exactly.

Reading is strict: the first mistake refuses the whole file, with its line, what is wrong and what to do, so
an import happens whole or not at all.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from temporality.protocol.editorial import PROPOSITION_LENGTH_MAX, KnowledgeItem
from temporality.protocol.errors import UserError
from temporality.protocol.strict import convert_strict

FILE_BYTES_MAX = 256 * 1024 * 1024
"""Bytes of one file: a hundred thousand items with room; a larger one is another file by mistake."""

_FENCE = "---"
_ESCAPED_FENCE = re.compile(r"\\+---\Z")
_ORDINARY = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]"
_ONE_LINE = re.compile(rf"{_ORDINARY}*\Z")
_BLOCK = re.compile(rf"(?:(?!\s){_ORDINARY}*(?<!\s)\n+)+(?:(?!\s){_ORDINARY}+(?<!\s))?\Z")
"""Lines that a block scalar keeps: without white space at their ends, and without control characters."""
_PLAIN = re.compile(r"(?!\s)[^\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]*(?<!\s)\Z")
"""A proposition that Markdown keeps as it is: no outer white space, and no line ends but \\n."""


def read_items(path: Path) -> tuple[KnowledgeItem, ...]:
    """Return the items of a `.jsonl` or `.md` file, each with an id, in the order of the file.

    Items without an id get the one derived from their content; the same item twice counts once. Raises
    `UserError` with file and line for the first mistake, and then returns nothing.
    """
    read = _format(path).read
    items: dict[tuple[str | None, str], tuple[KnowledgeItem, int]] = {}
    for line, item in read(path, _text(path)):
        name = (item.scope.project, item.knowledge_id)
        known = items.get(name)
        if known is not None and known[0] != item:
            raise UserError(
                f"{path}:{line}",
                f"knowledge_id {item.knowledge_id!r} is already that of the item on line {known[1]}",
                "give each item an id of its own",
            )
        items.setdefault(name, (item, line))
    return tuple(item for item, _ in items.values())


def write_items(path: Path, items: Iterable[KnowledgeItem]) -> None:
    """Write items to a `.jsonl` or `.md` file, sorted by id; `read_items` gives back the same items.

    Replaces the file in one step. Raises `UserError` if it can't be written.
    """
    ordered = sorted(items, key=lambda item: (item.knowledge_id, item.scope.project or ""))
    content = _format(path).write(ordered)
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        unfinished.write_text(content, encoding="utf-8", newline="\n")
        unfinished.replace(path)
    except OSError as error:
        raise UserError(
            str(path), f"can't be written: {error.strerror}", "check the folder's rights and free space"
        ) from error


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise UserError(str(path), f"is larger than {FILE_BYTES_MAX >> 20} MiB", "split it")
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(
            str(path), f"can't be read: {error.strerror}", "check the name and its rights"
        ) from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}", "is not UTF-8 text", "save it as UTF-8") from error


def _item(where: str, fields: object) -> KnowledgeItem:
    proposition = fields.get("proposition") if isinstance(fields, dict) else None
    length = len(proposition) if isinstance(proposition, str) else 0
    if length > PROPOSITION_LENGTH_MAX:
        raise UserError(
            where,
            f"the proposition has {length} characters; at most {PROPOSITION_LENGTH_MAX} are allowed",
            "say it in a few sentences, and keep the source as evidence",
        )
    item: KnowledgeItem = convert_strict(fields, KnowledgeItem, where=where)
    return item.identified()


def _read_json_lines(path: Path, text: str) -> Iterator[tuple[int, KnowledgeItem]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            fields = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            raise UserError(where, f"is not JSON: {error}", "write one JSON object a line") from error
        except RecursionError as error:
            raise UserError(where, "is nested too deeply", "write one flat JSON object a line") from error
        yield number, _item(where, fields)


def _write_json_lines(items: Iterable[KnowledgeItem]) -> str:
    return "".join(msgspec.json.encode(item).decode() + "\n" for item in items)


def _read_markdown(path: Path, text: str) -> Iterator[tuple[int, KnowledgeItem]]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    fences = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE]
    before = "\n".join(lines[: fences[0]] if fences else lines)
    if before.strip() or len(fences) % 2:
        line = fences[-1] + 1 if fences and not before.strip() else 1
        raise UserError(
            f"{path}:{line}",
            "is not an item: its fields stand between two lines `---`, its proposition after them",
            "begin the item with `---`; three dashes inside a proposition are written `\\---`",
        )
    starts = [*fences[::2], len(lines)]
    for opening, closing, end in zip(fences[::2], fences[1::2], starts[1:], strict=True):
        body = "\n".join(_unescaped(line) for line in lines[closing + 1 : end]).strip()
        fields = _front_matter(path, opening, lines[opening + 1 : closing])
        if body and "proposition" in fields:
            raise UserError(
                f"{path}:{opening + 1}",
                "has its proposition twice: as a field, and after the fields",
                "keep one",
            )
        yield (
            opening + 1,
            _item(f"{path}:{opening + 1}", {**fields, **({"proposition": body} if body else {})}),
        )


def _front_matter(path: Path, opening: int, lines: list[str]) -> dict[Any, Any]:
    try:
        fields = yaml.load("".join(f"{line}\n" for line in lines), Loader=_TextLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = opening + 2 + (mark.line if mark else 0)
        what = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise UserError(
            f"{path}:{line}", f"is not YAML: {what}", "three dashes inside a proposition are written `\\---`"
        ) from error
    except RecursionError as error:
        raise UserError(f"{path}:{opening + 2}", "is nested too deeply", "write flat fields") from error
    if fields is not None and not isinstance(fields, dict):
        raise UserError(
            f"{path}:{opening + 2}",
            "is text where fields are expected",
            "write `name: value` lines; three dashes inside a proposition are written `\\---`",
        )
    return fields or {}


class _TextLoader(yaml.SafeLoader):
    """YAML's plain types, with dates left as the text they are: an item's dates are ISO text."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class _TextDumper(yaml.SafeDumper):
    """Writes what `_TextLoader` reads back; never aliases, which few people can read."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        """Write equal values out each time."""
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Write lines as lines where YAML keeps them, and escapes where it would not."""
        style = None if _ONE_LINE.match(data) else "|" if _BLOCK.match(data) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_TextDumper.add_representer(str, _TextDumper.represent_str)


def _write_markdown(items: Iterable[KnowledgeItem]) -> str:
    return "\n".join(_markdown(item) for item in items)


def _markdown(item: KnowledgeItem) -> str:
    fields: dict[str, Any] = msgspec.to_builtins(item)
    body = ""
    if _PLAIN.match(item.proposition):
        fields.pop("proposition")
        body = "\n".join(map(_escaped, item.proposition.split("\n"))) + "\n"
    ordered = {"knowledge_id": fields.pop("knowledge_id", ""), **fields}
    front = yaml.dump(ordered, Dumper=_TextDumper, sort_keys=False, allow_unicode=True, width=100)
    return f"{_FENCE}\n{front}{_FENCE}\n{body}"


def _escaped(line: str) -> str:
    stripped = line.rstrip()
    return "\\" + line if stripped == _FENCE or _ESCAPED_FENCE.match(stripped) else line


def _unescaped(line: str) -> str:
    return line[1:] if _ESCAPED_FENCE.match(line.rstrip()) else line


class _Format(msgspec.Struct, frozen=True):
    read: Callable[[Path, str], Iterator[tuple[int, KnowledgeItem]]]
    write: Callable[[Iterable[KnowledgeItem]], str]


_FORMATS = {
    ".jsonl": _Format(_read_json_lines, _write_json_lines),
    ".md": _Format(_read_markdown, _write_markdown),
}


def _format(path: Path) -> _Format:
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise UserError(str(path), "is neither .jsonl nor .md", "name the file by its format")
    return found
