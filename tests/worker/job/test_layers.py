"""A job that drops layers and trains every model: resumed and exported with the same weights, an ordinary checkpoint."""

import json

import pytest

from axformer.plan.plan import parse_plan_file
from store.repositories.steering import request_pause, resume_job
from store.session import Sessions, session_scope
from store.states import JobState
from tests.worker.conftest import Open, Post, Watch
from tests.worker.job.test_exports import export
from tests.worker.job.test_runner import NEVER, Claim, artifacts_of, content_of, without_seconds
from worker.base.context import WorkerContext
from worker.job.runner import run_job

KNOBS = {"method": "layers", "confirm": 0.3, "within_points": None}
LESSONS = {"epochs": 1, "batch_size": 10, "learning_rate": 1e-3}
WEIGHTS = "stock/model.safetensors"


@pytest.mark.slow
def test_a_job_drops_layers_and_hands_out_any_number_of_them(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open
) -> None:
    train = {"uri": opened.uri("train.jsonl")}
    job_id = post(train=train, finetune=LESSONS, knobs=KNOBS | {"confirm": 0.0})
    run_job(context, claim(), NEVER)
    job, artifacts, trials = watch.job(job_id), artifacts_of(context, job_id), watch.trials(job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    assert [trial.element for trial in trials] == [None, "encoder.layers.2", "encoder.layers.1"]
    config = json.loads(content_of(context, artifacts["stock/config.json"]))
    assert (config["model_type"], config["num_hidden_layers"]) == ("bert", 1)
    assert json.loads(content_of(context, artifacts["report.json"]))["finetune"]["steps"] == 3

    made = export(context, watch, job_id, 1)
    run_job(context, claim(), NEVER)
    assert (watch.job(made).state, watch.job(made).error) == (JobState.SUCCEEDED, None)
    plan = parse_plan_file(content_of(context, artifacts_of(context, made)["plan.json"]).decode())
    assert plan.plan.dropped == (2,)
    again = export(context, watch, job_id, 2)
    run_job(context, claim(), NEVER)
    assert artifacts_of(context, again)[WEIGHTS].sha256 == artifacts[WEIGHTS].sha256


@pytest.mark.slow
def test_a_job_that_was_paused_between_trainings_ends_as_if_undisturbed(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, sessions: Sessions, opened: Open
) -> None:
    asked = {"train": {"uri": opened.uri("train.jsonl")}, "finetune": LESSONS, "knobs": KNOBS}
    whole = post(**asked)
    run_job(context, claim(), NEVER)
    job_id = post(**asked)

    def pause() -> None:
        with session_scope(sessions) as session:
            request_pause(session, job_id)

    with watch.in_the_middle(job_id, 1, pause):
        run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.PAUSED
    with session_scope(sessions) as session:
        resume_job(session, job_id)
    run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.SUCCEEDED
    assert without_seconds(watch.trials(job_id)) == without_seconds(watch.trials(whole))
    first, second = (artifacts_of(context, one)["model/model.safetensors"].sha256 for one in (whole, job_id))
    assert first == second, "the same data gives the same weights"
