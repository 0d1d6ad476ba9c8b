"""What the commands say of a finished job is of the model that was kept, not of where its pass ended."""

import pytest

from tests.api.conftest import Stage, trial
from tests.client.commands import logged_in, ran
from tests.client.conftest import FILES

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")
END_OF_PASS = {"done": 5, "known": 5, "seconds": 2.5, "base_loss": 0.4, "min_loss": 0.3, "estimated_speedup": 1.91}
SIZES = {"parameters": 10, "bytes": 40, "latency_ms": 1.5, "operations": 900}
BASE = SIZES | {"validation": {"loss": 0.4, "accuracy": 0.85}, "confirming": {"loss": 0.41, "accuracy": 0.84}}
KEPT = SIZES | {"validation": {"loss": 0.42, "accuracy": 0.86}, "confirming": {"loss": 0.40, "accuracy": 0.85}}
HELD_OUT = {"loss": 0.36, "f1_macro": 0.7, "accuracy": 0.8483}, {"loss": 0.39, "f1_macro": 0.7, "accuracy": 0.8476}


@pytest.fixture
def job_id(stage: Stage) -> str:
    """A job whose pass went on to 1.91 times fewer operations, and whose rows that confirmed chose a model before that."""
    return stage.running([trial(seq) for seq in range(5)], END_OF_PASS)


def end(stage: Stage, job_id: str, *, is_held_out: bool) -> None:
    before, after = HELD_OUT if is_held_out else (None, None)
    stage.succeed(
        job_id, FILES, base=BASE | {"test": before}, pruned=KEPT | {"test": after}, estimated_speedup=1.07, trials=5
    )


@logged_in
def test_a_running_job_is_told_by_its_pass(job_id: str) -> None:
    assert "-25.0%" in ran("jobs")
    shown = ran("show", job_id)
    assert "loss -25.0%, 1.91 times fewer operations" in shown
    assert "result" not in shown


@logged_in
@pytest.mark.parametrize(
    ("is_held_out", "listed", "shown"),
    [
        (True, "accuracy -0.0007", "held-out accuracy 0.8483 → 0.8476 (-0.0007)"),
        (False, "accuracy +0.0100", "confirming accuracy 0.8400 → 0.8500 (+0.0100)"),
    ],
)
def test_a_finished_job_is_told_by_the_model_that_was_kept(
    stage: Stage, job_id: str, is_held_out: bool, listed: str, shown: str
) -> None:
    end(stage, job_id, is_held_out=is_held_out)
    row = next(line for line in ran("jobs").splitlines() if job_id in line)
    assert listed in row
    said = ran("show", job_id)
    assert f"result      {shown}, 1.07 times fewer operations" in said
    for end_of_pass in ("-25.0%", "1.91"):
        assert end_of_pass not in row
        assert end_of_pass not in said


@logged_in
def test_without_other_data_the_loss_that_decided_is_told(stage: Stage, job_id: str) -> None:
    plain = {key: value for key, value in BASE.items() if key != "confirming"} | {"test": None}
    after = plain | {"validation": {"loss": 0.38}}
    stage.succeed(job_id, FILES, base=plain | {"validation": {"loss": 0.4}}, pruned=after, estimated_speedup=1.07)
    assert "loss -5.0%" in ran("jobs")
    assert "result      validation loss 0.4000 → 0.3800 (-0.0200), 1.07 times fewer operations" in ran("show", job_id)
