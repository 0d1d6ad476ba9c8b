"""Laws of compression: the allocation is the best there is, budgets are kept, and what is published is what was measured."""

import itertools
import json
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForSequenceClassification
from typer.testing import CliRunner

import axformer
from axformer.apply import apply_plan
from axformer.cli.main import app
from axformer.config import CompressConfig, make_config
from axformer.config.goals import config_for, parse_goal
from axformer.data.columns import DataSource
from axformer.data.reading import rows_of
from axformer.errors import ConfigError, PlanError
from axformer.export import export
from axformer.forms.form import Form
from axformer.forms.kinds import KINDS
from axformer.intake.checkpoint import from_memory, load_checkpoint
from axformer.intake.dataset import prepare
from axformer.methods.compress.method import allocate
from axformer.methods.compress.table import Level, curve
from axformer.methods.progress import meter_of
from axformer.model.number_format import cast
from axformer.opening import Inputs
from axformer.plan.blocks import Block, blocks_of_layer
from axformer.plan.elements import Dimensions, encoder_share
from axformer.plan.levels import MULTIPLE, measured_sizes, sizes_of
from axformer.plan.path import Stop
from axformer.plan.plan import Plan, PlanFile, PlanSource, read_plan_file, said_repaired
from axformer.plan.trial import Trial
from axformer.repair.refit import refit_plan
from axformer.repair.storage import REPAIR_NAME, read_refit, write_refit
from axformer.run import PruningRun
from axformer.scores.measured import measure
from axformer.surroundings import Surroundings
from axformer.wire.steps import Step, StepName
from tests.family_cases import Case, checkpoint_of, data_of
from tests.runs import open_run
from tests.tiny_families import DIMENSIONS
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_model, tiny_rows, tiny_tokenizer, write_rows

ALL = {"method": "compress", "confirm": 0.0, "within_points": None}
"""All rows decide, and the last budget is kept."""
COMPRESS = make_config("paper", {**ALL, "budgets": [0.8, 0.5, 0.3], "max_length": 24})
TINY = from_memory(tiny_model(), tiny_tokenizer())
TINY_ROWS = rows_of(tiny_rows(30))
choices = st.builds(Level, st.just(()), cost=st.floats(0, 10), divergence=st.floats(0, 5))


@given(st.lists(st.lists(choices, min_size=1, max_size=4), min_size=1, max_size=4), st.floats(0.5, 30))
@settings(deadline=None, max_examples=60)
def test_the_allocation_is_the_best_within_the_budget(blocks: list[list[Level]], budget: float) -> None:
    found = allocate(blocks, budget, grid=4000)
    slack = budget * len(blocks) / 4000  # costs are rounded up to the grid

    def total(picked: tuple[int, ...]) -> tuple[float, float]:
        levels = [levels[index] for levels, index in zip(blocks, picked, strict=True)]
        return sum(level.cost for level in levels), sum(level.divergence for level in levels)

    everything = [total(picked) for picked in itertools.product(*(range(len(levels)) for levels in blocks))]
    surely = [error for cost, error in everything if cost <= budget - slack]
    if found is None:
        assert not surely
        return
    cost, error = total(tuple(found))
    assert cost <= budget * (1 + 1e-9)
    assert not surely or error <= min(surely) + 1e-9


SIZES = list(range(12, -1, -1))
STEPS = st.lists(st.just(0.0) | st.floats(1e-6, 1e6), min_size=12, max_size=12)


@given(st.lists(st.floats(0, 3), min_size=6, max_size=6), STEPS)
def test_the_curve_goes_through_what_was_measured_and_never_falls(measured: list[float], steps: list[float]) -> None:
    sizes, errors = SIZES, list(itertools.accumulate([0.0, *steps]))
    taken = dict(zip([10, 7, 5, 3, 2, 0], sorted(measured), strict=True))
    read = curve(taken, sizes, errors)
    assert read[0] == 0
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(read))
    assert [read[sizes.index(size)] for size in taken] == pytest.approx(list(taken.values()), abs=1e-9)


