"""Laws of passes whose repaired removals are accepted by the test of non-inferiority."""

import pytest

from axformer.config import PassConfig, make_config
from axformer.data.reading import rows_of
from axformer.errors import ConfigError
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.methods.axformer.acceptance import shown_not_fewer
from axformer.model.compact import compact
from axformer.plan.path import points_of
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.repair.local import LocalFits
from axformer.repair.refit import apply_refit
from axformer.run import PruningRun
from axformer.scores.measured import measure
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer

CHECKPOINT = from_memory(tiny_model(), tiny_tokenizer())
ROWS = rows_of(tiny_rows(40, pairs=True))
KNOBS = {"refit": True, "non_inferiority": 0.3, "neuron_group_size": 9, "attention_top_k": 3}
ROUNDING = 1e-6


def config_with(**knobs: object) -> PassConfig:
    config = make_config("paper", {**KNOBS, **knobs})
    assert isinstance(config, PassConfig)
    return config


def trials_of(config: PassConfig) -> list[Trial]:
    return list(PruningRun(CHECKPOINT, prepare(ROWS, CHECKPOINT, config), None, config).trials())


@pytest.mark.parametrize("safeguard", ["none", "folds"])
def test_an_early_verdict_is_the_verdict(safeguard: str) -> None:
    knobs = {"safeguard": safeguard, "safeguard_folds": 2, "batch_tokens": 60}
    early = trials_of(config_with(**knobs))
    late = trials_of(config_with(early_decision=False, **knobs))
    assert any(trial.loss_is_bound for trial in early)
    assert [(trial.element, trial.verdict) for trial in early] == [(trial.element, trial.verdict) for trial in late]


def test_an_accepted_removal_is_not_inferior_to_the_untouched_model() -> None:
    config = config_with(tolerance=None)
    trials, samples = trials_of(config), prepare(ROWS, CHECKPOINT, config).samples
    model, architecture, task = CHECKPOINT.model, CHECKPOINT.architecture, CHECKPOINT.task
    fits = LocalFits(model, architecture, samples)
    untouched = measure(model, task, samples).losses
    accepted = [
        trial for trial in trials if trial.verdict is Verdict.ACCEPT and trial.phase is not Phase.HARD_ATTENTION
    ]
    bound = shown_not_fewer(len(samples), 0.3)
    assert any(trial.helped is not None and trial.helped <= trial.total / 2 for trial in accepted), (
        "a majority would do"
    )
    plans = {
        point.seq: point.plan
        for point in points_of(trials, CHECKPOINT.dimensions, config.attention_kept, keeps_bias=True)
    }
    for trial in accepted:
        small = compact(model, architecture, plans[trial.seq])
        apply_refit(small, architecture, plans[trial.seq], fits.of(plans[trial.seq]))
        change = measure(small, task, samples).losses - untouched
        assert trial.loss < trial.min_loss
        assert trial.helped is not None
        assert bound < trial.helped
        assert (change < -ROUNDING).sum() <= trial.helped <= (change < ROUNDING).sum()


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"refit": False}, "non_inferiority=0.3 is a rule for removals that are repaired; give refit=true too"),
        (
            {"majority_fraction": 0.4},
            "takes the place of the majority, so majority_fraction=0.4 would not be looked at",
        ),
        ({"non_inferiority": 0.5}, "knob non_inferiority=0.5: input should be less than 0.5"),
    ],
)
def test_knobs_that_do_not_go_together_are_refused(knobs: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config_with(**knobs)
