"""A guarded pass decides as one in float32, and float32 has the last word over what is accepted."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.architectures.registry import ARCHITECTURES
from axformer.config import PassConfig, make_config
from axformer.data.reading import rows_of
from axformer.errors import ConfigError
from axformer.evaluation.build import evaluators
from axformer.evaluation.low_precision import PAYS_FROM, advice, gain_in_rate
from axformer.intake.dataset import prepare
from axformer.plan.elements import attention
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial, Verdict
from axformer.run import PruningRun
from tests.family_cases import Case, checkpoint_of
from tests.tiny_families import DIMENSIONS
from tests.tiny_models import tiny_rows

ROWS = rows_of(tiny_rows(40, labels=3, pairs=True))
KNOBS = {"batch_tokens": 240, "attention_top_k": 5, "neuron_group_size": 24}


def trials_of(family: str, knobs: dict[str, object], before: Sequence[Trial] = ()) -> list[Trial]:
    checkpoint = checkpoint_of(Case(family, "classification"))
    config = make_config("paper", KNOBS | knobs)
    return list(PruningRun(checkpoint, prepare(ROWS, checkpoint, config), None, config).trials(before))


PUBLISHED = {"helped_reference": "original", "ties_help": True}
BUDGET = {"majority_fraction": 0.2, "tolerance": 0.1, "target_size": 0.8}
TRADE = {"tolerance": 0.1}


@pytest.mark.parametrize(
    ("family", "knobs"),
    [
        *((family, {"majority_fraction": 0.3}) for family in sorted(ARCHITECTURES)),
        ("bert", PUBLISHED),
        ("bert", BUDGET),
        ("bert", TRADE),
    ],
)
def test_guarded_decides_as_float32(family: str, knobs: dict[str, object]) -> None:
    exact, guarded = trials_of(family, knobs), trials_of(family, knobs | {"precision": "guarded"})
    assert [(trial.element, trial.verdict) for trial in guarded] == [(trial.element, trial.verdict) for trial in exact]
    assert all(trial.precision == "float32" for trial in guarded if trial.verdict is Verdict.ACCEPT)
    assert {trial.precision for trial in guarded} == {"float32", "bfloat16"}


RESUMED = {"precision": "guarded", "majority_fraction": 0.3}


@pytest.fixture(scope="module")
def whole() -> list[Trial]:
    """The trials of a guarded pass that nothing stopped."""
    return trials_of("bert", RESUMED)


@given(st.integers(0, 40))
@settings(deadline=None, max_examples=8)
def test_a_guarded_pass_resumes_as_if_it_had_not_stopped(whole: list[Trial], stop: int) -> None:
    resumed = trials_of("bert", RESUMED, whole[:stop])
    timeless = [[trial.model_copy(update={"seconds": 0.0}) for trial in trials] for trials in (whole, resumed)]
    assert timeless[0] == timeless[1]


def test_the_guard_is_measured_on_the_model_and_the_data() -> None:
    checkpoint = checkpoint_of(Case("bert", "classification"))
    config = make_config("paper", KNOBS | {"precision": "guarded"})
    samples = prepare(ROWS, checkpoint, config).samples
    full = Plan.full(DIMENSIONS)
    with evaluators(checkpoint, samples, config, 1) as (exact, screen):
        assert screen is not None
        assert torch.equal(screen.losses(full), exact.losses(full)), "where nothing changes nothing is computed again"
        guard = screen.guard(full.apply(attention(0), top_k=5))
        assert 0 < guard.spreads.max() < 0.1


def test_who_asks_for_looks_where_they_save_no_time_is_told_so() -> None:
    told = advice(PAYS_FROM / 3, torch.bfloat16)
    assert told is not None
    assert "0.67 times as fast in bfloat16" in told
    assert advice(PAYS_FROM, torch.bfloat16) is None


@pytest.mark.parametrize("precision", ["float32", "guarded"])
def test_a_pass_in_float32_measures_no_looks(precision: str) -> None:
    checkpoint = checkpoint_of(Case("bert", "classification"))
    config = make_config("paper", KNOBS | {"precision": precision})
    notes = PruningRun(checkpoint, prepare(ROWS, checkpoint, config), None, config).notes
    assert gain_in_rate(torch.device("cpu")) > 0
    assert all("times as fast in bfloat16" in note for note in notes)
    assert precision == "guarded" or not notes


def test_int8_has_no_screen() -> None:
    checkpoint = checkpoint_of(Case("bert", "classification"))
    config = PassConfig(precision="guarded", evaluate_in="int8")
    with pytest.raises(ConfigError, match="not with int8"):
        PruningRun(checkpoint, prepare(ROWS, checkpoint, config), None, config)
