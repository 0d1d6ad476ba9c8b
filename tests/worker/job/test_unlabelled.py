"""A job on rows without labels: its result says how every model of its path answers them, and an export needs no more."""

import json
from pathlib import Path

from axformer.wire.answer_sheet import AnswerSheet
from store.states import JobState
from tests.tiny_models import tiny_rows, write_rows
from tests.worker.conftest import Open, Post, Watch
from tests.worker.job.test_exports import export
from tests.worker.job.test_runner import NEVER, Claim, artifacts_of, content_of
from worker.base.context import WorkerContext
from worker.job.runner import run_job

KNOBS = {"method": "compress", "budgets": [0.8, 0.5], "confirm": 0.3, "within_points": 20.0}


def test_unlabelled_rows_alone_give_a_result_with_its_answers(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open, tmp_path: Path
) -> None:
    rows = [{"text": row["text"]} for row in tiny_rows(60, seed=7)]
    uri = f"file://{write_rows(opened.root / 'traffic.jsonl', rows)}"
    job_id = post(validation=None, unlabelled={"uri": uri}, knobs=KNOBS)
    run_job(context, claim(), NEVER)
    job, artifacts = watch.job(job_id), artifacts_of(context, job_id)
    assert (job.error, job.state) == (None, JobState.SUCCEEDED)
    assert set((job.progress or {})["inputs"]) == {"checkpoint", "unlabelled"}
    sheet = AnswerSheet.model_validate_json(content_of(context, artifacts["answers.json"]))
    assert [model.seq for model in sheet.models if model.form == "compact"] == [1, 2]
    assert sheet.unlabelled == sheet.rows
    assert "needed.jsonl" in artifacts
    report = json.loads(content_of(context, artifacts["report.json"]))
    assert report["data"]["unlabelled"]["rows"] == sheet.rows
    assert report["certificate"]["rows"] == sheet.rows  # which the worker has computed again

    made = export(context, watch, job_id, 2)
    run_job(context, claim(), NEVER)
    assert (watch.job(made).state, watch.job(made).error) == (JobState.SUCCEEDED, None)


def test_unlabelled_rows_that_cannot_be_read_are_blamed(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open
) -> None:
    uri = f"file://{write_rows(opened.root / 'bodies.jsonl', [{'body': 'word1'}, {'body': 'word2'}])}"
    job_id = post(validation=None, unlabelled={"uri": uri}, knobs=KNOBS)
    run_job(context, claim(), NEVER)
    error = watch.job(job_id).error or {}
    assert (watch.job(job_id).state, error["param"]) == (JobState.FAILED, "unlabelled")
