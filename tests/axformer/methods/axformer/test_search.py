"""The laws of the pass: it can be stopped anywhere and resumed, its plan is a function of its trace, and it is greedy."""

import itertools
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.config import PassConfig, config_of, make_config
from axformer.data.reading import rows_of
from axformer.errors import CheckpointError, PlanError
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.methods.axformer.algorithm import search
from axformer.methods.axformer.progress import PassMeter
from axformer.methods.base import plan_of
from axformer.methods.targets import Targets
from axformer.model.operations import Operations
from axformer.model.parameters import ParameterCount
from axformer.opening import Inputs
from axformer.plan.elements import parse
from axformer.plan.plan import Plan
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.run import PruningRun
from tests.plain import PlainEvaluator
from tests.runs import progress_of
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer

CHECKPOINT = from_memory(tiny_model(), tiny_tokenizer())
ROWS = rows_of(tiny_rows(30, pairs=True))
KNOBS: list[dict[str, object]] = [
    {},
    {"helped_reference": "original", "ties_help": True, "attention_top_k": 3},
    {"inspect_layers_first": True, "majority_fraction": 0.3},
    {"order": "random", "seed": 4, "coarse_margin": 0.99, "refine_margin": 2.0, "majority_fraction": 0.2},
    {"attention_top_k": None, "neuron_group_size": 20, "order": "bottom-top-middle"},
    {"neuron_search": "bisect", "neuron_group_size": 8, "refine_margin": 1.01, "majority_fraction": 0.3},
    {"helped_reference": "original", "majority_fraction": 0.0, "coarse_margin": 0.95},
    {"target_size": 0.9, "majority_fraction": 0.3},
    {"target_speedup": 1.3, "tolerance": 0.2, "majority_fraction": 0.3, "neuron_search": "bisect"},
    {"target_size": 0.8, "target_speedup": 1.1, "tolerance": 0.5, "majority_fraction": 0.1},
    {"tolerance": 0.1, "attention_top_k": 3},
    {"tolerance": 0.02, "neuron_search": "bisect", "majority_fraction": 0.3, "helped_reference": "original"},
    {"tolerance": 0.3, "inspect_layers_first": True, "target_size": 0.7, "safeguard": 2},
]
configs = st.sampled_from([config_of(knobs, has_variant=True) for knobs in KNOBS])


def run_of(config: PassConfig) -> PruningRun:
    return PruningRun(Inputs(CHECKPOINT, prepare(ROWS, CHECKPOINT, config)), config)


@cache
def finished(config: PassConfig) -> PruningRun:
    """A pass from its first trial to its last."""
    run = run_of(config)
    list(run.trials())
    return run


def trials_of(config: PassConfig) -> list[Trial]:
    return list(finished(config).trace)


def targets_of(run: PruningRun) -> Targets:
    model, architecture = CHECKPOINT.model, CHECKPOINT.architecture
    lengths = prepare(ROWS, CHECKPOINT, run.config).samples.lengths
    operations = Operations(model, architecture, pooled=True, lengths=lengths)
    parameters = ParameterCount(model, architecture)
    full = Plan.full(run.dimensions)
    return Targets(run.config, full, parameters.left, operations.left, parameters.encoder, operations.encoder)


def timeless(trials: Sequence[Trial]) -> list[Trial]:
    """Trials without their one field that a clock decides."""
    return [trial.model_copy(update={"seconds": 0.0}) for trial in trials]


@pytest.mark.slow
@given(configs, st.floats(0, 1))
@settings(deadline=None, max_examples=25)
def test_resumed_equals_undisturbed(config: PassConfig, share: float) -> None:
    whole = trials_of(config)
    cut = round(share * len(whole))
    resumed = run_of(config)
    trials = list(resumed.trials(replay=whole[:cut]))
    assert timeless(trials) == timeless(whole)
    assert trials[:cut] == whole[:cut]
    assert all(before.seconds <= after.seconds for before, after in itertools.pairwise(trials))


