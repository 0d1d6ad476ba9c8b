"""One job that meets every fault; ``python -m tests.faults`` does many, at points chosen by seed."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.states import JobState
from tests.faults.faults import Point, has_given_up, point_of, survive_all
from tests.faults.hosts import hosts, kill_holding_worker, kill_store, slow_store
from tests.faults.service import service
from tests.faults.undisturbed import Outcome, outcome_of, undisturbed, write_inputs

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def directory() -> Iterator[Path]:
    """Right under the temporary directory, which the user who runs PostgreSQL can reach."""
    with tempfile.TemporaryDirectory(prefix="axformer-faults-") as made:
        yield Path(made)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What every job must come to; all write the same inputs."""
    home = tmp_path_factory.mktemp("undisturbed")
    write_inputs(home)
    return undisturbed(home)


@pytest.mark.slow
def test_a_job_survives_the_death_of_everything(directory: Path, expected: Outcome) -> None:
    body = write_inputs(directory)
    with service(directory) as running:
        workers = running.start_workers(2)
        row, log = survive_all(running, workers, body, len(expected.trace))
        assert (row["state"], row["attempt"]) == (JobState.SUCCEEDED, 4), running.logs()
        assert has_given_up(log)
        assert outcome_of(running, row["id"]) == expected


@pytest.mark.slow
def test_a_job_survives_the_death_of_its_host_and_of_the_store(directory: Path, expected: Outcome) -> None:
    """Two workers with directories of their own; the store is away while the result is put there."""
    body = write_inputs(directory)
    trials = len(expected.trace)
    middle = Point("the middle", lambda row: bool(row["trials"] >= trials // 2), 0.0)
    end = Point("the end", lambda row: bool(row["state"] == JobState.PACKAGING), 0.0)
    with hosts(directory) as running:
        workers, posted = running.service.start_workers(2), running.upload(body)
        rows = [kill_holding_worker(running, workers, posted, middle), kill_store(running, posted, end)]
        rows.append(slow_store(running, posted))
        assert [row["state"] for row in rows] == [JobState.SUCCEEDED] * len(rows), running.service.logs()
        assert rows[0]["attempt"] > 1
        assert all(outcome_of(running.service, row["id"]) == expected for row in rows)
        places = sorted(path.name for path in (directory / "hosts").iterdir())
        assert len([name for name in places if name.startswith("worker")]) >= len(workers)


def test_points_cover_the_whole_job() -> None:
    names = {point_of(seed, 100).name.split(" ")[0] for seed in range(30)}
    assert names >= {"fetching", "running", "packaging", "trial", "claim"}
