"""Figures, agreement and counting on cases whose answer is known."""

import pytest
import torch
from torch.nn import functional

from axformer.plan.elements import Dimensions
from axformer.plan.trial import Phase, Trial, Verdict
from benchmarks.speed.agreement import compare
from benchmarks.speed.figures import Spread, ceiling, least_overhead, overhead, ratio, seconds
from benchmarks.speed.flops import count_flops
from benchmarks.speed.machine import layer_shapes, matmul_rate
from benchmarks.speed.operations import REST, by_kind, seconds_by_kind
from benchmarks.speed.record import Evaluation, Run, SetResult
from benchmarks.speed.steps import DYNAMIC, EARLY, PADDED
from benchmarks.speed.targets import outcomes
from tests.tiny_models import tiny_model


def trial(seq: int, loss: float = 1.0, verdict: Verdict = Verdict.REJECT, *, bound: bool = False) -> Trial:
    return Trial(
        seq=seq,
        phase=Phase.BLOCK,
        element=f"layer.{seq}.ffn",
        loss=loss,
        loss_is_bound=bound,
        helped=0,
        samples=1,
        total=1,
        min_loss=1.0,
        verdict=verdict,
        precision="float32",
        parameters=0,
        seconds=0.0,
    )


def run(step: str, **found: object) -> Run:
    return Run.model_validate(
        {"step": step, "loaded_bytes": 1, "peak_bytes": 2, "rates": {"float32": 100.0, "bfloat16": 1.0}, **found}
    )


def single(step: str, *taken: float) -> Run:
    return run(step, evaluations=[Evaluation(seq=1, loss=1.0, seconds=one) for one in taken])


RESULT = SetResult(
    name="cola",
    title="CoLA",
    rows=5,
    is_whole=True,
    tokens=50,
    trace=[trial(seq) for seq in range(10)],
    rounds=[
        [single(PADDED, 20.0), single(DYNAMIC, 1.0, 9.0, 2.0), run(EARLY, seconds=2.0)],
        [single(PADDED, 15.0), single(DYNAMIC, 2.0, 2.0, 2.0), run(EARLY, seconds=3.0)],
        [single(PADDED, 40.0), single(DYNAMIC, 3.0, 3.0, 3.0)],
    ],
    flops={EARLY: 250},
    agreements=[],
)


def test_single_trials_count_once_for_every_trial() -> None:
    assert seconds(RESULT, DYNAMIC) == Spread(20.0, 20.0, 30.0, 3)
    assert seconds(RESULT, EARLY) == Spread(2.5, 2.0, 3.0, 2)
    assert seconds(RESULT, "gone") is None


def test_ratios_are_of_one_round() -> None:
    assert ratio(RESULT, EARLY, PADDED) == Spread(75.0, 50.0, 100.0, 2)
    assert ratio(RESULT, DYNAMIC, DYNAMIC) == Spread(1.0, 1.0, 1.0, 3)


def test_overhead_is_time_over_what_the_operations_need() -> None:
    assert overhead(RESULT, EARLY, "float32") == Spread(1.0, 0.8, 1.2, 2)
    assert overhead(RESULT, PADDED, "float32") is None


def test_a_ceiling_is_what_the_rate_alone_would_allow() -> None:
    assert ceiling(RESULT, EARLY, "float32", PADDED) == Spread(70.0, 60.0, 80.0, 2)
    assert ceiling(RESULT, DYNAMIC, "float32", PADDED) is None


def test_in_low_precision_only_what_is_multiplied_is_faster() -> None:
    # Of 3 s the multiplications take 2.5, half of that at twice the rate; of 2 s they take all, though less than measured.
    twice = {"float32": 100.0, "bfloat16": 200.0}
    rounds = [[run.model_copy(update={"rates": twice}) for run in runs] for runs in RESULT.rounds]
    found = ceiling(RESULT.model_copy(update={"rounds": rounds}), EARLY, "bfloat16", PADDED)
    assert found is not None
    assert (found.least, found.most) == (pytest.approx(150 / 1.75), 200 / 1.25)


def test_the_least_overhead_is_that_of_the_kernels_alone() -> None:
    alone = run(EARLY, kinds={"multiplications": 3.0, REST: 0.5})
    assert least_overhead(alone, 250) == pytest.approx(1.4)
    found = {one.what: one for one in outcomes(RESULT, RESULT.model_copy(update={"alone": {EARLY: alone}}))}
    limit = found["early: seconds over operations / rate"]
    assert (limit.by_arithmetic, limit.by_kernels) == (Spread(1.0, 1.0, 1.0, 1), Spread(1.4, 1.4, 1.4, 1))
    ratio_limit = found["early over padded-128"]
    assert ratio_limit.by_arithmetic == Spread(70.0, 60.0, 80.0, 2)
    assert ratio_limit.by_kernels is not None
    assert ratio_limit.by_kernels.median == pytest.approx(50.0)


def test_kernels_are_told_by_kind() -> None:
    found = by_kind({"mkldnn::_linear_pointwise": 2.0, "aten::addmm": 1.0, "aten::bmm": 0.5, "aten::add": 0.25})
    assert (found["multiplications"], found["attention"], found[REST]) == (3.0, 0.5, 0.25)
    layer, rows = torch.nn.Linear(8, 8), torch.ones(8, 8)
    taken = seconds_by_kind(lambda: layer(rows))
    assert taken["multiplications"] > 0 == taken["attention"]


def test_targets_are_met_or_not() -> None:
    met = {one.what: one.is_met for one in outcomes(RESULT, None)}
    assert met == {
        "early over padded-128": True,
        "early over dynamic": True,
        "early: seconds over operations / rate": True,
    }


def test_agreement_counts_verdicts_and_compares_losses_measured_to_the_end() -> None:
    reference = [trial(0, 2.0), trial(1, 1.0), trial(2, 1.0, bound=True)]
    found = compare(
        run("x", seconds=1.0, trials=[trial(0, 2.2), trial(1, 1.0, Verdict.ACCEPT), trial(2, 9.0)]), reference, "r"
    )
    assert (found.trials, found.same, found.loss_difference) == (3, 2, pytest.approx(0.1))
    shorter = compare(run("x", seconds=1.0, trials=reference[:1]), reference, "r")
    assert (shorter.trials, shorter.same) == (3, 1)
    alone = compare(single("x", 1.0), [trial(0), trial(1, 4.0)], "r")
    assert (alone.trials, alone.same, alone.loss_difference) == (1, None, 0.75)


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_operations_are_counted_also_in_inference(mode: type[torch.no_grad]) -> None:
    left, query = torch.randn(3, 8), torch.randn(2, 4, 5, 8)
    layer = torch.nn.Linear(8, 16)

    def work() -> None:
        with mode():
            layer(left)
            query @ query.transpose(-1, -2)
            functional.scaled_dot_product_attention(query, query, query)

    scores = 2 * 8 * 5 * 5 * 8
    assert count_flops(work) == 2 * 3 * 8 * 16 + scores + 2 * scores


def test_the_rate_is_of_the_projections_of_a_layer() -> None:
    shapes = layer_shapes(Dimensions(layers=2, heads=4, hidden_size=32, intermediate_size=48), tokens=10)
    layer = tiny_model().bert.encoder.layer[0]
    projections = [tuple(part.weight.shape) for part in layer.modules() if isinstance(part, torch.nn.Linear)]
    assert sorted((outputs, inputs) for rows, inputs, outputs in shapes) == sorted(projections)
    assert {rows for rows, _, _ in shapes} == {10}
    assert 0 < matmul_rate(shapes, "cpu") < 1e15