@given(st.lists(st.floats(0.1, 10), min_size=12, max_size=12), st.floats(1e-3, 1e3), st.sampled_from(SIZES[1:]))
def test_where_the_prediction_is_right_but_for_a_factor_one_measured_size_tells_all(
    steps: list[float], factor: float, size: int
) -> None:
    errors = list(itertools.accumulate([0.0, *steps]))
    read = curve({size: factor * errors[SIZES.index(size)]}, SIZES, errors)
    assert read == pytest.approx([factor * error for error in errors], rel=1e-2, abs=1e-5 * factor * errors[-1])


@given(st.integers(1, 64), st.integers(1, 5000))
def test_measured_sizes_are_some_of_all(heads: int, neurons: int) -> None:
    dimensions = Dimensions(layers=1, heads=heads, hidden_size=8, intermediate_size=neurons)
    for block in blocks_of_layer(0):
        sizes = sizes_of(block, dimensions)
        assert sizes == sorted(set(sizes), reverse=True)
        assert (sizes[0], sizes[-1]) == (block.size(dimensions), 0)
        assert set(measured_sizes(sizes)) <= set(sizes[1:])
        if block.is_ffn and neurons >= 20 * MULTIPLE:
            assert all(size % MULTIPLE == 0 for size in sizes[1:])


@pytest.mark.parametrize(
    "case",
    [Case("bert", task) for task in ("classification", "regression", "token_classification", "question_answering")]
    + [Case(family, "classification") for family in ("albert", "gpt2", "llama", "modernbert", "xlnet", "deberta-v2")]
    + [Case("bert", "multiple_choice"), Case("bert", "masked_lm"), Case("gpt2", "causal_lm")],
    ids=str,
)
def test_every_budget_is_kept_and_each_model_is_what_its_trial_says(case: Case) -> None:
    checkpoint = checkpoint_of(case)
    run = PruningRun(Inputs(checkpoint, prepare(data_of(case).rows, checkpoint, COMPRESS)), COMPRESS)
    trials = list(run.trials())
    full = Plan.full(run.dimensions)
    assert len(trials) > 1
    for trial, budget in zip(trials[1:], COMPRESS.budgets, strict=False):
        assert trial.plan is not None
        plan = Plan(layers=trial.plan)
        share = run.decisions.targets.encoder_operations(plan) / run.decisions.targets.encoder_operations(full)
        assert share <= budget
        assert trial.figures is not None
        assert trial.figures.encoder_operations == run.decisions.targets.encoder_operations(plan)
        assert trial.figures.metrics["loss"] == pytest.approx(trial.loss, rel=1e-4)
    small = run.compact_model()
    task, samples = checkpoint.task, run.deciding.samples
    with torch.inference_mode():
        rows = torch.empty(len(samples.sample_of_row))
        for batch in samples.batches:
            rows[batch.rows] = task.losses(small(**batch.inputs), batch)
    assert float(samples.per_sample(rows).mean()) == pytest.approx(trials[-1].loss, rel=1e-4)


@pytest.mark.parametrize(("wanted", "is_reached"), [(3, True), (40, False)])
def test_a_speed_is_reached_beside_a_vocabulary_if_it_can_be(wanted: int, is_reached: bool) -> None:
    checkpoint = checkpoint_of(Case("gpt2", "causal_lm"))
    _, config = config_for(parse_goal(f"operations={wanted}"), {"max_length": 24, "repair": "none"})
    data = prepare(data_of(Case("gpt2", "causal_lm")).rows, checkpoint, config)
    run, resumed = (PruningRun(Inputs(checkpoint, data), config) for _ in range(2))
    trials, targets = list(run.trials()), run.decisions.targets
    assert len(trials) <= meter_of(run.dimensions, config).longest
    assert targets.is_reached(run.plan) == is_reached
    least = targets.operations(targets.full) - targets.encoder_operations(targets.full)
    assert (targets.operations(targets.full) / least > wanted) == is_reached, "the vocabulary alone tells"
    assert isinstance(config, CompressConfig)
    is_further = trials[-1].element not in {encoder_share(budget) for budget in config.budgets}
    assert is_further == is_reached
    assert targets.speedup(run.plan) < 1.1 * wanted, "no smaller than it has to be"
    again = list(resumed.trials(replay=trials[:-1]))
    assert [(one.element, one.plan) for one in again] == [(one.element, one.plan) for one in trials]


