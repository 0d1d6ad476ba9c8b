"""A search of orders runs in one job: its passes follow each other, and the best of them is handed out."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from axformer.config import make_config
from axformer.intake.dataset import DataSource
from axformer.methods.axformer.orders import SEARCHED_ORDERS
from axformer.methods.outline import progress_of
from axformer.methods.traces import final_loss, passes_in
from axformer.plan.trial import Trial
from axformer.run import PruningRun
from store.repositories.steering import request_cancel, request_pause, resume_job
from store.session import Sessions, session_scope
from store.states import JobState
from tests.worker.conftest import LONG_PASS, Open, Post, Watch
from tests.worker.job.test_runner import FILES, NEVER, Claim, artifacts_of, content_of, left_behind, without_seconds
from worker.base.context import WorkerContext, claim_job
from worker.base.packing import ARCHIVE_NAME
from worker.job.ledger import Ledger
from worker.job.runner import run_job

KNOBS = {"attention_top_k": 3, "order": "search"}


def library_search(opened: Open, knobs: dict[str, Any]) -> tuple[PruningRun, list[Trial]]:
    """The same search without any service, to its end, and all of its trials."""
    validation = DataSource(str(opened.root / "validation.jsonl"))
    run = PruningRun.open(opened.root / "checkpoint", validation, config=make_config("paper", knobs))
    return run, list(run.trials())


@pytest.fixture
def check_shown(context: WorkerContext, watch: Watch) -> Callable[[str], None]:
    """Checks that the trace that a finished job shows is that of its result."""

    def check(job_id: str) -> None:
        lines = content_of(context, artifacts_of(context, job_id)["trace.jsonl"]).decode().splitlines()
        assert [Trial.model_validate_json(line) for line in lines] == watch.trials(job_id)

    return check


@pytest.mark.slow
def test_the_best_pass_of_a_search_becomes_its_result(
    context: WorkerContext,
    post: Post,
    watch: Watch,
    claim: Claim,
    opened: Open,
    check_shown: Callable[[str], None],
) -> None:
    data = {"test": {"uri": opened.uri("test.jsonl")}, "train": {"uri": opened.uri("train.jsonl")}}
    job_id = post(knobs=KNOBS, finetune={"epochs": 2}, **data)
    run_job(context, claim(), NEVER)
    assert claim_job(context) is None

    job, passes = watch.job(job_id), passes_in(watch.all_trials(job_id))
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    assert job.report is not None
    assert job.report["finetune"]["settings"]["epochs"] == 2
    assert [one["order"] for one in job.report["orders"]] == list(SEARCHED_ORDERS)
    for order, trace in zip(job.report["orders"], passes, strict=True):
        figures = (order["loss"], order["trials"], order["seconds"])
        assert figures == (final_loss(trace), len(trace), trace[-1].seconds)
    ((number, order),) = [(n, one) for n, one in enumerate(job.report["orders"], 1) if one["kept"]]
    assert number > 1, "the default order is not meant to win here"
    assert watch.trials(job_id) == passes[number - 1]
    check_shown(job_id)

    run, trials = library_search(opened, KNOBS)
    assert without_seconds(watch.all_trials(job_id)) == without_seconds(trials)
    assert without_seconds(watch.trials(job_id)) == without_seconds(run.trace)
    files = artifacts_of(context, job_id)
    assert FILES | {ARCHIVE_NAME} <= set(files)
    plan = json.loads(content_of(context, files["plan.json"]))
    assert plan["config"]["order"] == order["order"]
    assert plan["layers"] == run.plan.model_dump(mode="json")["layers"]
    assert b"6 passes inspected the blocks in different orders" in content_of(context, files["README.md"])
    assert job.progress is not None
    assert job.progress["done"] == job.progress["known"]
    assert (job.progress["pass_number"], job.progress["passes"], job.progress["seconds_left"]) == (6, 6, 0)


@pytest.mark.slow
def test_a_search_that_is_paused_in_its_second_pass_and_resumed_ends_as_if_undisturbed(
    context: WorkerContext,
    post: Post,
    watch: Watch,
    claim: Claim,
    sessions: Sessions,
    opened: Open,
    check_shown: Callable[[str], None],
) -> None:
    run, undisturbed = library_search(opened, LONG_PASS | KNOBS)
    first = len(passes_in(undisturbed)[0])
    job_id = post(knobs=LONG_PASS | KNOBS)

    def pause() -> None:
        with session_scope(sessions) as session:
            request_pause(session, job_id)

    with watch.in_the_middle(job_id, first + 20, pause):
        run_job(context, claim(), NEVER)
    paused, before = watch.job(job_id), watch.all_trials(job_id)
    assert (paused.state, paused.shown_pass) == (JobState.PAUSED, 2)
    assert watch.trials(job_id) == passes_in(before)[1]
    assert first + 20 <= len(before) < len(undisturbed)
    assert paused.progress is not None
    assert paused.progress["order"] == SEARCHED_ORDERS[1]
    whole = progress_of(before, run.dimensions, make_config("paper", LONG_PASS | KNOBS))
    assert (paused.progress["done"], paused.progress["known"]) == (whole.done, whole.known)
    assert paused.progress["seconds_left"] == pytest.approx(whole.seconds_left)

    with session_scope(sessions) as session:
        resume_job(session, job_id)
    run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.SUCCEEDED
    after = watch.all_trials(job_id)
    assert after[: len(before)] == before
    assert without_seconds(after) == without_seconds(undisturbed)
    assert without_seconds(watch.trials(job_id)) == without_seconds(run.trace)
    check_shown(job_id)


def test_a_search_whose_worker_died_in_its_second_pass_goes_on_and_ends_as_if_undisturbed(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open, check_shown: Callable[[str], None]
) -> None:
    run, undisturbed = library_search(opened, KNOBS)
    first, second = passes_in(undisturbed)[:2]
    before = [first, second[: len(second) // 2]]
    job_id = post(knobs=KNOBS)
    job = claim()
    died = Ledger(context.sessions, job.id, job.fence)
    for state in (JobState.VALIDATING, JobState.RUNNING):
        died.enter(state)
    for number, trace in enumerate(before, 1):
        died.record(trace, {}, number)
    died.give_back("as if its lease had run out")

    run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.SUCCEEDED
    after = watch.all_trials(job_id)
    assert after[: sum(map(len, before))] == [*before[0], *before[1]]
    assert without_seconds(after) == without_seconds(undisturbed)
    assert without_seconds(watch.trials(job_id)) == without_seconds(run.trace)
    check_shown(job_id)


def test_a_search_is_cancelled_in_the_middle_of_a_pass(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, sessions: Sessions
) -> None:
    job_id = post(knobs=KNOBS | LONG_PASS)

    def cancel() -> None:
        with session_scope(sessions) as session:
            request_cancel(session, job_id)

    with watch.in_the_middle(job_id, 10, cancel):
        run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.CANCELLED
    assert claim_job(context) is None
    assert left_behind(context, job_id) == []
