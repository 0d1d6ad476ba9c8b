"""The page for labels in a browser: keys and thumbs, no page load between texts, skipping, undoing, and lost labels."""

import re
import time
from pathlib import Path
from typing import Any

import pytest

from axformer.scores.labelling import needed
from store.repositories.keys import create_key
from store.repositories.labels import labels_of, put_labels
from store.session import Sessions, session_scope
from store.settings import Settings
from store.storage.storage import LocalStorage
from tests.api.conftest import Stage, trial
from tests.browser.conftest import PATIENCE_MS, Open, Tab, Team
from tests.sheets import sheet_of_path, small_sheet, truth_of

CLICK_WHAT_IS_TRUE = """truth => {
    const form = [...document.querySelectorAll("form.ask")].find((one) => !one.hidden);
    form?.querySelectorAll(".choices button")[truth[form.dataset.row]].click();
}"""
"""In one step: a text that needs no label any more goes at any moment."""
LEFT = re.compile("At most [12] more labels? decide")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def settings(database_url: str, broker_url: str, tmp_path: Path) -> Settings:
    return Settings(database_url=database_url, broker_url=broker_url, var_dir=tmp_path / "var")


@pytest.fixture
def stage(sessions: Sessions, settings: Settings, team: Team) -> Stage:
    return Stage(sessions, LocalStorage(settings.storage_dir), team.id)


def finished(stage: Stage, sheet: Any) -> str:
    job_id = stage.running([trial(0), trial(2, verdict="accept")], name="reviews")
    stage.succeed(job_id, {"answers.json": sheet.model_dump_json().encode()})
    return job_id


def opened(open_tab: Open, team: Team, job_id: str, **options: Any) -> Tab:
    tab = open_tab(**options)
    tab.sign_in(team.key)
    tab.page.goto(f"/jobs/{job_id}/label")
    return tab


def given(sessions: Sessions, job_id: str) -> dict[str, Any]:
    with session_scope(sessions) as session:
        return {one.row_id: one.label for one in labels_of(session, job_id)}


def shown(page: Any) -> str:
    return str(page.locator("form.ask:visible").get_attribute("data-row"))


def test_keys_label_skip_and_undo_without_a_page_load(
    open_tab: Open, stage: Stage, team: Team, sessions: Sessions
) -> None:
    sheet = sheet_of_path()
    job_id, old_answers = finished(stage, sheet), {row.id: int(str(row.before)) for row in sheet.changed}
    page = opened(open_tab, team, job_id).page
    page.evaluate("window.untouched = true")
    first = shown(page)  # another one for each person
    page.keyboard.press(f"{old_answers[first] + 1}")
    second = shown(page)
    assert second != first, "the next text is there at once"
    page.get_by_text("At most 15 more labels decide").wait_for()
    page.keyboard.press("s")
    third = shown(page)
    page.keyboard.press(f"{old_answers[third] + 1}")
    page.get_by_text("At most 14 more labels decide").wait_for()
    assert given(sessions, job_id) == {first: old_answers[first], third: old_answers[third]}
    page.keyboard.press("u")
    assert shown(page) == third
    page.get_by_text("At most 15 more labels decide").wait_for()
    page.keyboard.press("u")
    assert shown(page) == second, "what was skipped is asked again"
    page.keyboard.press("x")
    page.keyboard.press("Control+1")
    assert shown(page) == second
    assert given(sessions, job_id) == {first: old_answers[first]}
    assert page.evaluate("window.untouched")


def test_a_key_is_for_the_text_that_is_read_even_if_somebody_else_labels_it_meanwhile(
    open_tab: Open, stage: Stage, team: Team, sessions: Sessions
) -> None:
    sheet = sheet_of_path()
    job_id, old_answers = finished(stage, sheet), {row.id: int(str(row.before)) for row in sheet.changed}
    page = opened(open_tab, team, job_id).page
    with session_scope(sessions) as session:
        colleague = create_key(session, team.id, "colleague").row.id

    first, read = shown(page), []

    def overtaken(route: Any) -> None:
        read.append(shown(page))
        with session_scope(sessions) as session:
            put_labels(session, job_id, colleague, {read[0]: old_answers[read[0]]})
        route.continue_()

    page.route("**/label", overtaken, times=1)
    page.keyboard.press(f"{old_answers[first] + 1}")
    page.get_by_text("At most 14 more labels decide").wait_for()
    assert shown(page) == read[0], "it needs no label any more, and stays"
    new_answer = 1 - old_answers[read[0]]
    page.keyboard.press(f"{new_answer + 1}")
    page.get_by_text("At most 15 more labels decide").wait_for()  # they disagree
    with session_scope(sessions) as session:
        found = {(one.row_id, one.key_id == colleague, one.label) for one in labels_of(session, job_id)}
    mine, theirs = (read[0], False, new_answer), (read[0], True, old_answers[read[0]])
    assert found == {(first, False, old_answers[first]), mine, theirs}
    assert first != read[0]


