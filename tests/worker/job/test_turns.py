"""Jobs whose work between two trials is long let others go first too: within a training, and after a report."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from axformer.wire.states import JobKind
from axformer.wire.steps import StepName
from store.settings import Settings
from store.states import JobState
from tests.worker.conftest import Open, Post, Watch
from tests.worker.job.test_analyses import untimed
from tests.worker.job.test_exports import export
from tests.worker.job.test_new_head import asked  # noqa: F401 - a fixture
from tests.worker.job.test_runner import NEVER, Claim, artifacts_of, content_of, without_seconds
from tests.worker.job.test_slices import A_MOMENT
from worker.base.context import WorkerContext
from worker.job.runner import run_job
from worker.job.warm import WarmSlot

LESSONS = {"epochs": 2, "batch_size": 10, "learning_rate": 1e-3, "dropout": False}
"""Without dropout, since the processes of these tests are threads, which share the random numbers that it would draw."""
DROPPING = {"method": "layers", "drop": 1}
WEIGHTS = "model/model.safetensors"
WAYS = pytest.mark.parametrize(
    "is_warm", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["in memory", "begun anew"]
)
Fields = dict[str, Any]
Alone = Callable[[Fields], str]
InTurns = Callable[..., list[tuple[str, str | None]]]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"slice_seconds": A_MOMENT})


@pytest.fixture
def alone(context: WorkerContext, post: Post, claim: Claim) -> Alone:
    """Runs a job behind which nobody waits."""

    def run(fields: Fields) -> str:
        job_id = post(**fields)
        assert run_job(context, claim(), NEVER)
        return job_id

    return run


@pytest.fixture
def in_turns(context: WorkerContext, watch: Watch, claim: Claim) -> InTurns:
    """Runs jobs that wait behind each other. Gives whose turn it was, and the step that the turn ended in."""

    def run(*jobs: str, is_warm: bool) -> list[tuple[str, str | None]]:
        turns = []
        with WarmSlot() as warm:
            while any(watch.job(one).state is JobState.QUEUED for one in jobs):
                job = claim()
                assert run_job(context, job, NEVER, warm if is_warm else None)
                turns.append((job.id, ((watch.job(job.id).progress or {}).get("step") or {}).get("name")))
        ended = [watch.job(one) for one in jobs]
        assert [(job.state, job.error, job.attempt) for job in ended] == [(JobState.SUCCEEDED, None, 1)] * len(jobs)
        assert list(context.settings.work_dir.iterdir()) == []
        return turns

    return run


@pytest.fixture(params=["layers", pytest.param("after a pass", marks=pytest.mark.slow)])
def trains(request: pytest.FixtureRequest, opened: Open) -> Fields:
    """A job of two trials that trains the models of all, or the last one."""
    knobs = DROPPING if request.param == "layers" else {"until": 0.1, "method": "rank", "step": 0.1}
    return {"train": {"uri": opened.uri("train.jsonl")}, "finetune": LESSONS, "knobs": knobs}


@pytest.mark.slow
@WAYS
def test_jobs_that_train_take_turns_and_end_as_if_undisturbed(
    context: WorkerContext, post: Post, watch: Watch, alone: Alone, in_turns: InTurns, trains: Fields, is_warm: bool
) -> None:
    undisturbed = alone(trains)
    jobs = post(**trains), post(**trains)
    turns = in_turns(*jobs, is_warm=is_warm)
    for job_id in jobs:
        assert (job_id, StepName.TRAINING) in turns
        assert without_seconds(watch.trials(job_id)) == without_seconds(watch.trials(undisturbed))
        weights, same = (artifacts_of(context, one)[WEIGHTS].sha256 for one in (job_id, undisturbed))
        assert weights == same


@pytest.mark.slow
def test_a_short_job_does_not_wait_for_the_training_of_a_head(
    context: WorkerContext,
    post: Post,
    alone: Alone,
    in_turns: InTurns,
    asked: Fields,  # noqa: F811 - the fixture
) -> None:
    asked["finetune"] = LESSONS
    undisturbed = alone(dict(asked))
    training, short = post(**asked), post()
    turns = in_turns(training, short, is_warm=True)
    assert turns[0] == (training, StepName.TRAINING)
    assert turns[1][0] == short
    for name in ("untouched/model.safetensors", WEIGHTS):
        assert artifacts_of(context, training)[name].sha256 == artifacts_of(context, undisturbed)[name].sha256


@pytest.mark.slow
def test_a_short_job_does_not_wait_for_the_training_of_an_export(
    context: WorkerContext, post: Post, watch: Watch, alone: Alone, in_turns: InTurns, opened: Open
) -> None:
    train = {"uri": opened.uri("train.jsonl")}
    long = LESSONS | {"epochs": 8, "batch_size": 5}
    whole = alone({"train": train, "finetune": long, "knobs": DROPPING})
    made, short = export(context, watch, whole, 1), post()
    turns = in_turns(made, short, is_warm=True)
    assert turns[0] == (made, StepName.TRAINING)
    assert turns[1][0] == short
    assert artifacts_of(context, made)[WEIGHTS].sha256 == artifacts_of(context, whole)[WEIGHTS].sha256


@WAYS
def test_a_short_job_does_not_wait_for_all_reports(
    context: WorkerContext, post: Post, alone: Alone, in_turns: InTurns, opened: Open, is_warm: bool
) -> None:
    wanted = {
        "kind": JobKind.ANALYSIS,
        "analysis": {"reports": None, "rows": None},
        "config": {"max_length": None},
        "train": {"uri": opened.uri("train.jsonl")},
        "forms": [],
    }
    undisturbed = alone(dict(wanted))
    analysis, short = post(**wanted), post()
    turns = in_turns(analysis, short, is_warm=is_warm)
    assert [job_id for job_id, _ in turns[:2]] == [analysis, short]
    first, second = (
        json.loads(content_of(context, artifacts_of(context, one)["analysis.json"])) for one in (analysis, undisturbed)
    )
    assert untimed(first) == untimed(second)
