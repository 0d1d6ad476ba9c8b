"""Documents that hold code hold the code that runs."""

import re
import time
from pathlib import Path
from typing import Any

from store.settings import Settings
from store.signing import SigningKey, signatures
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


def test_the_receiver_on_the_page_about_webhooks_knows_what_is_genuine() -> None:
    page = (ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    receiver: dict[str, Any] = {}
    exec(shown, receiver)
    old, new = (SigningKey(b"k" * 32).secret(salt, SigningKey(b"k" * 32).fingerprint) for salt in (b"old", b"new"))
    for at, expected in ((int(time.time()), True), (int(time.time()) - 301, False)):
        signed = signatures([new, old], "msg_1", at, "{}")
        headers = {"webhook-id": "msg_1", "webhook-timestamp": str(at), "webhook-signature": signed}
        assert [receiver["is_genuine"](secret, headers, b"{}") for secret in (old, new)] == [expected, expected]
        assert not receiver["is_genuine"](old, headers, b"{ }")
        assert not receiver["is_genuine"](old, headers | {"webhook-id": "msg_2"}, b"{}")


def test_the_settings_on_the_page_about_retention_are_there() -> None:
    page = (ROOT / "docs" / "retention.md").read_text(encoding="utf-8")
    named = {name.lower() for name in re.findall(r"AXFORMER_(\w+)", page)}
    assert named <= set(Settings.model_fields)
    assert {name for name in Settings.model_fields if name.startswith("retain_")} <= named
