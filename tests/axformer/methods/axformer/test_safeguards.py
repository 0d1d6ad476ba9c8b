"""Safeguards let chance through as seldom as they say, change nothing where they are off, and only ever refuse."""

import itertools
from collections.abc import Iterable
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.config import PassConfig, config_of, make_config
from axformer.data.reading import rows_of
from axformer.errors import ConfigError
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.methods.axformer.acceptance import was_refused
from axformer.methods.axformer.algorithm import search
from axformer.methods.axformer.judge import (
    STABLE,
    Draws,
    folds_of,
    is_gain_on_each,
    safeguard_of,
)
from axformer.methods.base import plan_of
from axformer.opening import Inputs
from axformer.plan.elements import parse
from axformer.plan.path import points_of
from axformer.plan.trial import Trial, Verdict
from axformer.run import PruningRun
from axformer.scores.measured import Recording
from tests.plain import PlainEvaluator
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer

CHECKPOINT = from_memory(tiny_model(), tiny_tokenizer())
ROWS = rows_of(tiny_rows(30, pairs=True))
LOOSE = {"majority_fraction": 0.2, "neuron_group_size": 12, "attention_top_k": 3}
GUARDED: list[dict[str, object]] = [
    {"safeguard": 3, "seed": 2},
    {"safeguard": 10},
    {"safeguard": 2, "helped_reference": "original", "ties_help": True},
]
configs = st.sampled_from([config_of(LOOSE | knobs, has_variant=True) for knobs in GUARDED])


def run_of(config: PassConfig) -> PruningRun:
    return PruningRun(Inputs(CHECKPOINT, prepare(ROWS, CHECKPOINT, config)), config)


@cache
def trials_of(config: PassConfig) -> tuple[Trial, ...]:
    """Those of an undisturbed pass."""
    return tuple(run_of(config).trials())


def plain_of(config: PassConfig) -> PlainEvaluator:
    samples = prepare(ROWS, CHECKPOINT, config).samples
    return PlainEvaluator(CHECKPOINT.model, CHECKPOINT.architecture, CHECKPOINT.task, samples)


CONDITIONS: list[dict[str, object]] = [
    {"conditions": ("temperature",)},
    {"conditions": ("stable",)},
    {"conditions": ("metric",)},
    {"conditions": ("temperature", "stable", "metric"), "refine_margin": 100.0},
    {"conditions": ("temperature", "metric"), "tolerance": 0.2, "confirm": 0.3, "within_points": 20.0},
]


def timeless(trials: Iterable[Trial]) -> list[Trial]:
    return [trial.model_copy(update={"seconds": 0.0}) for trial in trials]


@given(st.integers(2, 100), st.data())
def test_folds_are_equal_parts_that_only_the_seed_decides(folds: int, data: st.DataObject) -> None:
    total = data.draw(st.integers(folds, 300))
    fold = folds_of(total, folds, seed=7)
    sizes = torch.bincount(fold)
    assert len(sizes) == folds
    assert sizes.max() - sizes.min() <= 1
    assert torch.equal(fold, folds_of(total, folds, seed=7))
    gains = torch.ones(total, dtype=torch.float64)
    assert is_gain_on_each(gains, fold)
    worst = data.draw(st.integers(0, folds - 1))
    assert not is_gain_on_each(torch.where(fold == worst, -0.1, 1.0).double(), fold)


@given(configs, st.floats(0, 1))
@settings(deadline=None, max_examples=6)
def test_resumed_equals_undisturbed(config: PassConfig, share: float) -> None:
    whole = trials_of(config)
    cut = round(share * len(whole))
    assert timeless(run_of(config).trials(replay=whole[:cut])) == timeless(whole)


@pytest.mark.parametrize("knobs", GUARDED)
def test_what_is_stopped_early_is_decided_as_when_measured_to_the_end(knobs: dict[str, object]) -> None:
    config = config_of(LOOSE | knobs, has_variant=True)
    early = trials_of(config)
    full = trials_of(config.model_copy(update={"early_decision": False}))
    assert [(trial.element, trial.verdict) for trial in early] == [(trial.element, trial.verdict) for trial in full]


@pytest.mark.parametrize("knobs", GUARDED)
def test_a_safeguard_refuses_what_has_no_gain_to_show_and_nothing_else(knobs: dict[str, object]) -> None:
    config = config_of(LOOSE | knobs, has_variant=True)
    run = run_of(config)
    is_safe = safeguard_of(config, prepare(ROWS, CHECKPOINT, config).samples)
    assert is_safe is not None
    plain = plain_of(config)
    trials = list(search(plain, run.dimensions, config, parameters_left=lambda _: 0))
    accepted = [place for place, trial in enumerate(trials) if trial.verdict is Verdict.ACCEPT]
    plans = [plan_of(trials[:place], run.dimensions, config) for place in (0, *(place + 1 for place in accepted))]
    losses = [plain.losses(plan).double() for plan in plans]
    assert all(is_safe(before - after) for before, after in itertools.pairwise(losses))
    off = config.model_copy(update={"safeguard": None})
    unguarded = list(search(plain_of(config), run.dimensions, off, parameters_left=lambda _: 0))
    refused = next(
        ((one, other) for one, other in zip(trials, unguarded, strict=False) if one.verdict is not other.verdict), None
    )
    if refused is None:
        assert timeless(trials) == timeless(unguarded)
    else:
        assert refused[1].verdict is Verdict.ACCEPT
        assert refused[0].verdict in (Verdict.REFINE, Verdict.REJECT)
        assert refused[0].loss == refused[1].loss


