"""Documents that hold code hold the code that runs."""

import ast
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from axformer.config import METHODS
from axformer.config.goals import GoalName
from docs.hooks.reference import document, routes
from store.setting_groups import RetainSettings
from store.settings import Settings
from store.signing import SigningKey
from tests.documents import PAGES, ROOT, blocks_of
from tests.family_cases import all_cases
from worker.webhooks.sender import signatures

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


def test_the_receiver_on_the_page_about_webhooks_knows_what_is_genuine() -> None:
    page = (ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    receiver: dict[str, Any] = {}
    exec(shown, receiver)
    old, new = (SigningKey(b"k" * 32).secret(salt, SigningKey(b"k" * 32).fingerprint) for salt in (b"old", b"new"))
    now = datetime.now(UTC)
    for at, expected in ((now, True), (now - timedelta(seconds=301), False)):
        signed = signatures([new, old], "msg_1", at, "{}")
        headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signed}
        assert [receiver["is_genuine"](secret, headers, b"{}") for secret in (old, new)] == [expected, expected]
        assert not receiver["is_genuine"](old, headers, b"{ }")
        assert not receiver["is_genuine"](old, headers | {"webhook-id": "msg_2"}, b"{}")


def test_the_settings_on_the_page_about_retention_are_there() -> None:
    page = (ROOT / "docs" / "retention.md").read_text(encoding="utf-8")
    named = {name.lower() for name in re.findall(r"AXFORMER_(\w+)", page)}
    retain = {f"retain_{name}" for name in RetainSettings.model_fields}
    assert retain <= named <= retain | set(Settings.model_fields)


GUIDES = [
    ROOT / "docs" / f"{name}.md" for name in ("first-job", "validation-data", "trace", "knobs", "teams", "faq", "api")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_on_a_page_is_code(page: Path) -> None:
    for block in blocks_of(page, "python"):
        ast.parse(block)
    for block in blocks_of(page, "json"):
        json.loads(block)


def test_knobs_on_the_guides_are_knobs() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in GUIDES)
    named = set(re.findall(r"(?:`|--set )([a-z_]+)=", text)) - {"preset", "name", *GoalName}
    assert named <= {name for config in METHODS.values() for name in config.model_fields}
    assert len(named) > 10


def test_the_page_on_the_api_has_every_route() -> None:
    described = document()
    lines = routes(described).splitlines()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert f"| `{method.upper()} {path}` | {operation['summary']} |" in lines