def test_a_resumed_run_takes_the_level_table_from_its_trace() -> None:
    run, resumed = (PruningRun(Inputs(TINY, prepare(TINY_ROWS, TINY, COMPRESS)), COMPRESS) for _ in range(2))
    told: list[Step] = []
    trials = list(run.trials(surroundings=Surroundings(on_step=told.append)))
    assert [trial.levels is not None for trial in trials] == [False, True, False, False]
    counted = [step for step in told if step.name == StepName.LEVEL_TABLE]
    assert [step.done for step in counted] == sorted(step.done for step in counted)
    assert counted[-1].done == counted[-1].known
    assert {step.name for step in told} == {StepName.LEVEL_TABLE, StepName.REFIT}
    told.clear()
    again = list(resumed.trials(replay=trials[:2], surroundings=Surroundings(on_step=told.append)))
    assert {step.name for step in told} == {StepName.REFIT}
    assert [(one.plan, one.loss) for one in again] == [(one.plan, one.loss) for one in trials]


def test_the_time_left_is_that_of_budgets_without_the_table() -> None:
    config, left = make_config("paper", {**ALL, "budgets": [0.9, 0.8, 0.7, 0.6, 0.5]}), []
    meter = meter_of(DIMENSIONS, config)
    for seconds in (2.0, 62.0, 67.0, 71.0):
        meter.add([Trial.model_construct(seconds=seconds)])
        left.append(meter.progress().seconds_left)
    assert left == [None, 4 * 31.0, 3 * 5.0, 2 * 4.5]


@cache
def tiny_trials() -> list[Trial]:
    """All budgets of a tiny model."""
    return list(PruningRun(Inputs(TINY, prepare(TINY_ROWS, TINY, COMPRESS)), COMPRESS).trials())


@pytest.mark.parametrize(
    "changed", [{"leaving": (0, 0, 1, 2)}, {"divergences": (0.0,)}, {"divergences": (float("nan"),) * 5}]
)
def test_a_level_table_of_another_model_is_refused(changed: dict[str, Any]) -> None:
    run = PruningRun(Inputs(TINY, prepare(TINY_ROWS, TINY, COMPRESS)), COMPRESS)
    base, first = tiny_trials()[:2]
    assert first.levels is not None
    assert len(first.levels[0].leaving) == 4
    damaged = (first.levels[0].model_copy(update=changed), *first.levels[1:])
    with pytest.raises(PlanError, match="its level table is not one of this model's blocks"):
        list(run.trials(replay=[base, first.model_copy(update={"levels": damaged})]))


def test_a_published_result_loads_and_its_plan_can_be_carried_out_again_without_other_data(
    tmp_path: Path, checkpoint: Path, data: Path
) -> None:
    config = make_config("paper", {**ALL, "budgets": [0.7, 0.4]})
    run = open_run(checkpoint, DataSource(str(data)), config=config)
    trials = list(run.trials())
    report = run.publish(tmp_path / "result")
    assert report["pruned"]["validation"]["loss"] == pytest.approx(trials[-1].loss, rel=1e-4)
    file = read_plan_file(tmp_path / "result")
    assert (file.repair, file.format) == ("refit", "axformer-plan/2")
    lines = [json.loads(line) for line in (tmp_path / "result" / "trace.jsonl").read_text().splitlines()]
    assert [line["phase"] for line in lines] == ["base", "budget", "budget"]
    fits = read_refit(tmp_path / "result")
    apply_plan(file, checkpoint, DataSource(str(data)), tmp_path / "again", forms=["compact"], fits=fits)
    loaded, again = axformer.load(tmp_path / "result").state_dict(), axformer.load(tmp_path / "again").state_dict()
    assert loaded.keys() == again.keys()
    assert all(torch.equal(value, again[name]) for name, value in loaded.items())


