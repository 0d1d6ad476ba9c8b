"""Whole jobs under real restrictions: everything that a job may want works in there, and what is killed is an attempt lost."""

import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from axformer.forms.kinds import COMPACT, KINDS, ONNX_INT8
from axformer.plan.trial import Trial
from axformer.reporting.environment import commit
from axformer.wire.states import JobKind
from store.settings import Settings
from store.states import WORKING, JobState
from tests import forked
from tests.tiny_models import tiny_rows, write_rows
from tests.worker.conftest import GUESSING, LONG_PASS, Open, Post, Watch, context, opened, post, settings, watch
from tests.worker.job.test_runner import CHECKPOINTS, artifacts_of, library_run
from worker.base.context import WorkerContext, claim_job
from worker.job.runner import run_job
from worker.sandbox.errors import RestrictionsMissingError
from worker.sandbox.parent import NAME
from worker.sandbox.sandboxes import Sandboxes
from worker.sandbox.warm_parent import ADDRESS, Keeper

__all__ = ["context", "opened", "post", "settings", "watch"]

pytestmark = pytest.mark.slow
NEVER = threading.Event()
EPOCHS, STEPS_AN_EPOCH = 10, 30
FORMS = (COMPACT, ONNX_INT8)
NAMES = {KINDS[form].directory for form in FORMS} | {
    *("README.md", "path.svg", "plan.json", "plan.svg", "report.html", "report.json"),
    *("run.json", "trace.jsonl", "artifact.tar.gz", "provenance.json"),
}


@pytest.fixture(scope="module", autouse=True)
def kept_parent() -> Iterator[None]:
    """A parent that imports the libraries once, as in a worker, for the jobs of all these tests."""
    keeper = Keeper()
    with forked.forking():
        keeper.start()
        yield
    keeper.close()
    del os.environ[ADDRESS]


@pytest.fixture
def confined(context: WorkerContext) -> Iterator[WorkerContext]:
    with Sandboxes(context.settings) as sandboxes:
        sandboxes.prepare().make_ready()
        yield replace(context, sandboxes=sandboxes)


def assert_alike(stored: Sequence[Trial], expected: Sequence[Trial]) -> None:
    """The confined processes may share their work out among other numbers of threads, so losses have a tolerance."""
    assert [(one.element, one.verdict) for one in stored] == [(one.element, one.verdict) for one in expected]
    assert [one.loss for one in stored] == pytest.approx([one.loss for one in expected], rel=1e-4)


def kill_processes_of_jobs() -> None:
    for one in psutil.Process().children(recursive=True):
        if one.name() == NAME:
            os.kill(one.pid, signal.SIGKILL)


def test_training_and_forms_work_in_the_sandbox(
    confined: WorkerContext, post: Post, watch: Watch, opened: Open
) -> None:
    job_id = post(
        train={"uri": opened.uri("train.jsonl")},
        finetune={"epochs": 1, "learning_rate": 0.001, "batch_size": 8, "seed": 0},
        forms=list(FORMS),
    )
    job = claim_job(confined)
    assert job is not None
    run_job(confined, job, NEVER)
    job = watch.job(job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    assert job.report is not None
    assert {form["name"]: form["made"] for form in job.report["forms"]} == dict.fromkeys(FORMS, True)
    assert {name.partition("/")[0] for name in artifacts_of(confined, job_id)} == NAMES
    assert job.report["environment"]["commit"] == commit()
    assert_alike(watch.trials(job_id), library_run(opened, {}).trace)
    for place in (confined.settings.work_dir, confined.settings.ahead_dir):
        assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "knobs",
    [
        {"method": "compress", "budgets": [0.8, 0.5], "confirm": 0.3, "within_points": None},
        {"method": "layers", "drop": 1},
        {"method": "rank", "step": 0.25, "until": 0.5, "confirm": 0.0, "within_points": None},
    ],
    ids=lambda knobs: knobs["method"],
)
def test_the_other_methods_work_in_the_sandbox(
    confined: WorkerContext, post: Post, watch: Watch, knobs: dict[str, Any]
) -> None:
    job_id = post(knobs=knobs | GUESSING)
    job = claim_job(confined)
    assert job is not None
    run_job(confined, job, NEVER)
    job = watch.job(job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)


