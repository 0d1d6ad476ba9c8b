"""The benchmark of speed on a tiny checkpoint: every step decides alike, and figures are of what they say."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from axformer.config import make_config
from axformer.data.reading import read_rows
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Phase, Trial, Verdict
from benchmarks.grids.speed import measure_steps, overheads, ratios, seconds_of
from benchmarks.speed.child import count_flops, layer_shapes, matmul_rate, measure
from benchmarks.speed.rounds import Asked, Evaluation, Run, Setting, ask_child, compare, plans_of, spread_out
from benchmarks.speed.steps import DYNAMIC, EARLY, PADDED, ROWS, STEPS, in_data_order
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_model, tiny_rows, write_rows

COUNT = 40
REFERENCE = """\
import sys
from benchmarks.speed.child import measure
from benchmarks.speed.rounds import Asked

checkpoint, data, _, out = sys.argv[1:5]
run = measure(Asked(step="prefixes", checkpoint=checkpoint, data=data, threads=1))
with open(out, "w") as file:
    file.writelines(trial.model_dump_json(exclude={'parameters'}) + "\\n" for trial in run.trials)
"""
"""A pass of our own, called as the naive reference is."""


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    """A checkpoint and its data."""
    home = tmp_path_factory.mktemp("speed")
    checkpoint = save_tiny_checkpoint(home / "checkpoint", tiny_config(layers=2), seed=3)
    write_rows(home / "data.jsonl", tiny_rows(COUNT, seed=3))
    return Setting(checkpoint, home / "data.jsonl", 1)


@pytest.fixture(scope="module")
def report(setting: Setting) -> dict[str, Any]:
    """Two rounds of all steps, beside a reference."""
    reference = setting.data.with_name("reference.py")
    reference.write_text(REFERENCE, encoding="utf-8")
    return measure_steps(measure, setting, STEPS, 2, reference)


@pytest.mark.slow
def test_every_step_decides_as_the_reference_does(report: dict[str, Any]) -> None:
    found = {one["step"]: one for one in report["agreements"]}
    assert {one["reference"] for one in found.values()} == {"reference.py"}
    for step in STEPS:
        assert found[step.name]["same"] in {None, found[step.name]["trials"]}
        assert (found[step.name]["same"] is None) is (step.evaluations is not None)
        assert (found[step.name]["loss_difference"] or 0.0) < 1e-5
    assert len({trial["verdict"] for trial in report["trace"]}) >= 3, "a pass without acceptances proves little"
    evaluated = [[one["seq"] for one in runs[0]["evaluations"]] for runs in report["rounds"]]
    assert evaluated[0] != evaluated[1]


def test_padded_forwards_cost_the_operations_of_the_shapes(report: dict[str, Any]) -> None:
    config = tiny_config(layers=2)
    hidden, inner, tokens = config.hidden_size, config.intermediate_size, 128
    projections = 2 * tokens * (4 * hidden * hidden + 2 * hidden * inner)
    attention = 2 * 2 * tokens * tokens * hidden
    head = 2 * hidden * hidden + 2 * hidden * config.num_labels
    a_row = config.num_hidden_layers * (projections + attention) + head
    flops = report["flops"]
    assert flops[PADDED] == len(report["trace"]) * COUNT * a_row
    assert flops[EARLY] <= flops["prefixes"] < flops["sorted"] < flops[PADDED]


def test_baselines_keep_the_order_of_the_file_and_pad_as_they_say(setting: Setting) -> None:
    checkpoint = load_checkpoint(setting.checkpoint)
    data = prepare(read_rows(str(setting.data)), checkpoint, make_config("published"))
    for pad_to in (128, None):
        samples = in_data_order(checkpoint, data, pad_to)
        assert [place for batch in samples.batches for place in batch.rows.tolist()] == list(range(COUNT))
        assert [len(batch.rows) for batch in samples.batches] == [ROWS, COUNT - ROWS]
        lengths = [data.samples.lengths[batch.rows] for batch in samples.batches]
        assert [batch.tokens for batch in samples.batches] == [pad_to or int(one.max()) for one in lengths]


@pytest.mark.slow
def test_a_measurement_in_a_process_of_its_own(setting: Setting, tmp_path: Path) -> None:
    run = ask_child(setting.asked(STEPS[-1]))
    assert run.trials
    assert run.peak_bytes >= run.loaded_bytes > 0
    with pytest.raises(RuntimeError, match=r"step 'early' on .*gone.jsonl ended with code 1"):
        ask_child(Setting(setting.checkpoint, tmp_path / "gone.jsonl", 1).asked(STEPS[-1]))


def trial(seq: int, loss: float = 1.0, verdict: Verdict = Verdict.REJECT, *, bound: bool = False) -> Trial:
    about = {"seq": seq, "phase": Phase.BLOCK, "element": f"layer.{seq}.ffn", "loss": loss, "loss_is_bound": bound}
    counts = {"helped": 0, "samples": 1, "total": 1, "min_loss": 1.0, "parameters": 0, "seconds": 0.0}
    return Trial.model_validate({**about, **counts, "verdict": verdict, "precision": "float32"})


def run(step: str, **found: object) -> Run:
    return Run.model_validate({"step": step, "loaded_bytes": 1, "peak_bytes": 2, "rates": {"float32": 100.0}, **found})


def single(step: str, *taken: float) -> Run:
    return run(step, evaluations=[Evaluation(seq=1, loss=1.0, seconds=one) for one in taken])


ROUNDS = [
    [single(PADDED, 20.0), single(DYNAMIC, 1.0, 9.0, 2.0), run(EARLY, seconds=2.0)],
    [single(PADDED, 15.0), single(DYNAMIC, 2.0, 2.0, 2.0), run(EARLY, seconds=3.0)],
    [single(PADDED, 40.0), single(DYNAMIC, 3.0, 3.0, 3.0)],
]
TOLD = {
    "trace": [{}] * 10,
    "rounds": [[one.model_dump(mode="json") for one in runs] for runs in ROUNDS],
    "flops": {EARLY: 250},
}


def test_single_trials_count_once_for_every_trial_and_ratios_are_of_one_round() -> None:
    assert seconds_of(single(DYNAMIC, 1.0, 9.0, 2.0).model_dump(), 10) == 20.0
    assert ratios(TOLD, EARLY, PADDED) == [100.0, 50.0]
    assert ratios(TOLD, DYNAMIC, DYNAMIC) == [1.0, 1.0, 1.0]
    assert overheads(TOLD, EARLY) == [0.8, 1.2], "seconds over what the operations need"


def test_agreement_counts_verdicts_and_compares_losses_measured_to_the_end() -> None:
    reference = [trial(0, 2.0), trial(1, 1.0), trial(2, 1.0, bound=True)]
    trials = [trial(0, 2.2), trial(1, 1.0, Verdict.ACCEPT), trial(2, 9.0)]
    found = compare(run("x", seconds=1.0, trials=trials), reference, "r")
    assert (found.trials, found.same, found.loss_difference) == (3, 2, pytest.approx(0.1))
    shorter = compare(run("x", seconds=1.0, trials=reference[:1]), reference, "r")
    assert (shorter.trials, shorter.same) == (3, 1)
    alone = compare(single("x", 1.0), [trial(0), trial(1, 4.0)], "r")
    assert (alone.trials, alone.same, alone.loss_difference) == (1, None, 0.75)


def test_plans_hold_what_was_accepted_before_and_turns_take_others() -> None:
    plans = plans_of([trial(1), trial(2, verdict=Verdict.ACCEPT), trial(3)])
    assert plans == {1: ["layer.1.ffn"], 2: ["layer.2.ffn"], 3: ["layer.2.ffn", "layer.3.ffn"]}
    many = {seq: [str(seq)] for seq in range(1, 13)}
    assert [list(spread_out(many, 2, turn, 3)) for turn in range(3)] == [[2, 8], [4, 10], [6, 12]]


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_operations_are_counted_also_in_inference(mode: type[torch.no_grad]) -> None:
    left, query, layer = torch.randn(3, 8), torch.randn(2, 4, 5, 8), torch.nn.Linear(8, 16)

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
    assert 0 < matmul_rate(shapes) < 1e15


def test_an_unknown_step_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match="step 'x' is unknown; there are padded-128"):
        measure(Asked(step="x", checkpoint="", data="", threads=1))
