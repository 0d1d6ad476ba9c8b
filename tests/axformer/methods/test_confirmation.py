"""Rows that the pass does not look at choose between the models on its path, and change nothing else."""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.config import PassConfig, make_config
from axformer.data.reading import rows_of
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.intake.parts import split_off
from axformer.methods.confirmation import CONFIRMING, Choosing, MeasuredPath, kept_of, measure_path, note_of
from axformer.opening import Inputs
from axformer.plan.path import Point, points_of
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.run import PruningRun
from axformer.scores.certificate import certify
from axformer.scores.task_tests import paired_test
from axformer.tasks.classification import Classification
from tests.plain import PlainEvaluator
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer

CHECKPOINT = from_memory(tiny_model(), tiny_tokenizer())
ROWS = rows_of(tiny_rows(60, pairs=True))
TEST = rows_of(tiny_rows(20, pairs=True, seed=3))
KNOBS = {"majority_fraction": 0.2, "neuron_group_size": 12, "attention_top_k": 3, "confirm": 0.4}
CONFIGS = {
    "paper": make_config("paper", KNOBS),
    "another seed": make_config("paper", KNOBS | {"seed": 3}),
    "trade": make_config("paper", KNOBS | {"tolerance": 0.1}),
    "points": make_config("paper", KNOBS | {"tolerance": 0.3, "within_points": 5}),
    "folds": make_config("paper", KNOBS | {"safeguard": 2}),
}
ROUNDING = 1e-4
"""Relative; the pass computes parts of what a whole forward computes."""


def run_of(config: PassConfig) -> PruningRun:
    held_out = prepare(TEST, CHECKPOINT, config)
    return PruningRun(Inputs(CHECKPOINT, prepare(ROWS, CHECKPOINT, config), held_out), config)


@cache
def finished(name: str) -> PruningRun:
    """A run to its end, which tests only read."""
    run = run_of(CONFIGS[name])
    list(run.trials())
    return run


def timeless(trials: Sequence[Trial]) -> list[Trial]:
    return [trial.model_copy(update={"seconds": 0.0}) for trial in trials]


def outcome_of(run: PruningRun) -> tuple[list[Trial], Plan, MeasuredPath | None]:
    """Everything that a finished run says, without its times."""
    return timeless(run.trace), run.plan, run.decisions.measured


@given(st.lists(st.sampled_from([1.0, 2.0, 3.0, math.inf, math.nan]), max_size=12))
def test_the_smallest_of_the_best_is_kept(later: list[float]) -> None:
    means = [2.0, *later]
    kept = kept_of([np.full(3, mean) for mean in means], PassConfig())
    assert not any(mean < means[kept] for mean in means)
    assert not any(mean == means[kept] for mean in means[kept + 1 :])


@given(st.lists(st.sampled_from([1.0, 2.9, 3.1, math.inf, math.nan]), max_size=12))
def test_within_a_limit_the_last_before_the_first_above_it_is_kept(later: list[float]) -> None:
    """Losses without any spread are known as they are; the limit here is 3."""
    kept = kept_of([np.full(3, mean) for mean in (2.0, *later)], PassConfig(tolerance=0.5))
    assert all(mean < 3.0 for mean in later[:kept])
    assert kept == len(later) or not later[kept] < 3.0


@pytest.mark.parametrize("rows", [95, 300])
def test_a_model_whose_true_loss_is_above_the_limit_is_kept_seldom(rows: int) -> None:
    """The loss of each model on a path is 0.2 % above that before, and each sample's wanders. Of thirty models ten are within
    2 %; by chance later ones look so."""
    chance, limit, step, paths, above = np.random.default_rng(0), 1.02, 0.002, 400, 0
    for _ in range(paths):
        untouched = chance.exponential(1.0, rows)
        wandering = chance.normal(0.0, 0.12, (30, rows)).cumsum(axis=0)
        path = [untouched, *(untouched * (1 + step * (1 + place)) + wandering[place] for place in range(30))]
        above += 1 + step * kept_of(path, PassConfig(tolerance=limit - 1)) > limit + 1e-9
    assert above <= 0.065 * paths


def test_without_it_the_end_of_the_pass_is_kept() -> None:
    run = run_of(make_config("paper", KNOBS | {"confirm": 0.0}))
    trials = list(run.trials())
    assert run.plan == points_of(trials, run.dimensions, run.config.attention_kept)[-1].plan
    assert run.closing_note is None
    assert make_config("paper").confirm == make_config("published").confirm == 0.0


def test_the_robust_preset_is_the_papers_rule_with_folds() -> None:
    assert make_config("robust") == make_config("paper", {"safeguard": 5})


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_the_pass_is_one_over_the_rows_that_decide(name: str) -> None:
    config = CONFIGS[name]
    deciding, _ = split_off(prepare(ROWS, CHECKPOINT, config), CHECKPOINT, config)
    alone = PruningRun(Inputs(CHECKPOINT, deciding), config.model_copy(update={"confirm": 0.0}))
    assert timeless(finished(name).trace) == timeless(list(alone.trials()))


