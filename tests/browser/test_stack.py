"""A person at a browser before the whole service: from a wrong key to a downloaded model."""

import hashlib
import re
from pathlib import Path

import pytest

from store.settings import Settings
from tests.browser.conftest import PATIENCE_MS, Open, Tab, Team
from tests.integration.real_worker import settings, worker
from tests.tiny_models import tiny_rows, write_rows
from tests.worker.conftest import LONG_PASS, opened
from tests.worker.conftest import Open as Opened

__all__ = ["opened", "settings"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ANNOUNCE_SECONDS = 1.0
WRONG_KEY = f"axk_{'0' * 16}_{'0' * 64}"


def fill_in(tab: Tab, name: str, opened: Opened, data: Path) -> None:
    """Fill in the form for a long pass over an uploaded file."""
    page = tab.page
    page.get_by_role("link", name="New job").first.click()
    page.get_by_label("Name", exact=True).fill(name)
    page.locator("#checkpoint").fill(opened.uri("checkpoint"))
    page.locator("input[data-upload=validation]").set_input_files(data)
    page.locator("#preview table").wait_for()
    assert page.locator("#validation").input_value().startswith("upload:upl_")
    assert page.locator("[name='column.text']").input_value() == "sentence"
    for form in ("zeroed", "onnx", "onnx int8"):
        page.get_by_label(form, exact=True).uncheck()
    page.get_by_text("Knobs:").click()
    for knob, value in LONG_PASS.items():
        page.locator(f"[name='knob.{knob}']").fill(str(value))
    page.locator("[name='knob.accept_poor_model']").select_option("true")


def state_is(tab: Tab, state: str) -> None:
    tab.page.locator(f"#state[data-state={state}]").wait_for(timeout=2 * PATIENCE_MS)


def trials_shown(tab: Tab) -> int:
    told = tab.page.locator("#chart desc").text_content(timeout=2 * PATIENCE_MS)
    return int(told.split()[0].replace(",", ""))


def labelled_sentences(count: int) -> list[dict[str, object]]:
    """Rows whose column of texts has another name than the default."""
    return [{"sentence": row["text"], "label": row["label"]} for row in tiny_rows(count)]


def test_from_a_wrong_key_to_a_downloaded_model(
    open_tab: Open, team: Team, settings: Settings, opened: Opened, tmp_path: Path
) -> None:
    short, endless = (write_rows(tmp_path / f"{rows}.jsonl", labelled_sentences(rows)) for rows in (120, 5000))
    tab = open_tab(accept_downloads=True)
    page = tab.page
    tab.sign_in(WRONG_KEY)
    page.get_by_role("alert").get_by_text("The key is unknown").wait_for()
    tab.sign_in(team.key)
    page.get_by_role("heading", name="Board").wait_for()

    fill_in(tab, "cancelled", opened, endless)
    page.get_by_role("button", name="Check only").click()
    page.get_by_text("The service would accept this job").wait_for()
    with worker(settings, ANNOUNCE_SECONDS):
        page.get_by_role("button", name="Post the job").click()
        page.wait_for_url(re.compile(r"/jobs/job_"))
        first = trials_shown(tab)
        page.wait_for_function("n => parseInt(document.querySelector('#chart desc').textContent) > n", arg=first)
        page.locator("#map [data-element]").first.wait_for()
        page.locator("#map").focus()
        page.keyboard.press("ArrowRight")
        page.locator("#map + .readout").get_by_text(re.compile(r"^layer\.\d+\.hard_attention: ")).wait_for()
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Cancel").click()
        state_is(tab, "cancelled")

        fill_in(tab, "finished", opened, short)
        page.get_by_role("button", name="Post the job").click()
        page.wait_for_url(re.compile(r"/jobs/job_"))
        finished = page.url
        state_is(tab, "succeeded")
    row = page.get_by_role("row", name=re.compile("^plan.json"))
    with page.expect_download() as download:
        row.get_by_role("link").click()
    content = Path(download.value.path()).read_bytes()
    assert row.locator("code").text_content() == hashlib.sha256(content).hexdigest()

    page.goto("/")
    for name in ("cancelled", "finished"):
        page.get_by_label(f"Compare {name}").check()
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("heading", name="Compare 2 jobs").wait_for()
    page.locator("#results").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.goto(finished)
    page.get_by_role("heading", name="Sign in").wait_for()