@given(configs)
@settings(deadline=None, max_examples=10)
def test_the_fast_evaluator_decides_as_the_plain_one(config: PassConfig) -> None:
    run = finished(config)
    samples = prepare(ROWS, CHECKPOINT, config).samples
    plain = PlainEvaluator(CHECKPOINT.model, CHECKPOINT.architecture, CHECKPOINT.task, samples)
    is_enough = targets_of(run).is_reached
    slow = list(search(plain, run.dimensions, config, parameters_left=lambda _: 0, is_enough=is_enough))
    fast = run.trace
    assert [(trial.element, trial.verdict) for trial in fast] == [(trial.element, trial.verdict) for trial in slow]
    pairs = [
        (one, other) for one, other in zip(fast, slow, strict=True) if not (one.loss_is_bound or other.loss_is_bound)
    ]
    assert [one.loss for one, _ in pairs] == pytest.approx([other.loss for _, other in pairs], rel=1e-5)


@given(configs)
@settings(deadline=None, max_examples=10)
def test_a_pass_is_greedy(config: PassConfig) -> None:
    trials = trials_of(config)
    assert [trial.seq for trial in trials] == list(range(len(trials)))
    least = base = trials[0].loss
    for trial in trials[1:]:
        is_trade = trial.phase is Phase.TRADE
        limit = config.loss_limit if is_trade else None
        line = least if limit is None else limit * base
        assert trial.min_loss == least
        assert trial.helped is not None
        if trial.verdict is Verdict.ACCEPT:
            assert trial.loss < line
            assert is_trade or trial.helped > config.majority_fraction * trial.total
            least = min(least, trial.loss)
        elif trial.verdict is Verdict.REFINE:
            assert trial.loss < config.refine_margin * line


@given(configs)
@settings(deadline=None, max_examples=10)
def test_parts_are_tried_right_after_a_refined_block_and_never_elsewhere(config: PassConfig) -> None:
    refined: set[str] = set()
    for trial in trials_of(config):
        if trial.phase in (Phase.HEAD, Phase.NEURONS):
            assert trial.element is not None
            assert (
                trial.element.rpartition(".head.")[0] in refined or trial.element.rpartition(".neurons.")[0] in refined
            )
        if trial.verdict is Verdict.REFINE:
            assert trial.element is not None
            refined.add(trial.element)


@given(configs)
@settings(deadline=None, max_examples=5)
def test_the_accepted_parameters_are_what_the_model_loses(config: PassConfig) -> None:
    run, trials = finished(config), trials_of(config)
    removed = sum(trial.parameters for trial in trials if trial.verdict is Verdict.ACCEPT)
    left = sum(part.numel() for part in run.compact_model().parameters())
    assert left == sum(part.numel() for part in CHECKPOINT.model.parameters()) - removed


@given(configs)
@settings(deadline=None, max_examples=5)
def test_progress_reaches_what_is_known(config: PassConfig) -> None:
    run, trials = finished(config), trials_of(config)
    known = [progress_of(trials[:count], run.dimensions, config).known for count in range(1, len(trials) + 1)]
    assert known == sorted(known) or config.tolerance is not None
    assert known[-1] == len(trials) or targets_of(run).is_reached(run.plan)
    ended = progress_of(trials, run.dimensions, config, ended=True)
    assert (ended.known, ended.done, ended.seconds_left) == (len(trials), len(trials), 0)
    assert len(trials) <= PassMeter(run.dimensions, config).longest


@pytest.mark.parametrize(
    "knobs", [{}, {"inspect_layers_first": True}, {"neuron_search": "bisect"}, {"order": "random"}]
)
def test_a_pass_that_refines_all_makes_the_longest_trace(knobs: dict[str, object]) -> None:
    usual = {"refine_margin": 100.0, "majority_fraction": 0.99, "neuron_group_size": 10, "attention_top_k": 3}
    config = config_of(usual | knobs, has_variant=True)
    assert len(trials_of(config)) == PassMeter(finished(config).dimensions, config).longest