@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "points"])
def test_every_point_is_measured_and_the_best_is_kept(name: str) -> None:
    config, run = CONFIGS[name], finished(name)
    trace = run.trace
    _, confirming = split_off(prepare(ROWS, CHECKPOINT, config), CHECKPOINT, config)
    assert confirming is not None
    measured = PlainEvaluator(CHECKPOINT.model, CHECKPOINT.architecture, CHECKPOINT.task, confirming.samples)
    points = points_of(trace, run.dimensions, config.attention_kept)
    losses = [measured.losses(point.plan).double().numpy() for point in points]
    confirmed = run.decisions.measured
    means = [one.mean() for one in losses]
    assert [one[CONFIRMING]["loss"] for one in confirmed.figures] == pytest.approx(means, rel=ROUNDING)
    assert run.plan == points[kept_of(losses, config)].plan


def test_a_trade_is_measured_on_held_out_data_and_kept_to_its_end() -> None:
    trade = make_config("paper", KNOBS | {"tolerance": 0.1, "confirm": 0.0})
    run = run_of(trade)
    trace = list(run.trials())
    held_out = prepare(TEST, CHECKPOINT, trade).samples
    plain = PlainEvaluator(CHECKPOINT.model, CHECKPOINT.architecture, CHECKPOINT.task, held_out)
    points = points_of(trace, run.dimensions, trade.attention_kept)
    losses = [plain.losses(point.plan).double().mean().item() for point in points]
    measured = run.decisions.measured
    assert [one["test"]["loss"] for one in measured.figures] == pytest.approx(losses, rel=ROUNDING)
    assert measured.kept == len(points) - 1
    assert run.plan == points[-1].plan
    assert run.closing_note is None
    for unasked in (
        run_of(make_config("paper", KNOBS | {"confirm": 0.0})),
        PruningRun(Inputs(CHECKPOINT, prepare(ROWS, CHECKPOINT, trade)), trade),
    ):
        list(unasked.trials())
        assert unasked.decisions.measured is None


@pytest.mark.parametrize(
    ("kept", "points", "told"),
    [
        (
            0,
            None,
            "none of the 2 acceptances is kept: on the rows that did not decide the loss is 0.5000 untouched and 0.3000",
        ),
        (
            1,
            None,
            "1 of 2 acceptances are kept, up to trial 4: on the rows that did not decide the loss is 0.4000 there, 0.5",
        ),
        (
            1,
            2.0,
            "the exact match is 0.7000 there, 0.8000 untouched and 0.6000 at the end of the pass; the exact match of",
        ),
        (
            2,
            2.0,
            "2 of 2 acceptances are kept, up to trial 8: on the rows that did not decide the exact match is 0.6000 there",
        ),
    ],
)
def test_the_choice_is_told_by_what_it_went_by(kept: int, points: float | None, told: str) -> None:
    losses, metrics = (0.5, 0.4, 0.3), (0.8, 0.7, 0.6)
    figures = [{CONFIRMING: {"loss": one, "exact_match": other}} for one, other in zip(losses, metrics, strict=True)]
    path = [Point(seq, None, 0.0, Plan.full(CHECKPOINT.dimensions)) for seq in (0, 4, 8)]
    note = note_of(MeasuredPath(path, figures, kept), PassConfig(within_points=points))
    assert note is not None
    assert told in note
    assert ("allow more, or confirm by more rows" in note) == (points is not None and kept < 2)


def test_where_all_passed_no_model_is_said_to_have_failed() -> None:
    """The last model of a path need not be the cheapest: with ``cost=latency``, say, it may have more operations."""
    answers = np.ones((500, 3))
    kept, certificate = certify([answers] * 3, paired_test(answers, Classification(), 2.0), 2.0, [0, 4, 8], [10, 6, 7])
    figures = [{CONFIRMING: {"loss": 0.5, "accuracy": 1.0}}] * 3
    path = [Point(seq, None, 0.0, Plan.full(CHECKPOINT.dimensions)) for seq in (0, 4, 8)]
    note = note_of(MeasuredPath(path, figures, kept, certificate), PassConfig(within_points=2.0))
    assert (kept, certificate.passed) == (1, 2)
    assert str(note).endswith("1.0000 at the end of the pass")


def test_within_points_the_cheapest_that_is_certified_is_kept() -> None:
    config = make_config("paper", KNOBS | {"tolerance": 0.5, "within_points": 40})
    run = run_of(config)
    list(run.trials())
    measured = run.decisions.measured
    told = run.decisions.certificate
    assert told is not None
    assert told == measured.certificate
    assert (told.kept, told.rows, told.points, told.order) == (measured.point.seq, 24, 40, "path")
    assert told.kept > 0, "the rows here can show so much"
    _, confirming = split_off(prepare(ROWS, CHECKPOINT, config), CHECKPOINT, config)
    assert confirming is not None
    sets = {CONFIRMING: confirming}
    assert measure_path(CHECKPOINT, measured.points, sets, config).certificate == told
    assert measure_path(CHECKPOINT, measured.points, sets, config, choosing=Choosing(chooses=False)).certificate is None


def test_here_some_passes_are_kept_to_the_end_and_some_are_cut_short() -> None:
    kept = {}
    for seed in range(6):
        run = run_of(make_config("paper", KNOBS | {"seed": seed}))
        list(run.trials())
        confirmed = run.decisions.measured
        kept[seed] = (confirmed.kept, len(confirmed.points) - 1)
    assert any(place < last for place, last in kept.values())
    assert any(place > 0 for place, _ in kept.values())


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_resumed_equals_undisturbed(name: str, share: float) -> None:
    whole = finished(name)
    trials = whole.trace
    resumed = run_of(CONFIGS[name])
    list(resumed.trials(replay=trials[: round(share * len(trials))]))
    assert outcome_of(resumed) == outcome_of(whole)
    assert resumed.closing_note == whole.closing_note
