"""More requests at once than there are connections and threads wait for their turn, and all are answered."""

from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from store.setting_groups import DatabaseSettings
from store.settings import Settings
from tests.api.conftest import Crew, Stage

AT_ONCE = 100
"""Above the 40 threads that endpoints run in."""


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Fewer connections than threads, and a line for all."""
    few = DatabaseSettings(pool_size=3, pool_overflow=0, pool_timeout_seconds=2.0)
    line = {"sessions_at_once": 2, "requests_waiting": 2 * AT_ONCE, "shed_seconds": 60.0}
    return settings.model_copy(update={"database": few} | line)


@pytest.mark.slow
def test_requests_do_not_wait_for_each_others_connections_and_threads(live: str, stage: Stage, crew: Crew) -> None:
    job_id = stage.queued()
    with (
        httpx2.Client(
            base_url=live, headers=crew.headers, timeout=60, limits=httpx2.Limits(max_connections=AT_ONCE)
        ) as one,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        answers = list(pool.map(lambda _: one.get(f"/v1/jobs/{job_id}").status_code, range(3 * AT_ONCE)))
    assert set(answers) == {httpx2.codes.OK}
