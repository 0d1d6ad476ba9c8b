"""A trade within points keeps the metric on the rows that decide, and else is the trade that it would be."""

from collections.abc import Sequence
from functools import cache

import pytest
import torch

from axformer.config import PassConfig, make_config
from axformer.data.batches import Samples
from axformer.intake.dataset import prepare
from axformer.intake.parts import split_off
from axformer.methods.axformer.algorithm import search
from axformer.methods.axformer.judge import MetricLimit
from axformer.model.compact import compact
from axformer.opening import Inputs
from axformer.plan.path import points_of
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.run import PruningRun
from axformer.scores.measured import Recording, measure
from axformer.scores.task_tests import POINT, is_share_right
from axformer.wire.metrics import first_metric
from tests.family_cases import LONG, Case, checkpoint_of, data_of
from tests.plain import PlainEvaluator

TASKS = (
    *("classification", "multi_label_classification", "regression", "token_classification", "question_answering"),
    "multiple_choice",
)
TRADE = {"tolerance": 0.5, "confirm": 0.3, "attention_top_k": 3}


def run_of(task: str, **knobs: object) -> PruningRun:
    sizes = {"batch_tokens": LONG.get(task, 60), "max_length": 24}
    return run_with(task, make_config("paper", TRADE | sizes | knobs))


def run_with(task: str, config: PassConfig) -> PruningRun:
    case = Case("bert", task)
    checkpoint = checkpoint_of(case)
    return PruningRun(Inputs(checkpoint, prepare(data_of(case).rows, checkpoint, config)), config)


def deciding(run: PruningRun) -> Samples:
    return split_off(run._validation, run._checkpoint, run.config)[0].samples


def timeless(trials: Sequence[Trial]) -> list[Trial]:
    return [trial.model_copy(update={"seconds": 0.0}) for trial in trials]


def metrics_along(run: PruningRun, trials: Sequence[Trial]) -> dict[int, float]:
    """The first metric of the untouched model and of each acceptance, by its trial, from whole forward passes."""
    checkpoint, samples = run._checkpoint, deciding(run)
    metrics = {}
    for point in points_of(trials, run.dimensions, run.config.attention_kept):
        small = compact(checkpoint.model, checkpoint.architecture, point.plan)
        figures = measure(small, checkpoint.task, samples).figures
        metrics[point.seq] = figures[first_metric(figures)]
    return metrics


@pytest.mark.slow
@pytest.mark.parametrize("task", [task for task in TASKS if task != "regression"])
def test_a_trade_keeps_the_metric_within_the_points(task: str) -> None:
    """Not for regression: what is left of a tiny model answers nearly always the same, and its correlation is rounding."""
    run = run_of(task, within_points=5)
    trials = list(run.trials())
    metrics = metrics_along(run, trials)
    traded = [trial.seq for trial in trials if trial.phase is Phase.TRADE and trial.verdict is Verdict.ACCEPT]
    assert traded
    assert all(metrics[seq] >= metrics[0] - 5 * POINT - 1e-4 for seq in traded)


def test_the_points_bind_where_the_loss_does_not() -> None:
    run = run_of("classification", within_points=0)
    trades = [trial for trial in run.trials() if trial.phase is Phase.TRADE]
    limit = (1 + 0.5) * run.trace[0].loss
    refused = [
        one for one in trades if one.verdict is not Verdict.ACCEPT and not one.loss_is_bound and one.loss < limit
    ]
    assert refused


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_limit_that_nothing_reaches_changes_nothing(task: str) -> None:
    limited = run_of(task, within_points=100).config.model_copy(update={"within_points": 1e6})
    with_limit, without = run_with(task, limited), run_of(task)  # the first round has an eighth of it
    assert timeless(list(with_limit.trials())) == timeless(list(without.trials()))


def test_resumed_equals_undisturbed() -> None:
    whole = list(run_of("classification", within_points=3).trials())
    first = next(trial.seq for trial in whole if trial.phase is Phase.TRADE)
    for cut in (1, first, first + 3, (first + len(whole)) // 2, len(whole) - 1):
        assert timeless(list(run_of("classification", within_points=3).trials(whole[:cut]))) == timeless(whole)


@cache
def decided_plainly() -> list[Trial]:
    run = run_of("classification", within_points=3)
    checkpoint, samples = run._checkpoint, deciding(run)
    recording = Recording(checkpoint.task, samples)
    limit = MetricLimit(3, recording)
    plain = PlainEvaluator(checkpoint.model, checkpoint.architecture, recording, samples)
    return list(search(plain, run.dimensions, run.config, parameters_left=lambda _: 0, metric_limit=limit))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_fast_evaluator_decides_as_the_plain_one(threads: int) -> None:
    run, slow = run_of("classification", within_points=3), decided_plainly()
    cores = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        fast = list(run.trials())
    finally:
        torch.set_num_threads(cores)
    assert [(one.element, one.verdict) for one in fast] == [(one.element, one.verdict) for one in slow]


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_tested_by_right_answers_only_where_their_share_is_its_first_metric(name: str) -> None:
    run = run_of(name)
    task, samples = run._checkpoint.task, deciding(run)
    scored = measure(run._checkpoint.model, task, samples)
    is_share = scored.right is not None and scored.figures[first_metric(scored.figures)] == scored.right.mean()
    assert is_share_right(task.name) == is_share == (name not in ("regression", "token_classification"))


@pytest.mark.parametrize(
    ("points", "told"),
    [
        (
            2,
            "confirming rows cannot show so small a fall, even where no answer changes (that takes 149), so the untouched",
        ),
        (0, "kept; allow more points"),
        (70, None),
    ],
)
def test_rows_that_can_show_no_model_are_told_before_the_pass(points: float, told: str | None) -> None:
    few_decide, *notes = run_of("classification", within_points=points).notes
    assert "only 7 different inputs decide" in few_decide
    assert (told is None and notes == []) or (told is not None and told in notes[0])
    for task in ("regression", "token_classification"):
        (_, few) = run_of(task, within_points=points).notes
        assert "too few to certify this task's metric (that takes 30)" in few
