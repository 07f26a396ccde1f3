"""Pictures and tables in the docs are drawn from the code, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

from temporality.actors.supervisor.diagram import run_diagram

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md"])


def test_diagram_of_a_run_is_the_one_that_its_table_draws() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert f"```mermaid\n{run_diagram()}```" in text


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_files_lead_to_files(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = [
        target for target in targets if target and "://" not in target and not (path.parent / target).exists()
    ]
    assert missing == []