def test_a_process_that_is_killed_in_the_middle_is_an_attempt_lost_and_the_job_goes_on(
    confined: WorkerContext, post: Post, watch: Watch, opened: Open
) -> None:
    job_id = post(knobs=LONG_PASS)
    job = claim_job(confined)
    assert job is not None

    watcher = watch.at_trial(job_id, 10, kill_processes_of_jobs)
    run_job(confined, job, NEVER)
    watcher.join()
    assert watch.job(job_id).state in WORKING
    assert watch.events(job_id)[-1] == "job.worker_lost"
    again = claim_job(confined)
    assert again is not None
    run_job(confined, again, NEVER)
    assert (watch.job(job_id).state, watch.job(job_id).attempt) == (JobState.SUCCEEDED, 2)
    assert_alike(watch.trials(job_id), library_run(opened, LONG_PASS).trace)


def test_an_analysis_whose_process_is_killed_goes_on_from_its_finished_reports(
    confined: WorkerContext, post: Post, watch: Watch, opened: Open, tmp_path: Path
) -> None:
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(400))
    job_id = post(
        kind=JobKind.ANALYSIS,
        analysis={"reports": None, "rows": None},
        config={"max_length": None},
        validation={"uri": f"file://{data}"},
        train={"uri": opened.uri("train.jsonl")},
        against={"uri": opened.uri("checkpoint")},
    )

    def finished() -> dict[str, Path]:
        return {path.stem: path for path in confined.settings.work_dir.glob(f"{job_id}.*/made/state/reports-*/*.json")}

    def kill() -> None:
        while not finished():
            threading.Event().wait(0.01)
        kill_processes_of_jobs()

    watcher = threading.Thread(target=kill)
    watcher.start()
    job = claim_job(confined)
    assert job is not None
    run_job(confined, job, NEVER)
    watcher.join()
    assert (watch.job(job_id).state in WORKING, watch.events(job_id)[-1]) == (True, "job.worker_lost")
    kept = {name: json.loads(path.read_bytes())["reports"][name] for name, path in finished().items()}
    assert kept
    job = claim_job(confined)
    assert job is not None
    run_job(confined, job, NEVER)
    done = watch.job(job_id)
    assert (done.state, done.error, done.attempt) == (JobState.SUCCEEDED, None, 2)
    assert done.report is not None
    assert all(done.report["reports"].values())
    assert {name: done.report["reports"][name] for name in kept} == kept  # their times, too
    assert list(confined.settings.work_dir.iterdir()) == []


def test_a_process_that_is_killed_while_it_trains_continues_from_its_state(
    confined: WorkerContext, post: Post, watch: Watch, opened: Open
) -> None:
    job_id = post(
        train={"uri": opened.uri("train.jsonl")}, finetune={"epochs": EPOCHS, "learning_rate": 0.001, "batch_size": 1}
    )
    job = claim_job(confined)
    assert job is not None

    def kill() -> None:
        while not list(confined.settings.work_dir.glob(f"{job_id}.*/{CHECKPOINTS}")):
            threading.Event().wait(0.01)
        kill_processes_of_jobs()

    watcher = watch.at_trial(job_id, 1, kill)
    run_job(confined, job, NEVER)
    watcher.join()
    assert watch.job(job_id).state is not JobState.SUCCEEDED
    assert list(confined.settings.work_dir.glob(f"{job_id}.kept/{CHECKPOINTS}"))

    told: set[str] = set()

    def listen() -> None:
        while watch.job(job_id).state is not JobState.SUCCEEDED:
            told.add(((watch.job(job_id).progress or {}).get("step") or {}).get("detail") or "")
            threading.Event().wait(0.01)

    job = claim_job(confined)
    assert job is not None
    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    run_job(confined, job, NEVER)
    finished = watch.job(job_id)
    assert (finished.state, finished.error, finished.attempt) == (JobState.SUCCEEDED, None, 2)
    listener.join()
    assert any("continued after step" in detail for detail in told)
    assert finished.report is not None
    assert finished.report["finetune"]["steps"] == EPOCHS * STEPS_AN_EPOCH
    assert list(confined.settings.work_dir.iterdir()) == []


def test_restrictions_that_are_required_and_missing_stop_a_worker(settings: Settings) -> None:
    required = settings.model_copy(update={"sandbox": "required"})
    with Sandboxes(required) as sandboxes:
        one = sandboxes.prepare()
        try:
            one.make_ready()
        except RestrictionsMissingError as error:
            pytest.skip(f"and that is what happens here: {error}")
        assert one.is_alive()