def test_every_text_can_be_labelled_to_the_end(open_tab: Open, stage: Stage, team: Team, sessions: Sessions) -> None:
    job_id = finished(stage, sheet_of_path())
    page, sheet = opened(open_tab, team, job_id).page, sheet_of_path()
    end, deadline = page.get_by_text("Nothing more needs a label."), time.monotonic() + PATIENCE_MS / 1000
    while not end.is_visible():
        page.evaluate(CLICK_WHAT_IS_TRUE, truth_of(sheet))
        assert time.monotonic() < deadline, page.locator("#progress").inner_text()
    assert needed(sheet, given(sessions, job_id)) == []
    assert len(given(sessions, job_id)) > 16


def test_tags_and_several_classes_are_chosen_by_keys_and_saved_by_enter(
    open_tab: Open, stage: Stage, team: Team, sessions: Sessions
) -> None:
    tags, several = (finished(stage, small_sheet(f"{name}_classification")) for name in ("token", "multi_label"))
    page = opened(open_tab, team, tags).page
    first = shown(page)
    for key in ("3", "4", "Enter"):
        page.keyboard.press(key)
    assert shown(page) != first
    page.get_by_text(LEFT).wait_for()
    page.goto(f"/jobs/{several}/label")
    other = shown(page)
    for key in ("1", "2", "1", "3", "Enter"):
        page.keyboard.press(key)
    assert shown(page) != other
    page.get_by_text(LEFT).wait_for()
    assert given(sessions, tags) == {first: [1, 2, 0, 3, 0, 0]}
    assert given(sessions, several) == {other: [0, 1, 1]}


def test_numbers_are_typed_one_after_another_and_saved_by_enter(
    open_tab: Open, stage: Stage, team: Team, sessions: Sessions
) -> None:
    job_id = finished(stage, small_sheet("regression"))
    page = opened(open_tab, team, job_id).page
    rows = []
    for number in ("2.5", "-1", "1e2"):
        rows.append(shown(page))
        page.keyboard.type(number)
        page.keyboard.press("Enter")
    page.get_by_text("See the result").wait_for()
    assert given(sessions, job_id) == dict(zip(rows, (2.5, -1.0, 100.0), strict=True))


def test_a_label_that_gets_lost_is_said_and_asked_again(
    open_tab: Open, stage: Stage, team: Team, sessions: Sessions
) -> None:
    job_id = finished(stage, sheet_of_path())
    page = opened(open_tab, team, job_id).page
    page.route("**/label", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    first = shown(page)
    page.keyboard.press("1")
    page.get_by_text("The last label did not arrive").wait_for()
    assert shown(page) == first
    page.unroute("**/label")
    page.keyboard.press("2")
    page.get_by_text("At most 15 more labels decide").wait_for()
    assert given(sessions, job_id) == {first: 1}
    assert page.locator("#trouble").is_hidden()


@pytest.mark.parametrize(
    "task",
    [
        "pairs",
        "multiple_choice",
        "question_answering",
        "token_classification",
        "multi_label_classification",
        "many",
        "regression",
    ],
)
def test_on_a_phone_nothing_is_wider_than_the_screen_and_buttons_are_large(
    open_tab: Open, stage: Stage, team: Team, task: str
) -> None:
    job_id = finished(stage, small_sheet(task))
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    page = open_tab(**phone).page
    page.goto("/sign-in")
    page.get_by_label("Key of your team").fill(team.key)
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"/jobs/{job_id}/label")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    heights = page.locator("form.ask:visible :is(.choices > *, input[type=number])").evaluate_all(
        "all => all.map(one => one.offsetHeight)"
    )
    assert min(heights) >= 44
