"""One job that meets every fault; ``python -m tests.faults`` does many, at points chosen by seed."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.states import JobState
from tests.faults.faults import point_of, survive_all
from tests.faults.service import service
from tests.faults.undisturbed import outcome_of, undisturbed, write_inputs

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def directory() -> Iterator[Path]:
    """Right under the temporary directory, which the user who runs PostgreSQL can reach."""
    with tempfile.TemporaryDirectory(prefix="axformer-faults-") as made:
        yield Path(made)


@pytest.mark.slow
def test_a_job_survives_the_death_of_everything(directory: Path) -> None:
    body = write_inputs(directory)
    with service(directory) as running:
        workers = running.start_workers(2)
        expected = undisturbed(directory)
        row, log = survive_all(running, workers, body, len(expected.trace))
        assert (row["state"], row["attempt"]) == (JobState.SUCCEEDED, 4), running.logs()
        assert "lease_lost" in log
        assert outcome_of(running, row["id"]) == expected


def test_points_cover_the_whole_job() -> None:
    names = {point_of(seed, 100).name.split(" ")[0] for seed in range(30)}
    assert names >= {"fetching", "running", "packaging", "trial", "claim"}
