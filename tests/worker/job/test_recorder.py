from collections.abc import Callable

import pytest

from axformer.config import PassConfig
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.wire.steps import Step, StepName
from store.repositories import leases
from store.session import Sessions
from store.tables.jobs import Job
from tests.worker.conftest import Post, Watch
from worker.job.ledger import Ledger
from worker.job.recorder import Recorder
from worker.sandbox.messages import PlanSpeed

DIMENSIONS = Dimensions(layers=2, heads=2, hidden_size=8, intermediate_size=24)
LONG = 1000.0
SPEED = PlanSpeed(operations=500, estimated_speedup=2.0)


def trial(seq: int, verdict: Verdict = Verdict.REJECT, loss: float = 0.5) -> Trial:
    return Trial(
        seq=seq,
        phase=Phase.BLOCK if seq else Phase.BASE,
        element=f"layer.{seq % 2}.ffn" if seq else None,
        loss=loss,
        loss_is_bound=False,
        helped=3 if seq else None,
        samples=10,
        total=10,
        min_loss=0.5,
        verdict=verdict if seq else Verdict.BASE,
        precision="float32",
        parameters=0,
        seconds=0.1 * seq,
    )


@pytest.fixture
def job(post: Post, claim: Callable[[], Job]) -> Job:
    post()
    return claim()


def recorder(
    sessions: Sessions,
    job: Job,
    *,
    stored: int = 0,
    batch: int = 50,
    batch_seconds: float = LONG,
    config: PassConfig = PassConfig(),  # noqa: B008 - never changed
) -> Recorder:
    return Recorder(
        Ledger(sessions, job.id, job.fence),
        DIMENSIONS,
        config,
        stored=stored,
        inputs={"checkpoint": "abc"},
        first_look="40 rows",
        speed=lambda: SPEED,
        batch=batch,
        batch_seconds=batch_seconds,
    )


def test_the_first_trial_is_written_at_once_and_the_next_ones_together(
    sessions: Sessions, watch: Watch, job: Job
) -> None:
    recording, counts = recorder(sessions, job, batch=3), []
    for seq in range(7):
        recording.add(trial(seq))
        counts.append(len(watch.trials(job.id)))
    assert counts == [1, 1, 1, 4, 4, 4, 7]
    recording.add(trial(7))
    recording.flush()
    assert [item.seq for item in watch.trials(job.id)] == list(range(8))


def test_no_trial_waits_longer_than_allowed(sessions: Sessions, watch: Watch, job: Job) -> None:
    recording = recorder(sessions, job, batch_seconds=0.0)
    for seq in range(3):
        recording.add(trial(seq))
        assert len(watch.trials(job.id)) == seq + 1


def test_trials_that_are_stored_already_count_and_are_not_written_again(
    sessions: Sessions, watch: Watch, job: Job
) -> None:
    recording = recorder(sessions, job, stored=2)
    recording.add(trial(0))
    recording.add(trial(1))
    recording.flush()
    assert watch.trials(job.id) == []
    recording.add(trial(2))
    assert [item.seq for item in watch.trials(job.id)] == [2]
    progress = watch.job(job.id).progress
    assert progress is not None
    assert progress["done"] == 3


def test_a_pass_that_is_over_has_nothing_left(sessions: Sessions, watch: Watch, job: Job) -> None:
    recording = recorder(sessions, job)
    recording.add(trial(0, loss=0.7))
    recording.add(trial(1, Verdict.ACCEPT, loss=0.6))
    recording.end(0)
    progress = watch.job(job.id).progress
    assert progress is not None
    assert (progress["done"], progress["known"], progress["seconds_left"]) == (2, 2, 0)
    assert len(watch.trials(job.id)) == 2
    again = recorder(sessions, job, stored=2)
    again.add(trial(0, loss=0.7))
    again.add(trial(1, Verdict.ACCEPT, loss=0.6))
    again.end(0)
    assert watch.job(job.id).progress == progress
    assert len(watch.trials(job.id)) == 2


def test_progress_tells_the_losses_and_what_the_pass_works_on(sessions: Sessions, watch: Watch, job: Job) -> None:
    recording = recorder(sessions, job)
    recording.add(trial(0, loss=0.7))
    recording.add(trial(1, Verdict.ACCEPT, loss=0.6))
    recording.add(trial(2, loss=0.1))
    recording.flush()
    progress = watch.job(job.id).progress
    assert progress is not None
    assert (progress["base_loss"], progress["min_loss"], progress["inputs"]) == (0.7, 0.6, {"checkpoint": "abc"})
    assert progress["dimensions"]["layers"] == 2
    assert (progress["operations"], progress["estimated_speedup"]) == (500, 2.0)
    assert progress["known"] >= progress["done"] == 3


def test_a_step_stands_in_the_progress_until_the_next_trial(sessions: Sessions, watch: Watch, job: Job) -> None:
    ledger, step = Ledger(sessions, job.id, job.fence), Step(name=StepName.MOMENTS, done=1, known=4, seconds_left=9.0)
    ledger.write(leases.set_step, step)
    first = watch.job(job.id).progress or {}
    assert (first["done"], first["known"], first["step"]) == (
        0,
        1,
        step.model_dump(mode="json"),
    )  # before the first trial
    recording = recorder(sessions, job, batch=1)
    recording.add(trial(0))
    before = watch.job(job.id).progress or {}
    ledger.write(leases.set_step, step)
    assert watch.job(job.id).progress == before | {"step": step.model_dump(mode="json")}
    recording.add(trial(1))
    assert "step" not in (watch.job(job.id).progress or {})


def test_after_the_last_trial_a_step_says_how_long_the_job_takes(sessions: Sessions, watch: Watch, job: Job) -> None:
    ledger, recording = Ledger(sessions, job.id, job.fence), recorder(sessions, job)
    recording.add(trial(0))
    recording.end(0)
    ledger.write(leases.set_step, Step(name=StepName.PACKAGING, done=1, known=4, seconds_left=9.0))
    assert (watch.job(job.id).progress or {})["seconds_left"] == 9.0
