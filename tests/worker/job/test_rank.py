"""A job that ranks heads and neurons: every step is a trial, and the ranking lies in the result."""

import json

from store.states import JobState
from tests.worker.conftest import Post, Watch
from tests.worker.job.test_runner import NEVER, Claim, artifacts_of, content_of
from worker.base.context import WorkerContext
from worker.job.runner import run_job

KNOBS = {"method": "rank", "step": 0.25, "until": 0.5, "confirm": 0.0, "within_points": None}


def test_a_job_ranks_and_hands_out_its_ranking(context: WorkerContext, post: Post, watch: Watch, claim: Claim) -> None:
    job_id = post(knobs=KNOBS)
    run_job(context, claim(), NEVER)
    job, artifacts = watch.job(job_id), artifacts_of(context, job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    assert [trial.element for trial in watch.trials(job_id)] == [None, "encoder.less.0.25", "encoder.less.0.5"]
    lines = [json.loads(line) for line in content_of(context, artifacts["ranking.jsonl"]).decode().splitlines()]
    assert {line["step"] for line in lines} == {1, 2, None}
