"""Safeguards let chance through as seldom as they say, change nothing where they are off, and only ever refuse."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.config import PassConfig, Safeguard, make_config
from axformer.data.reading import rows_of
from axformer.errors import ConfigError
from axformer.evaluation.plain import PlainEvaluator
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.methods.axformer.algorithm import plan_of, search
from axformer.methods.axformer.progress import most_trials
from axformer.methods.axformer.safeguards import (
    chance_of_signs,
    folds_of,
    is_gain_on_each,
    lower_bound,
    safeguard_of,
    was_refused,
)
from axformer.plan.elements import Dimensions, parse
from axformer.plan.trial import Trial, Verdict
from axformer.run import PruningRun
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer

DIMENSIONS = Dimensions(layers=3, heads=4, hidden_size=32, intermediate_size=48)
CHECKPOINT = from_memory(tiny_model(), tiny_tokenizer())
ROWS = rows_of(tiny_rows(30, pairs=True))
LOOSE = {"majority_fraction": 0.2, "neuron_group_size": 12, "attention_top_k": 3}
GUARDED: list[dict[str, object]] = [
    {"safeguard": "sign_test", "safeguard_alpha": 0.4},
    {"safeguard": "paired", "safeguard_alpha": 0.49, "helped_reference": "original"},
    {"safeguard": "folds", "safeguard_folds": 3, "seed": 2},
    {"safeguard": "folds", "safeguard_folds": 2, "helped_reference": "original", "ties_help": True},
]
configs = st.sampled_from([make_config("paper", LOOSE | knobs) for knobs in GUARDED])


def run_of(config: PassConfig) -> PruningRun:
    return PruningRun(CHECKPOINT, prepare(ROWS, CHECKPOINT, config), None, config)


def plain_of(config: PassConfig) -> PlainEvaluator:
    samples = prepare(ROWS, CHECKPOINT, config).samples
    return PlainEvaluator(CHECKPOINT.model, CHECKPOINT.architecture, CHECKPOINT.task, samples)


def timeless(trials: list[Trial]) -> list[Trial]:
    return [trial.model_copy(update={"seconds": 0.0}) for trial in trials]


@given(st.integers(1, 400), st.floats(1e-6, 0.4))
@settings(deadline=None)
def test_a_toss_of_coins_passes_the_sign_test_no_oftener_than_alpha(samples: int, alpha: float) -> None:
    chances = [math.comb(samples, helped) / 2**samples for helped in range(samples + 1)]
    passing = [helped for helped in range(samples + 1) if chance_of_signs(helped, samples - helped) <= alpha]
    assert sum(chances[helped] for helped in passing) <= alpha * (1 + 1e-9)
    if passing and passing[0] > 0:
        assert sum(chances[passing[0] - 1 :]) > alpha * (1 - 1e-9), "one sample less would not have been too many"
    assert passing == list(range(samples + 1))[samples + 1 - len(passing) :]


@pytest.mark.parametrize("name", [Safeguard.SIGN_TEST, Safeguard.PAIRED])
def test_by_chance_alone_a_pass_accepts_anything_as_seldom_as_alpha_says(name: Safeguard) -> None:
    alpha, passes, samples = 0.2, 400, 100
    config = make_config("paper", {"safeguard": name, "safeguard_alpha": alpha, "neuron_group_size": 24})
    is_safe, trials = safeguard_of(config, DIMENSIONS, samples), most_trials(DIMENSIONS, config)
    assert is_safe is not None
    chance = torch.Generator().manual_seed(0)
    found = sum(
        any(is_safe(gains) for gains in torch.randn(trials, samples, generator=chance, dtype=torch.float64))
        for _ in range(passes)
    )
    assert 0 < found <= passes * alpha + 3 * math.sqrt(passes * alpha * (1 - alpha))


@given(st.integers(2, 60), st.floats(0.001, 0.49), st.integers(0, 100))
def test_the_lower_bound_lies_below_the_mean_and_further_for_less_alpha(count: int, alpha: float, seed: int) -> None:
    gains = torch.randn(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert lower_bound(gains, alpha / 2) < lower_bound(gains, alpha) < gains.mean()
    assert lower_bound(gains + 3, alpha) == pytest.approx(lower_bound(gains, alpha) + 3)


def test_what_is_known_of_one_sample_or_of_none_that_changed_is_nothing() -> None:
    assert lower_bound(torch.tensor([5.0]), 0.1) == -math.inf
    assert chance_of_signs(0, 0) == 1.0
    unchanged = torch.zeros(20, dtype=torch.float64)
    for knobs in GUARDED:
        is_safe = safeguard_of(make_config("paper", knobs), DIMENSIONS, len(unchanged))
        assert is_safe is not None
        assert not is_safe(unchanged)


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


@pytest.mark.parametrize(
    "knobs", [{}, {"inspect_layers_first": True}, {"neuron_search": "bisect"}, {"order": "random"}]
)
def test_a_pass_that_refines_all_makes_the_most_trials(knobs: dict[str, object]) -> None:
    config = make_config("paper", {"refine_margin": 100.0, "majority_fraction": 0.99, "neuron_group_size": 10, **knobs})
    run = run_of(config)
    assert len(list(run.trials())) - 1 == most_trials(run.dimensions, config)


@given(configs, st.floats(0, 1))
@settings(deadline=None, max_examples=6)
def test_resumed_equals_undisturbed(config: PassConfig, share: float) -> None:
    whole = list(run_of(config).trials())
    cut = round(share * len(whole))
    assert timeless(list(run_of(config).trials(replay=whole[:cut]))) == timeless(whole)


@pytest.mark.parametrize("knobs", GUARDED)
@pytest.mark.parametrize("precision", ["float32", "guarded"])
def test_what_is_stopped_early_or_screened_is_decided_as_when_measured_to_the_end(
    knobs: dict[str, object], precision: str
) -> None:
    config = make_config("paper", LOOSE | knobs)
    early = list(run_of(config.model_copy(update={"precision": precision})).trials())
    full = list(run_of(config.model_copy(update={"early_decision": False})).trials())
    assert [(trial.element, trial.verdict) for trial in early] == [(trial.element, trial.verdict) for trial in full]


@pytest.mark.parametrize("knobs", GUARDED)
def test_a_safeguard_refuses_what_has_no_gain_to_show_and_nothing_else(knobs: dict[str, object]) -> None:
    config = make_config("paper", LOOSE | knobs)
    run = run_of(config)
    is_safe = safeguard_of(config, run.dimensions, len(ROWS))
    assert is_safe is not None
    plain = plain_of(config)
    trials = list(search(plain, run.dimensions, config, parameters_left=lambda _: 0))
    accepted = [place for place, trial in enumerate(trials) if trial.verdict is Verdict.ACCEPT]
    plans = [plan_of(trials[:place], run.dimensions, config) for place in (0, *(place + 1 for place in accepted))]
    losses = [plain.losses(plan).double() for plan in plans]
    assert all(is_safe(before - after) for before, after in itertools.pairwise(losses))
    off = config.model_copy(update={"safeguard": Safeguard.NONE})
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
    for config in (make_config("paper", LOOSE | knobs) for knobs in GUARDED):
        run, plain = run_of(config), plain_of(config)
        is_safe = safeguard_of(config, run.dimensions, len(ROWS))
        assert is_safe is not None
        trials = list(run.trials())
        for place, trial in enumerate(trials):
            if was_refused(trial, config):
                assert trial.element is not None
                before = plan_of(trials[:place], run.dimensions, config)
                after = before.apply(parse(trial.element), top_k=config.attention_top_k)
                assert not is_safe(plain.losses(before).double() - plain.losses(after).double())
                accepted = trial.model_copy(update={"verdict": Verdict.ACCEPT})
                assert not was_refused(accepted, config)
                assert not was_refused(trial, config.model_copy(update={"safeguard": Safeguard.NONE}))
                told += 1
    assert told, "these passes are meant to refuse something"


def test_some_of_them_accept_and_some_refuse_here() -> None:
    named = {"none": {"safeguard": "none"}} | {str(knobs["safeguard"]): knobs for knobs in GUARDED[:3]}
    accepted = {}
    for name, knobs in named.items():
        trials = run_of(make_config("paper", LOOSE | knobs)).trials()
        accepted[name] = sum(trial.verdict is Verdict.ACCEPT for trial in trials)
    assert max(accepted[name] for name in named if name != "none") > 0
    assert accepted["none"] > min(accepted.values())


def test_none_leaves_every_verdict_as_it_is() -> None:
    knobs = LOOSE | {"safeguard": "none", "safeguard_alpha": 0.01, "safeguard_folds": 7}
    assert timeless(list(run_of(make_config("paper", knobs)).trials())) == timeless(
        list(run_of(make_config("paper", LOOSE)).trials())
    )
    assert make_config("paper").safeguard is make_config("published").safeguard is Safeguard.NONE


def test_more_folds_than_samples_are_refused() -> None:
    config = make_config("paper", {"safeguard": "folds", "safeguard_folds": 31})
    run = run_of(config)
    plain = plain_of(config)
    with pytest.raises(ConfigError, match="safeguard_folds=31 is more than the 30 validation samples"):
        next(search(plain, run.dimensions, config, parameters_left=lambda _: 0))


def test_a_safeguard_and_a_budget_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match="safeguard=paired accepts gains only"):
        make_config("paper", {"safeguard": "paired", "loss_budget": 1.1})