@pytest.mark.parametrize(
    "goal", [{"target_size": 0.85}, {"target_speedup": 1.2}, {"target_size": 0.9, "target_speedup": 1.3}]
)
def test_a_pass_is_the_one_without_targets_up_to_where_they_are_reached(goal: dict[str, float]) -> None:
    config = make_config("paper", {"majority_fraction": 0.3, "tolerance": 0.2, **goal})
    run = finished(config)
    trials, targets = trials_of(config), targets_of(run)
    whole = trials_of(config.model_copy(update=dict.fromkeys(goal)))
    assert timeless(trials) == timeless(whole[: len(trials)])
    assert len(trials) < len(whole)
    reached = [targets.is_reached(plan_of(trials[:count], run.dimensions, config)) for count in range(len(trials) + 1)]
    assert reached == [False] * len(trials) + [True]
    assert run.closing_note is not None
    assert "the target was reached" in run.closing_note
    assert "of the encoder's), and" in run.closing_note


def test_a_target_that_is_out_of_reach_changes_nothing_but_is_told() -> None:
    run, plain = finished(make_config("paper", {"target_size": 0.01})), finished(PassConfig())
    assert timeless(run.trace) == timeless(plain.trace)
    assert run.closing_note is not None
    assert "the target was not reached" in run.closing_note
    assert plain.closing_note is None


@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.5])
def test_a_trade_comes_after_the_gains_and_stays_within_its_tolerance(tolerance: float) -> None:
    knobs: dict[str, object] = {"majority_fraction": 0.4, "attention_top_k": 3}
    trials = trials_of(make_config("paper", {**knobs, "tolerance": tolerance}))
    gains = trials_of(make_config("paper", knobs))
    assert timeless(trials[: len(gains)]) == timeless(gains)
    trades = trials[len(gains) :]
    assert {trial.phase for trial in trades} == {Phase.TRADE}
    accepted = [trial for trial in trades if trial.verdict is Verdict.ACCEPT]
    assert all(trial.loss < (1 + tolerance) * trials[0].loss for trial in accepted)
    assert all(trial.parameters > 0 for trial in trades), "what is gone is not tried again"
    if tolerance > 0.1:
        assert any(trial.loss > trial.min_loss for trial in accepted), "a tolerance that is never used proves little"
        assert any(trial.helped is not None and trial.helped <= 0.4 * trial.total for trial in accepted)


def test_a_stored_trace_of_another_pass_is_refused() -> None:
    trials = trials_of(PassConfig(attention_top_k=3))
    other = run_of(make_config("paper", {"attention_top_k": None}))
    with pytest.raises(PlanError, match=r"its trial 1 is layer\.0\.hard_attention, not layer\.2\.ffn"):
        list(other.trials(replay=trials))


def test_whole_layers_come_before_their_blocks() -> None:
    knobs = {"inspect_layers_first": True, "attention_top_k": None, "refine_margin": 50.0}
    config = config_of(knobs, has_variant=True)
    trials = list(run_of(config).trials())
    tops = [trial for trial in trials if trial.phase is Phase.LAYER]
    assert [trial.element for trial in tops] == ["layer.2", "layer.1", "layer.0"]
    kept = [parse(trial.element or "").layer for trial in tops if trial.verdict is Verdict.REFINE]
    blocks = [trial.element for trial in trials if trial.phase is Phase.BLOCK]
    assert blocks == [f"layer.{index}.{block}" for index in kept for block in ("ffn", "attention")]


def test_a_model_whose_loss_is_no_number_is_refused() -> None:
    broken = tiny_model()
    broken.classifier.bias.data[0] = float("nan")
    checkpoint = from_memory(broken, tiny_tokenizer())
    run = PruningRun(Inputs(checkpoint, prepare(ROWS, checkpoint, PassConfig())), PassConfig())
    with pytest.raises(CheckpointError, match="loss on the validation set is nan"):
        next(run.trials())
