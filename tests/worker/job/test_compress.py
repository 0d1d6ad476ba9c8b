"""A job that compresses: its trials hold plans, its result holds the fitted weights, and it is resumed and exported as any."""

import json
from pathlib import Path

import pytest

from axformer.plan.plan import Plan, parse_plan_file
from store.repositories.steering import request_pause, resume_job
from store.session import Sessions, session_scope
from store.states import JobState
from tests.tiny_models import write_rows
from tests.worker.conftest import Open, Post, Watch
from tests.worker.job.test_exports import export
from tests.worker.job.test_runner import FILES, NEVER, Claim, artifacts_of, content_of, without_seconds
from worker.base.context import WorkerContext
from worker.job.runner import run_job

KNOBS = {"method": "compress", "budgets": [0.8, 0.5], "confirm": 0.3, "within_points": None}


@pytest.mark.slow
def test_a_job_compresses_and_hands_out_any_budget(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open
) -> None:
    job_id = post(test={"uri": opened.uri("test.jsonl")}, knobs=KNOBS)
    run_job(context, claim(), NEVER)
    job, artifacts, trials = watch.job(job_id), artifacts_of(context, job_id), watch.trials(job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    assert [trial.element for trial in trials] == [None, "encoder.0.8", "encoder.0.5"]
    lines = content_of(context, artifacts["trace.jsonl"]).decode().splitlines()
    assert [trial.model_dump_json() for trial in trials] == lines
    report = json.loads(content_of(context, artifacts["report.json"]))
    assert [point["seq"] for point in report["path"]] == [0, 1, 2]
    kept = next(point["seq"] for point in report["path"] if point["kept"])
    assert ("repair.safetensors" in artifacts) is (kept > 0)

    made = export(context, watch, job_id, 2)
    run_job(context, claim(), NEVER)
    exported = artifacts_of(context, made)
    assert (watch.job(made).state, watch.job(made).error) == (JobState.SUCCEEDED, None)
    assert set(exported) >= FILES | {"repair.safetensors"}
    plan = parse_plan_file(content_of(context, exported["plan.json"]).decode())
    assert trials[2].plan is not None
    assert plan.plan == Plan(layers=trials[2].plan)
    assert plan.repair == "refit"


def test_a_job_that_chooses_by_latency_keeps_what_it_measured(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim
) -> None:
    job_id = post(knobs={**KNOBS, "cost": "latency"})
    run_job(context, claim(), NEVER)
    job, (base, *budgets) = watch.job(job_id), watch.trials(job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    assert base.milliseconds is not None
    assert all(trial.milliseconds is None for trial in budgets)
    lines = content_of(context, artifacts_of(context, job_id)["trace.jsonl"]).decode().splitlines()
    assert base.model_dump_json() == lines[0]


@pytest.mark.slow
def test_a_job_is_calibrated_on_rows_without_labels_and_so_is_what_is_exported_of_it(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open
) -> None:
    job_id = post(calibrate={"uri": opened.uri("texts.jsonl"), "columns": {"label": "stars"}}, knobs=KNOBS)
    run_job(context, claim(), NEVER)
    job, artifacts = watch.job(job_id), artifacts_of(context, job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    assert set((job.progress or {})["inputs"]) == {"checkpoint", "validation", "calibrate"}
    assert json.loads(content_of(context, artifacts["report.json"]))["refit"]["data"]["rows"] == 30
    made = export(context, watch, job_id, 2)
    run_job(context, claim(), NEVER)
    again = artifacts_of(context, made)
    for name in ("repair.safetensors", "model/model.safetensors"):
        assert again[name].sha256 == artifacts[name].sha256, "the same data gives the same weights"


def test_rows_that_cannot_calibrate_are_named_as_their_owner_does(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, tmp_path: Path
) -> None:
    uri = f"file://{write_rows(tmp_path / 'texts.jsonl', [{'body': 'word1'}])}"
    job_id = post(calibrate={"uri": uri}, knobs=KNOBS)
    run_job(context, claim(), NEVER)
    error = watch.job(job_id).error
    assert error is not None
    assert (error["code"], error["param"]) == ("invalid_data", "calibrate")
    assert error["message"].startswith(f"data file '{uri}' has no column 'text', it has body; name the columns")


@pytest.mark.slow
def test_a_job_that_was_paused_ends_as_if_undisturbed(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, sessions: Sessions
) -> None:
    whole = post(knobs=KNOBS)
    run_job(context, claim(), NEVER)
    job_id = post(knobs=KNOBS)

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
