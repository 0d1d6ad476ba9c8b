"""No page has more than a minor barrier for people with a screen reader, a keyboard or weak eyes, in light and in dark."""

from pathlib import Path
from typing import Any

import pytest

from axformer.config import make_config
from store.session import Sessions
from store.settings import Settings
from store.storage.storage import LocalStorage
from tests.api.conftest import Stage, trial
from tests.api.test_paths import PATH
from tests.browser.conftest import Open, Team
from tests.pages.test_result import FORMS
from tests.sheets import sheet_of_path, small_sheet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
DIMENSIONS = {"layers": 3, "heads": 2, "hidden_size": 8, "intermediate_size": 12}
CHANGES = {"differences": {"loss": {"value": -0.01, "interval": [-0.02, 0.0]}}}
FINDING = {"data": "test", "verdict": "gain", "sentence": "A gain.", "advice": "", "answers": ""}
OF_COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe whose verdict depends on colours."""
BARRIERS = ("moderate", "serious", "critical")


@pytest.fixture
def settings(database_url: str, broker_url: str, tmp_path: Path) -> Settings:
    return Settings(database_url=database_url, broker_url=broker_url, var_dir=tmp_path / "var")


@pytest.fixture
def paths(sessions: Sessions, settings: Settings, team: Team) -> list[str]:
    """Every page, with jobs in many states."""
    stage = Stage(sessions, LocalStorage(settings.storage_dir), team.id)
    config = make_config().model_dump(mode="json")
    trials = [trial(0), trial(1), trial(2, verdict="accept")]
    ended = stage.running(trials, name="ended", config=config)
    report = {"comparison": {"validation": CHANGES}, "finding": FINDING, "path": PATH} | FORMS
    answers = sheet_of_path().model_dump_json().encode()
    files = {"plan.json": b"{}", "model/config.json": b"{}", "report.html": b"", "answers.json": answers}
    stage.succeed(ended, files, **report)
    asking = []
    for kind in ("many", "token_classification", "multi_label_classification"):
        asking.append(stage.running(trials))
        stage.succeed(asking[-1], {"answers.json": small_sheet(kind).model_dump_json().encode()})
    stage.failed()
    progress = {"done": 3, "known": 9, "seconds": 1.0, "seconds_left": 2.0, "base_loss": 0.5, "min_loss": 0.4}
    running = stage.running(trials, progress | {"dimensions": DIMENSIONS}, name="at work", config=config)
    stage.queued(name="in line", labels={"project": "reviews"}, config=config)
    jobs = [
        f"/jobs/{running}",
        f"/jobs/{ended}",
        f"/jobs/{running}/trace",
        f"/jobs/{ended}/path",
        f"/jobs/{ended}/settings",
        *(f"/jobs/{one}/label" for one in (ended, *asking)),
    ]
    return [
        "/",
        *jobs,
        f"/compare?job={running}&job={ended}",
        "/new",
        "/team",
        "/no-such-page",
    ]


def barriers(page: Any) -> list[str]:
    """Those in light, and those of colours in dark: all else is the same there."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    found = axe.run(page).response["violations"]
    page.emulate_media(color_scheme="dark")
    found += axe.run(page, options={"runOnly": {"type": "rule", "values": list(OF_COLOURS)}}).response["violations"]
    page.emulate_media(color_scheme="light")
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in BARRIERS]


def test_no_page_has_more_than_a_minor_barrier(open_tab: Open, team: Team, paths: list[str]) -> None:
    tab = open_tab(color_scheme="light")
    tab.page.goto("/sign-in")
    found = {"/sign-in": barriers(tab.page)}
    tab.sign_in(team.key)
    tab.page.get_by_role("heading", name="Board").wait_for()
    for path in paths:
        answer = tab.page.goto(path)
        assert answer.status == (404 if path == "/no-such-page" else 200), path
        found[path] = barriers(tab.page)
    tab.page.goto("/new")
    tab.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    found["/new, opened"] = barriers(tab.page)
    for field, typed in {
        "name": "x",
        "checkpoint": "ftp://x",
        "validation": "s3://acme/b.csv",
        "hub_token": "x",
    }.items():
        tab.page.locator(f"#{field}").fill(typed)
    tab.page.get_by_role("button", name="Check only").click()
    tab.page.locator("#wrong").wait_for()
    found["/new, refused"] = barriers(tab.page)
    tab.page.goto("/team")
    tab.page.get_by_role("button", name="Make a secret").click()
    tab.page.locator("#new-secret").wait_for()
    found["/team, with a secret"] = barriers(tab.page)
    assert {path: told for path, told in found.items() if told} == {}
