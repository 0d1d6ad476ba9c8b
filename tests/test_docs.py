"""Documents that hold code hold the code that runs."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST_LINES = 80


def test_the_page_on_families_shows_the_adapter_that_is_in_use() -> None:
    page = (ROOT / "docs" / "add-a-family.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    adapter = (ROOT / "axformer" / "architectures" / "modernbert.py").read_text(encoding="utf-8")
    assert shown == adapter
    assert len(adapter.splitlines()) < MOST_LINES


def test_links_between_documents_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
