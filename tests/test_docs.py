"""Documents that hold code hold the code that runs."""

import ast
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_settings import BaseSettings

from axformer.config import KNOBS
from axformer.config.goals import GoalName
from axformer.wire.jobs import JobCreate
from axformer.wire.states import JobState
from docs.hooks.reference import PLACE, document, routes
from store.setting_groups import RetainSettings
from store.settings import Settings
from store.signing import SigningKey
from tests.documents import PAGES, ROOT, blocks_of
from tests.family_cases import all_cases
from tests.house import knobs
from worker.webhooks.sender import signatures

MOST_LINES = 80
SETTING = re.compile(r"\bAXFORMER_[A-Z_]*[A-Z]\b")
PLACE_OF_CODE = re.compile(r"(?<![\w/.:-])(?:axformer|api|worker|store|migrations|tests|benchmarks|docs)/[\w./-]*[\w/]")
OF_CLIENTS = {"URL", "API_KEY", "HUB_TOKEN", "DELIVER_TOKEN", "BIND", "PORT"}
"""What commands and compose files read, and the service does not."""


def test_the_page_on_families_shows_the_adapter_that_is_in_use() -> None:
    page = (ROOT / "docs" / "add-a-family.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    adapter = (ROOT / "axformer" / "architectures" / "modernbert.py").read_text(encoding="utf-8")
    assert shown == adapter
    assert len(adapter.splitlines()) < MOST_LINES


def test_the_table_of_families_is_of_today_and_green() -> None:
    table = (ROOT / "docs" / "families.md").read_text(encoding="utf-8").partition("| family |")[2]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    shown = {f"{row[0]}-{task}" for row in rows for task, mark in zip(head, row[1:], strict=False) if mark[0] == "✓"}
    assert shown == {str(case) for case in all_cases()}
    assert "✗" not in table


def test_the_receiver_on_the_page_about_webhooks_knows_what_is_genuine() -> None:
    page = (ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    receiver: dict[str, Any] = {}
    exec(shown, receiver)
    old, new = (SigningKey(b"k" * 32).secret(salt) for salt in (b"old", b"new"))
    now = datetime.now(UTC)
    for at, expected in ((now, True), (now - timedelta(seconds=301), False)):
        signed = signatures([new, old], "msg_1", at, "{}")
        headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signed}
        assert [receiver["is_genuine"](secret, headers, b"{}") for secret in (old, new)] == [expected, expected]
        assert not receiver["is_genuine"](old, headers, b"{ }")
        assert not receiver["is_genuine"](old, headers | {"webhook-id": "msg_2"}, b"{}")


def test_the_settings_on_the_page_about_operating_are_there() -> None:
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    assert {f"AXFORMER_RETAIN_{name.upper()}" for name in RetainSettings.model_fields} <= set(SETTING.findall(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_settings_on_a_page_are_settings(page: Path) -> None:
    named = {name.removeprefix("AXFORMER_") for name in SETTING.findall(page.read_text(encoding="utf-8"))}
    of_tests = {name for name in named if name.startswith("TEST_")}
    assert page.name == "CHANGELOG.md" or named - of_tests <= settings() | OF_CLIENTS
    assert of_tests <= switches_of_tests()


def switches_of_tests() -> set[str]:
    """The names under which the tests themselves are asked for more: of containers, of faults, of a device."""
    code = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)
    )
    return {name.removeprefix("AXFORMER_") for name in SETTING.findall(code) if name.startswith("AXFORMER_TEST_")}


def settings() -> set[str]:
    """The names of all settings of the service, those of groups with their prefixes."""
    names: set[str] = set()
    for name, field in Settings.model_fields.items():
        group = field.annotation
        if isinstance(group, type) and issubclass(group, BaseSettings):
            prefix = str(group.model_config.get("env_prefix", "")).removeprefix("AXFORMER_")
            names |= {f"{prefix}{inner}".upper() for inner in group.model_fields}
        else:
            names.add(name.upper())
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_on_a_page_are_there(page: Path) -> None:
    named = set(PLACE_OF_CODE.findall(page.read_text(encoding="utf-8")))
    assert page.name == "CHANGELOG.md" or {name for name in named if not (ROOT / name).exists()} == set()


def test_pages_that_the_code_names_are_there() -> None:
    rooms = ("axformer", "api", "worker", "store", "benchmarks", "migrations")
    code = [path for room in rooms for path in (ROOT / room).rglob("*") if path.suffix in {".py", ".jinja", ".html"}]
    named = {
        (path, name) for path in code for name in re.findall(r"docs/[a-z-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert {(str(path), name) for path, name in named if not (ROOT / name).is_file()} == set()


GUIDES = [
    ROOT / "docs" / f"{name}.md"
    for name in ("first-job", "data", "certificate", "pass", "compress", "layers", "rank", "knobs", "api")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_on_a_page_is_code(page: Path) -> None:
    for block in blocks_of(page, "python"):
        ast.parse(block)
    for block in blocks_of(page, "json"):
        json.loads(block)


def test_knobs_on_the_guides_are_knobs() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in GUIDES)
    named = set(re.findall(r"(?:`|--set )([a-z_]+)=", text)) - {"preset", "name", "orient", *GoalName}
    assert named <= set(KNOBS)
    assert len(named) > 10


def test_every_knob_stands_on_a_page() -> None:
    text = "".join(
        (ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("knobs", "compress", "layers", "rank")
    )
    assert {name for name in knobs() if f"`{name}`" not in text} == set()


def test_the_page_on_the_api_has_every_route_with_its_scope() -> None:
    described = document()
    text = routes(described)
    assert PLACE in (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            scope = "".join(*operation["security"][0].values()) if "security" in operation else ""
            assert f"| `{method.upper()} {path}` | {operation['summary']} | {scope} |" in text


def test_the_page_on_the_api_has_every_state_and_every_field_of_a_run() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert all(f"`{state}`" in page for state in JobState)
    run = page.partition("## A run")[2].partition("\n## ")[0]
    assert all(f"`{field}`" in run for field in JobCreate.model_fields)
