"""Documents that hold code hold the code that runs."""

import re
from pathlib import Path

from tests.family_cases import all_cases

ROOT = Path(__file__).parent.parent
MOST_LINES = 80


def test_the_page_on_families_shows_the_adapter_that_is_in_use() -> None:
    page = (ROOT / "docs" / "add-a-family.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    adapter = (ROOT / "axformer" / "architectures" / "modernbert.py").read_text(encoding="utf-8")
    assert shown == adapter
    assert len(adapter.splitlines()) < MOST_LINES


def test_the_table_of_families_is_of_today_and_green() -> None:
    table = (ROOT / "docs" / "families.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[:2] for line in table.splitlines() if line.startswith("| ") and "✓" in line]
    assert [f"{family[2:]}-{task}" for family, task in rows] == [str(case) for case in all_cases()]
    assert "✗" not in table.partition("| family")[2]


def test_links_between_documents_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
