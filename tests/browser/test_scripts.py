"""What scripts add to pages: the board sorts, and the form shows what belongs to the chosen task and goal."""

from pathlib import Path

import pytest

from store.session import Sessions
from store.settings import Settings
from store.storage.storage import LocalStorage
from tests.api.conftest import Stage, trial
from tests.browser.conftest import Open, Tab, Team
from tests.tiny_families import tiny_family_model, tiny_family_tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def settings(database_url: str, broker_url: str, tmp_path: Path) -> Settings:
    return Settings(database_url=database_url, broker_url=broker_url, var_dir=tmp_path / "var")


@pytest.fixture
def tab(open_tab: Open, team: Team) -> Tab:
    opened = open_tab()
    opened.sign_in(team.key)
    return opened


def test_a_click_on_a_head_sorts_the_jobs(tab: Tab, sessions: Sessions, settings: Settings, team: Team) -> None:
    stage = Stage(sessions, LocalStorage(settings.storage_dir), team.id)
    for name, speedup in (("b", 1.5), ("c", 3.0), ("a", 2.0)):
        job_id = stage.running([trial(0)], name=name)
        stage.succeed(job_id, {"plan.json": b"{}"}, estimated_speedup=speedup)
    tab.page.goto("/")
    names = tab.page.locator("table.jobs .name")
    assert names.all_inner_texts() == ["a", "c", "b"]  # the newest first
    for click, order in (("Times as fast", "cab"), ("Times as fast", "bac"), ("Job", "abc"), ("Posted", "acb")):
        tab.page.locator("table.jobs thead").get_by_role("button", name=click).click()
        assert names.all_inner_texts() == list(order)
    assert tab.page.locator("th[aria-sort]").all_inner_texts() == ["Posted"]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A directory as a training leaves it: files of a checkpoint, one that is not, and directories of earlier ones."""
    directory = tmp_path / "run"
    directory.mkdir()
    model = tiny_family_model("bert")
    model.save_pretrained(directory)
    tiny_family_tokenizer("bert").save_pretrained(directory)
    (directory / "optimizer.pt").write_bytes(b"large")
    (directory / "checkpoint-1").mkdir()
    (directory / "checkpoint-1" / "config.json").write_text("{}")
    return directory


DROP = """async (place) => {
    const moved = new DataTransfer();
    moved.items.add(new File(['{"text": "a", "label": 0}\\n'], "dropped.jsonl"));
    place.dispatchEvent(new DragEvent("drop", { dataTransfer: moved, bubbles: true, cancelable: true }));
}"""


def test_a_directory_is_packed_as_it_is_chosen_and_a_file_can_be_dropped(tab: Tab, checkpoint: Path) -> None:
    page = tab.page
    page.goto("/new")
    page.locator("[data-upload=checkpoint][webkitdirectory]").set_input_files(checkpoint)
    note = page.locator("#checkpoint-note")
    note.get_by_text("4 layers").wait_for()
    assert note.inner_text().startswith("checkpoint.tar, ")
    assert "; left out optimizer.pt. " in note.inner_text()
    for name in ("modules.json", "1_Pooling/config.json", "2_Normalize/config.json"):
        (checkpoint / name).parent.mkdir(exist_ok=True)
        (checkpoint / name).write_text("{}")
    page.locator("[data-upload=checkpoint][webkitdirectory]").set_input_files(checkpoint)
    note.get_by_text("sentence embeddings").wait_for()
    assert "1_Pooling/config.json" in note.inner_text()
    assert "2_Normalize" not in note.inner_text()
    page.locator("[data-upload=checkpoint][multiple]").set_input_files([checkpoint / "optimizer.pt"])
    page.get_by_text("Not taken: none of these 1 files is of a checkpoint").wait_for()
    page.locator(".reference:has(#validation)").evaluate(DROP)
    page.get_by_text("dropped.jsonl, 26 bytes").wait_for()
    assert page.locator("#validation").input_value().startswith("upload:")


def test_an_analysis_takes_files_too(tab: Tab, checkpoint: Path, tmp_path: Path) -> None:
    page, file = tab.page, tmp_path / "dev.csv"
    file.write_text("review,stars\ngood,1\n")
    page.goto("/analyses/new")
    for name in ("checkpoint", "against"):
        page.locator(f"[data-upload={name}][webkitdirectory]").set_input_files(checkpoint)
        page.locator(f"#{name}-note").get_by_text("4 layers").wait_for()
    page.locator("[data-upload=validation]").set_input_files(file)
    page.get_by_text("dev.csv, 20 bytes").wait_for()
    page.locator("#preview").get_by_text("good").wait_for()
    page.locator("#name").fill("where")
    page.get_by_role("button", name="Post the analysis").click()
    page.wait_for_url("**/jobs/*")
    assert page.locator("h1").inner_text() == "where"


def test_the_form_shows_the_columns_of_the_task_the_knobs_of_the_goal_and_events_with_an_address(
    tab: Tab, tmp_path: Path
) -> None:
    page = tab.page
    page.goto("/new")
    roles = page.locator("[data-role]:not([hidden]) > span")
    assert roles.all_inner_texts() == ["text", "text_pair", "label"]
    page.locator("#task").select_option(label="Questions about a context")
    assert roles.all_inner_texts() == ["question", "context", "answers"]
    file = tmp_path / "dev.jsonl"
    file.write_text('{"words": ["a"], "ner_tags": [0]}\n')
    page.locator("[data-upload=validation]").set_input_files(file)
    page.get_by_text("dev.jsonl, 34 bytes").wait_for()
    page.locator("[id='column.tokens']").wait_for(state="visible")
    assert roles.all_inner_texts() == ["tokens", "tags"]
    top_k = page.locator("[id='knob.attention_top_k']")
    for goal, shown in (("as-paper", "30"), ("speedup", "not of this method")):
        page.locator(f"[name=goal][value={goal}]").check()
        assert top_k.get_attribute("placeholder") == shown
    events = page.locator("[id='webhook.events']")
    assert not events.is_visible()
    page.locator("[id='webhook.url']").fill("https://ci.example.com")
    assert events.is_visible()


def test_the_page_of_the_api_shows_every_route_and_asks_nobody_else(open_tab: Open) -> None:
    page, asked, said = open_tab().page, list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.goto("/docs")
    page.get_by_text("/v1/jobs/{job_id}/pause").wait_for()
    document = page.request.get("/openapi.json").json()
    assert page.locator(".opblock").count() == sum(len(methods) for methods in document["paths"].values())
    page.get_by_text("Post a job").click()
    page.get_by_text("Needs a key with the scope").first.wait_for()
    assert {url.partition("/v1")[0].split("/", 3)[2] for url in asked} == {page.url.split("/", 3)[2]}
    assert said == []