@pytest.mark.slow
def test_a_fitted_result_has_a_zeroed_form_at_any_budget(tmp_path: Path, checkpoint: Path, data: Path) -> None:
    config, source = make_config("paper", {**ALL, "budgets": [0.7, 0.4]}), DataSource(str(data))
    run = open_run(checkpoint, source, config=config)
    trials = list(run.trials())
    report = run.publish(tmp_path / "result", ["compact", "zeroed"])
    assert {form["name"] for form in report["forms"] if form["made"]} == {"compact", "zeroed"}
    file, fits, task = (
        read_plan_file(tmp_path / "result"),
        read_refit(tmp_path / "result"),
        load_checkpoint(checkpoint).task,
    )
    for seq in (0, 1, 2):
        output = tmp_path / str(seq)
        (made,) = apply_plan(file, checkpoint, source, output, forms=["zeroed"], stop=Stop(run.trace, seq), fits=fits)
        assert isinstance(made, Form)
        again = read_plan_file(output)
        assert (again.repair, again.format) == (("refit", "axformer-plan/2") if seq else (None, "axformer-plan/1"))
        assert (output / REPAIR_NAME).exists() is bool(seq)
        stock = AutoModelForSequenceClassification.from_pretrained(output / "zeroed").eval()
        assert float(measure(stock, task, run.deciding.samples).losses.mean()) == pytest.approx(
            trials[seq].loss, rel=1e-4
        )


def test_with_rows_to_calibrate_the_models_do_not_depend_on_few_deciding_rows(tmp_path: Path, checkpoint: Path) -> None:
    """More rows confirm by default, and the level table is measured on the calibration rows."""
    texts = [{"text": row["text"]} for row in tiny_rows(30, seed=4)]
    calibrate = DataSource(str(write_rows(tmp_path / "texts.jsonl", texts)))
    paths, levels = [], []
    for seed in (5, 6):
        data = DataSource(str(write_rows(tmp_path / f"{seed}.jsonl", tiny_rows(40, seed=seed))))
        config = make_config("smallest", {"budgets": [0.5, 0.3], "table_rows": 20, "within_points": 20})
        run = open_run(checkpoint, data, config=config, calibrate=calibrate)
        assert (run.config.confirm, len(run.deciding.samples)) == (0.8, 8)
        trials = list(run.trials())
        paths.append([trial.plan for trial in trials])
        levels.append(trials[1].levels)
    assert paths[0] == paths[1]
    assert levels[0] == levels[1] is not None


@pytest.mark.slow
@pytest.mark.parametrize("drawn", [None, 12])
def test_another_budget_is_fitted_on_what_the_run_was_calibrated_on(
    drawn: int | None, tmp_path: Path, checkpoint: Path, data: Path
) -> None:
    """Also where the untouched model was kept, whose plan fits nothing, and where some rows were drawn."""
    config = make_config("paper", {**ALL, "budgets": [0.5], "calibrate_rows": drawn, "seed": 3})
    source = DataSource(str(data))
    texts = [{"text": row["text"]} for row in tiny_rows(30, seed=4)]
    calibrate = DataSource(str(write_rows(tmp_path / "texts.jsonl", texts)))
    run = open_run(checkpoint, source, config=config, calibrate=calibrate)
    trials = list(run.trials())
    origin = PlanSource(model_type="bert", sha256=load_checkpoint(checkpoint).sha256)
    layers = Plan.full(run.dimensions).layers
    kept = PlanFile(source=origin, config=config.model_dump(mode="json"), layers=layers)
    apply = partial(apply_plan, forms=["compact"], stop=Stop(trials, 1), calibrate=calibrate)
    apply(kept, checkpoint, source, tmp_path / "out")
    made = read_plan_file(tmp_path / "out")
    assert (made.plan, made.repair) == (run.plan, "refit")
    expected, found = run.compact_model().state_dict(), axformer.load(tmp_path / "out" / "model").state_dict()
    assert all(torch.equal(value, found[name]) for name, value in expected.items())
    with pytest.raises(ConfigError, match="--calibrate: no weights are fitted anew for this plan"):
        apply(made, checkpoint, source, tmp_path / "none", fits=read_refit(tmp_path / "out"))
    assert not (tmp_path / "none").exists()