def test_the_trace_tells_what_a_safeguard_alone_refused() -> None:
    told = 0
    for config in (config_of(LOOSE | knobs, has_variant=True) for knobs in GUARDED):
        plain = plain_of(config)
        is_safe = safeguard_of(config, prepare(ROWS, CHECKPOINT, config).samples)
        assert is_safe is not None
        trials = trials_of(config)
        for place, trial in enumerate(trials):
            if was_refused(trial, config):
                assert trial.element is not None
                before = plan_of(trials[:place], CHECKPOINT.dimensions, config)
                after = before.apply(parse(trial.element), top_k=config.attention_top_k)
                assert not is_safe(plain.losses(before).double() - plain.losses(after).double())
                accepted = trial.model_copy(update={"verdict": Verdict.ACCEPT})
                assert not was_refused(accepted, config)
                assert not was_refused(trial, config.model_copy(update={"safeguard": None}))
                told += 1
    assert told, "these passes are meant to refuse something"


def test_some_folds_accept_and_more_refuse_here() -> None:
    few, many, none = (
        sum(trial.verdict is Verdict.ACCEPT for trial in trials_of(config_of(LOOSE | knobs, has_variant=True)))
        for knobs in (GUARDED[0], GUARDED[1], {"safeguard": None})
    )
    assert many < few <= none


def test_samples_that_did_not_change_are_no_gain() -> None:
    config = config_of(GUARDED[0], has_variant=True)
    is_safe = safeguard_of(config, prepare(ROWS, CHECKPOINT, config).samples)
    assert is_safe is not None
    assert not is_safe(torch.zeros(len(ROWS), dtype=torch.float64))


def test_the_paper_and_its_authors_have_none() -> None:
    assert make_config("paper").safeguard is make_config("published").safeguard is None


def test_more_folds_than_samples_are_refused() -> None:
    config = make_config("paper", {"safeguard": 31})
    run = run_of(config)
    plain = plain_of(config)
    with pytest.raises(ConfigError, match="safeguard=31 is more than the 30 different inputs"):
        next(search(plain, run.dimensions, config, parameters_left=lambda _: 0))


@pytest.mark.slow
@pytest.mark.parametrize("knobs", CONDITIONS, ids=lambda knobs: "-".join(knobs["conditions"]))
def test_a_pass_with_conditions_resumes_as_if_undisturbed(knobs: dict[str, object]) -> None:
    config = config_of(LOOSE | knobs)
    whole = trials_of(config)
    for cut in {1, 2, *range(3, len(whole), max(1, len(whole) // 8)), len(whole)}:
        assert timeless(run_of(config).trials(replay=whole[:cut])) == timeless(whole)


def test_nothing_that_is_accepted_lowers_the_metric() -> None:
    loose = LOOSE | {"majority_fraction": 0.0, "refine_margin": 100.0}
    config, without = (config_of(loose | {"conditions": given}) for given in (("metric",), ()))
    kept, free = (metrics_along(one) for one in (config, without))
    assert kept == sorted(kept)
    assert free != sorted(free), "this pass is meant to have something to refuse"


def metrics_along(config: PassConfig) -> list[float]:
    """The accuracy of the untouched model and of each acceptance."""
    recording = Recording(CHECKPOINT.task, prepare(ROWS, CHECKPOINT, config).samples)
    plain = PlainEvaluator(CHECKPOINT.model, CHECKPOINT.architecture, recording, plain_of(config).samples)
    plans = [point.plan for point in points_of(trials_of(config), CHECKPOINT.dimensions, config.attention_kept)]
    return [recording.measured(plain.losses(plan)).figures["accuracy"] for plan in plans]


@given(st.integers(0, 2**31), st.floats(-0.3, 0.3))
@settings(deadline=None, max_examples=30)
def test_what_draws_agree_on_gains_in_the_mean_and_not_by_a_few(seed: int, shift: float) -> None:
    samples = prepare(ROWS, CHECKPOINT, PassConfig()).samples
    draws = Draws(samples, seed)
    gains = shift + 0.3 * torch.randn(len(ROWS), generator=torch.Generator().manual_seed(seed)).double()
    share = draws.accepting(gains, (gains > 0).double(), 0.5)
    assert share == draws.accepting(gains, (gains > 0).double(), 0.5)
    assert share < STABLE or (gains.mean() > 0 and (gains > 0).double().mean() > 0.5)
    assert draws.accepting(gains.abs() + 0.1, torch.ones(len(ROWS)).double(), 0.5) == 1.0
    by_one = torch.full((len(ROWS),), -0.01).double()
    by_one[0] = 1.0  # the mean rises by a single row, which a third of the draws lacks
    assert draws.accepting(by_one, torch.ones(len(ROWS)).double(), 0.5) == pytest.approx(2 / 3, abs=0.07)


def test_a_trial_says_in_which_share_of_the_draws_it_is_accepted() -> None:
    trials = trials_of(config_of(LOOSE | {"conditions": ("stable",), "majority_fraction": 0.3, "refine_margin": 100.0}))
    asked = [trial for trial in trials if trial.frequency is not None]
    assert {trial.verdict is Verdict.ACCEPT for trial in asked} == {True, False}, "some are accepted, and some are not"
    assert all((trial.verdict is Verdict.ACCEPT) == (trial.frequency >= STABLE) for trial in asked)
    assert all(trial.frequency is not None for trial in trials if trial.verdict is Verdict.ACCEPT)
    assert all(trial.frequency is None for trial in trials_of(config_of(LOOSE)))
