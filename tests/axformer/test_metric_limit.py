"""A trade within points keeps the metric on the rows that decide, and else is the trade that it would be."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.config import PassConfig, make_config
from axformer.data.batches import Samples
from axformer.evaluation.plain import PlainEvaluator
from axformer.intake.dataset import prepare
from axformer.intake.parts import split_off
from axformer.methods.axformer.algorithm import search
from axformer.methods.axformer.metric_limit import POINT, MetricLimit, is_share_right, reliably_within
from axformer.model.compact import compact
from axformer.plan.path import points_of
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.run import PruningRun
from axformer.scores.confidence import first_metric
from axformer.scores.scoring import score
from axformer.tasks.classification import Classification
from tests.family_cases import Case, checkpoint_of, data_of

TASKS = (
    *("classification", "multi_label_classification", "regression", "token_classification", "question_answering"),
    "multiple_choice",
)
TRADE = {"tolerance": 0.5, "confirm": 0.3, "attention_top_k": 3}


def run_of(task: str, **knobs: object) -> PruningRun:
    case = Case("bert", task)
    config = make_config("paper", TRADE | {"batch_tokens": 60, "max_length": 24} | knobs)
    checkpoint = checkpoint_of(case)
    return PruningRun(checkpoint, prepare(data_of(case).rows, checkpoint, config), None, config)


def deciding(run: PruningRun) -> Samples:
    return split_off(run._validation, run._checkpoint, run.config)[0].samples


def timeless(trials: Sequence[Trial]) -> list[Trial]:
    return [trial.model_copy(update={"seconds": 0.0}) for trial in trials]


def metrics_along(run: PruningRun, trials: Sequence[Trial]) -> dict[int, float]:
    """The first metric of the untouched model and of each acceptance, by its trial, from whole forward passes."""
    checkpoint, samples = run._checkpoint, deciding(run)
    metrics = {}
    for point in points_of(trials, run.dimensions, run.config):
        small = compact(checkpoint.model, checkpoint.architecture, point.plan)
        figures = score(small, checkpoint.task, samples).figures
        metrics[point.seq] = figures[first_metric(figures)]
    return metrics


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


@pytest.mark.parametrize("task", TASKS)
def test_a_limit_that_nothing_reaches_changes_nothing(task: str) -> None:
    with_limit, without = run_of(task, within_points=100), run_of(task)
    with_limit._configs = [
        with_limit.config.model_copy(update={"within_points": 1e6})
    ]  # the first round has an eighth of it
    assert timeless(list(with_limit.trials())) == timeless(list(without.trials()))


@pytest.mark.parametrize("more", [{}, {"precision": "guarded"}, {"evaluate_in": "int8"}], ids=str)
def test_resumed_equals_undisturbed(more: dict[str, object]) -> None:
    whole = list(run_of("classification", within_points=3, **more).trials())
    first = next(trial.seq for trial in whole if trial.phase is Phase.TRADE)
    for cut in (1, first, first + 3, (first + len(whole)) // 2, len(whole) - 1):
        assert timeless(list(run_of("classification", within_points=3, **more).trials(whole[:cut]))) == timeless(whole)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_fast_evaluator_decides_as_the_plain_one(threads: int) -> None:
    run = run_of("classification", within_points=3)
    checkpoint, samples = run._checkpoint, deciding(run)
    limit = MetricLimit(checkpoint.task, samples, 3)
    plain = PlainEvaluator(checkpoint.model, checkpoint.architecture, limit.recording, samples)
    slow = list(search(plain, run.dimensions, run.config, parameters_left=lambda _: 0, metric_limit=limit))
    cores = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        fast = list(run.trials())
    finally:
        torch.set_num_threads(cores)
    assert [(one.element, one.verdict) for one in fast] == [(one.element, one.verdict) for one in slow]


def table(right: np.ndarray) -> np.ndarray:
    """Loss, label and answer of samples of which these are answered rightly."""
    labels = np.arange(len(right)) % 2
    return np.column_stack([np.zeros(len(right)), labels, np.where(right, labels, 1 - labels)])


@given(st.lists(st.integers(0, 40), max_size=4), st.sampled_from([0.0, 2.0, 10.0, 100.0]), st.integers(0, 9))
@settings(deadline=None, max_examples=50)
def test_the_smallest_before_the_first_that_may_have_fallen_further_is_kept(
    changed: list[int], points: float, seed: int
) -> None:
    """With more points no less is kept, no metric that is kept fell further than asked, and within ten points 80 rows show that
    a model without a changed answer is."""
    chance = np.random.default_rng(seed)
    rights = [chance.random(80) < 0.8]
    for count in changed:
        turned = chance.choice(80, size=count, replace=False)
        rights.append(rights[-1] ^ np.isin(np.arange(80), turned))
    tables = [table(right) for right in rights]
    kept = reliably_within(tables, Classification(), points)
    assert kept <= reliably_within(tables, Classification(), points + 5)
    assert all(right.mean() > rights[0].mean() - points * POINT for right in rights[1 : kept + 1])
    assert points < 10 or kept == len(changed) or not (rights[kept + 1] == rights[0]).all()
    assert kept == len(changed) or points < 100


@pytest.mark.parametrize(("rows", "points"), [(95, 2), (150, 2), (300, 1), (300, 2)])
def test_a_model_that_did_fall_further_is_kept_seldom(rows: int, points: int) -> None:
    """Data sets are drawn of a model whose true fall is just the limit; one in twenty may keep it."""
    chance, sets, kept = np.random.default_rng(0), 2_000, 0
    for _ in range(sets):
        before = chance.random(rows) < 0.85
        after = before & (chance.random(rows) >= points * POINT / 0.85)
        kept += reliably_within([table(before), table(after)], Classification(), points)
    assert kept <= 0.065 * sets


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_tested_by_right_answers_only_where_their_share_is_its_first_metric(name: str) -> None:
    run = run_of(name)
    task, samples = run._checkpoint.task, deciding(run)
    scored = score(run._checkpoint.model, task, samples)
    is_share = scored.correct is not None and scored.figures[first_metric(scored.figures)] == scored.correct.mean()
    assert is_share_right(task.name) == is_share == (name not in ("regression", "token_classification"))


@pytest.mark.parametrize(
    ("points", "told"),
    [
        (
            2,
            "confirming rows cannot show so small a fall, even where no answer changes, so the untouched model will be kept;",
        ),
        (0, "kept; allow more points"),
        (60, None),
    ],
)
def test_rows_that_can_show_no_model_are_told_before_the_pass(points: float, told: str | None) -> None:
    notes = run_of("classification", within_points=points).notes
    assert (told is None and notes == []) or (told is not None and told in notes[0])
    assert run_of("regression", within_points=points).notes == [], (
        "an interval is asked, which rests on no number of rows"
    )


def test_only_a_trade_within_points_keeps_to_one_process() -> None:
    assert PassConfig(tolerance=0.1).one_process is None
    assert PassConfig(within_points=1, confirm=0.3).one_process is None
    assert PassConfig(tolerance=0.1, within_points=1, confirm=0.3).one_process == "tolerance and within_points"
