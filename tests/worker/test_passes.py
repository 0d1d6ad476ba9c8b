"""A search of orders runs as jobs of its own, and its parent publishes the best of them."""

import json
import threading
from itertools import groupby
from typing import Any

import pytest

from axformer.config import make_config
from axformer.intake.dataset import DataSource
from axformer.methods.axformer.orders import SEARCHED_ORDERS, final_loss
from axformer.plan.trial import Trial
from axformer.run import PruningRun
from store.repositories.passes import passes_of
from store.repositories.steering import request_cancel
from store.session import Sessions, session_scope
from store.states import JobState
from store.tables.jobs import Job
from tests.tiny_models import tiny_rows, write_rows
from tests.worker.conftest import LONG_PASS, Open, Post, Watch
from tests.worker.test_runner import FILES, NEVER, Claim, artifacts_of, content_of, left_behind, without_seconds
from worker.context import WorkerContext, claim_job
from worker.packing import ARCHIVE_NAME
from worker.runner import run_job

KNOBS = {"attention_top_k": 3, "order": "search"}


def passes(sessions: Sessions, job_id: str) -> list[Job]:
    with session_scope(sessions) as session:
        return passes_of(session, [job_id])[job_id]


def run_all(context: WorkerContext) -> int:
    """Work until there is nothing to do; how many jobs were claimed."""
    claimed = 0
    while (job := claim_job(context)) is not None:
        run_job(context, job, NEVER)
        claimed += 1
    return claimed


def library_search(opened: Open) -> PruningRun:
    """The same search without any service, to its end."""
    validation = DataSource(str(opened.root / "validation.jsonl"))
    run = PruningRun.open(opened.root / "checkpoint", validation, config=make_config("paper", KNOBS))
    for _ in run.trials():
        pass
    return run


@pytest.mark.slow
def test_the_passes_of_a_search_become_its_result(
    context: WorkerContext, post: Post, watch: Watch, sessions: Sessions, opened: Open
) -> None:
    lessons = {"uri": opened.uri("train.jsonl")}
    job_id = post(knobs=KNOBS, test={"uri": opened.uri("test.jsonl")}, train=lessons, finetune={"epochs": 2})
    assert run_all(context) == 7

    job, below = watch.job(job_id), passes(sessions, job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    assert [one.state for one in below] == [JobState.SUCCEEDED] * 6
    assert job.report is not None
    assert job.report["finetune"]["settings"]["epochs"] == 2
    assert [(one.train, one.finetune) for one in below] == [(None, None)] * 6
    assert [one["order"] for one in job.report["orders"]] == list(SEARCHED_ORDERS)
    for told, one in zip(job.report["orders"], below, strict=True):
        trace = watch.trials(one.id)
        assert (told["loss"], told["trials"], told["seconds"]) == (final_loss(trace), len(trace), trace[-1].seconds)
        assert one.summary is None
        assert artifacts_of(context, one.id) == {}
    (best,) = [one for told, one in zip(job.report["orders"], below, strict=True) if told["kept"]]
    assert best is not below[0], "the default order is not meant to win here"
    assert watch.trials(job_id) == watch.trials(best.id)
    assert without_seconds(watch.trials(job_id)) == without_seconds(library_search(opened).trace)
    files = artifacts_of(context, job_id)
    assert FILES | {ARCHIVE_NAME} <= set(files)
    lines = content_of(context, files["trace.jsonl"]).decode().splitlines()
    assert [Trial.model_validate_json(line) for line in lines] == watch.trials(best.id)
    plan = json.loads(content_of(context, files["plan.json"]))
    assert plan["config"] == best.config
    assert plan["layers"] == library_search(opened).plan.model_dump(mode="json")["layers"]
    assert b"6 passes inspected the blocks in different orders" in content_of(context, files["README.md"])


def test_two_workers_run_two_passes_at_once(
    context: WorkerContext, post: Post, watch: Watch, sessions: Sessions
) -> None:
    job_id = post(knobs=KNOBS | LONG_PASS)
    stop = threading.Event()
    workers = []
    for _ in range(2):
        job = claim_job(context)
        assert job is not None
        workers.append((job.id, threading.Thread(target=run_job, args=(context, job, stop))))
    for _, worker in workers:
        worker.start()
    both = [watch.at_trial(claimed, 2, lambda: None) for claimed, _ in workers]
    for watcher in both:
        watcher.join()
    running = [one.id for one in passes(sessions, job_id) if one.state is JobState.RUNNING]
    assert sorted(running) == sorted(claimed for claimed, _ in workers)
    assert watch.job(job_id).state is JobState.RUNNING
    stop.set()
    for _, worker in workers:
        worker.join()
    assert {one.state for one in passes(sessions, job_id)} == {JobState.QUEUED}


def test_a_search_is_cancelled_with_its_passes(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, sessions: Sessions
) -> None:
    job_id = post(knobs=KNOBS | LONG_PASS)

    def cancel() -> None:
        with session_scope(sessions) as session:
            request_cancel(session, job_id)

    one = claim()
    watcher = watch.at_trial(one.id, 10, cancel)
    run_job(context, one, NEVER)
    watcher.join()
    assert [below.state for below in passes(sessions, job_id)] == [JobState.CANCELLED] * 6
    assert claim_job(context) is None
    assert watch.job(job_id).state is JobState.CANCELLED
    assert left_behind(context, job_id) == []
    assert left_behind(context, one.id) == []


def test_a_pass_that_fails_ends_the_search_with_its_reason(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, sessions: Sessions, tmp_path: Any
) -> None:
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(40))
    job_id = post(knobs=KNOBS, validation={"uri": f"file://{data}"})
    run_job(context, claim(), NEVER)
    data.write_text("")
    failing = claim()
    run_job(context, failing, NEVER)
    assert claim_job(context) is None

    job = watch.job(job_id)
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert (job.error["code"], job.error["param"]) == ("invalid_data", "validation")
    assert failing.id in job.error["message"]
    assert "no rows" in job.error["message"]
    ends = sorted(one.state for one in passes(sessions, job_id))
    assert [(state, len(list(some))) for state, some in groupby(ends)] == [
        (JobState.CANCELLED, 4),
        (JobState.FAILED, 1),
        (JobState.SUCCEEDED, 1),
    ]


def test_a_search_takes_no_passes_that_ran_on_other_data(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, tmp_path: Any
) -> None:
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(40))
    job_id = post(knobs=KNOBS, validation={"uri": f"file://{data}"})
    run_job(context, claim(), NEVER)
    write_rows(data, tiny_rows(40, seed=5))
    assert run_all(context) == 6
    error = watch.job(job_id).error
    assert error is not None
    assert (error["code"], error["retryable"]) == ("inputs_changed", True)
