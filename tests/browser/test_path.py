"""The slider and the curve of a path choose a model."""

from pathlib import Path

import pytest

from store.session import Sessions
from store.settings import Settings
from store.storage.storage import LocalStorage
from tests.api.conftest import Stage, trial
from tests.browser.conftest import Open, Team
from tests.pages.test_path import COSTLY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def settings(database_url: str, broker_url: str, tmp_path: Path) -> Settings:
    return Settings(database_url=database_url, broker_url=broker_url, var_dir=tmp_path / "var")


def test_a_slider_and_a_click_on_the_curve_choose_the_model_to_export(
    open_tab: Open, sessions: Sessions, settings: Settings, team: Team
) -> None:
    stage = Stage(sessions, LocalStorage(settings.storage_dir), team.id)
    job_id = stage.running([trial(0), trial(1, verdict="accept"), trial(3, verdict="accept")])
    stage.succeed(job_id, {"plan.json": b"{}"}, path=COSTLY)
    tab = open_tab()
    tab.sign_in(team.key)
    page = tab.page
    page.goto(f"/jobs/{job_id}/path")
    for allowed, seq in (("3", 3), ("0.5", 0), ("1.2", 1)):
        page.locator("#within").fill(allowed)
        assert page.locator(f"#point-{seq}").is_checked()
        assert page.locator("#chosen").inner_text().startswith(f"Trial {seq}: ")
        assert page.locator("#curve .test-point.picked").get_attribute("data-seq") == str(seq)
    page.locator('#curve .test-point[data-seq="3"]').click()
    assert page.locator("#point-3").is_checked()
    assert tab.complaints == []