def test_diff_knows_fitted_weights(tmp_path: Path) -> None:
    case = Case("bert", "classification")
    checkpoint = checkpoint_of(case)
    layers = [layer.model_copy(update={"heads": layer.heads[:2]}) for layer in Plan.full(checkpoint.dimensions).layers]
    fits = dict(
        refit_plan(checkpoint.model, checkpoint.architecture, data_of(case).samples, Plan(layers=tuple(layers)))
    )
    source = PlanSource(model_type="bert", sha256=checkpoint.sha256)
    fitted = said_repaired(PlanFile(source=source, config={}, layers=tuple(layers)), is_fitted=True)
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.json").write_text(fitted.model_dump_json())
        write_refit(fits, tmp_path / name)
    invoke = partial(CliRunner().invoke, app)
    same = invoke(["diff", str(tmp_path / "one"), str(tmp_path / "other")])
    assert (same.exit_code, same.output) == (0, "The plans leave the same model.\n")
    fit = fits[Block.at(1)]
    assert fit.bias is not None
    write_refit({**fits, Block.at(1): replace(fit, bias=fit.bias + 1)}, tmp_path / "other")
    (found,) = json.loads(invoke(["diff", "--json", str(tmp_path / "one"), str(tmp_path / "other")]).output)
    assert (found["layer"], found["part"]) == (0, "ffn weights")
    plain = tmp_path / "plain.json"
    plain.write_text(said_repaired(fitted, is_fitted=False).model_dump_json())
    shown = invoke(["diff", "--json", str(plain), str(tmp_path / "one" / "plan.json")])
    assert shown.exit_code == 1
    assert [each["first"] for each in json.loads(shown.output)] == ["the checkpoint's"] * len(fits)
    (tmp_path / "other" / REPAIR_NAME).unlink()
    refused = invoke(["diff", str(tmp_path / "one"), str(tmp_path / "other")])
    assert refused.exit_code == 2
    assert "give the directory of the whole result" in " ".join(refused.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_fitted_result_has_every_form(tmp_path: Path, data: Path, dtype: torch.dtype) -> None:
    shape = tiny_config(layers=1)
    checkpoint, source = save_tiny_checkpoint(tmp_path / "checkpoint", shape), DataSource(str(data))
    cast(tiny_model(shape), dtype).save_pretrained(checkpoint)
    run = open_run(checkpoint, source, config=make_config("paper", {**ALL, "budgets": [0.6]}))
    list(run.trials())
    # For a stock form all layers must keep equally many units, which a compressed model's do not.
    report = run.publish(tmp_path / "result", [name for name in KINDS if name != "stock"])
    for form in report["forms"]:
        assert form["made"], form["reason"]
        if dtype is torch.float32:  # the bounds are of float32; a form is not made where they do not hold there
            assert form["max_logit_difference"] <= KINDS[form["name"]].tolerance
    made = export(tmp_path / "result", source, tmp_path / "more", forms=["onnx", "onnx_int8"])
    assert all(isinstance(form, Form) for form in made)


def test_a_damaged_repair_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read"):
        read_refit(tmp_path)
    (tmp_path / REPAIR_NAME).write_bytes(b"nothing")
    with pytest.raises(PlanError, match="cannot be read"):
        read_refit(tmp_path)


@pytest.mark.parametrize(
    ("preset", "knobs", "message"),
    [
        ("paper", {"method": "compress", "budgets": [0.5, 0.8]}, "largest first"),
        ("paper", {"method": "compress", "budgets": []}, "largest first"),
        (
            "paper",
            {"method": "compress", "tolerance": 0.1},
            "knob 'tolerance' is of method=axformer, not of method=compress",
        ),
        (
            "robust",
            {"method": "compress"},
            "preset 'robust' is of method=axformer, not of method=compress; take smallest",
        ),
    ],
)
def test_knobs_that_do_not_fit_are_refused(preset: str, knobs: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_config(preset, knobs)


def test_without_refit_the_weights_that_stay_are_the_checkpoints() -> None:
    checkpoint = checkpoint_of(Case("bert", "classification"))
    config = make_config("paper", {**ALL, "repair": "none", "budgets": [0.7]})
    run = PruningRun(Inputs(checkpoint, prepare(rows_of(tiny_rows(20, labels=3)), checkpoint, config)), config)
    list(run.trials())
    small = run.compact_model()
    full = run.dimensions.intermediate_size
    cut = [index for index, layer in enumerate(run.plan.layers) if 0 < layer.neuron_count < full]
    assert cut
    for index in cut:
        kept = [neuron for start, stop in run.plan.layers[index].neurons for neuron in range(start, stop)]
        mine, theirs = (
            checkpoint.architecture.layers(model)[index].output.dense.weight for model in (small, checkpoint.model)
        )
        assert torch.equal(mine, theirs[:, kept])
