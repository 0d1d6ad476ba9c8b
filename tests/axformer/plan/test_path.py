"""Every acceptance of a finished pass can be handed out, and is the model that the trace speaks of."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from axformer import load
from axformer.cli.main import app
from axformer.config import make_config
from axformer.data.batches import Samples
from axformer.data.columns import DataSource
from axformer.data.reading import read_rows
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import prepare
from axformer.model.compact import compact
from axformer.plan.path import Stop, file_at, read_trace_beside
from axformer.plan.plan import Plan, PlanFile, PlanSource, read_plan_file
from axformer.plan.trial import Trial, Verdict
from axformer.scores.measured import measure
from tests.plain import PlainEvaluator
from tests.runs import open_run

CONFIG = make_config("paper", {"majority_fraction": 0.2, "attention_top_k": 3, "max_length": 10})
ROUNDING = 1e-4
"""Relative; the pass computes parts of what a whole forward computes."""


@pytest.fixture(scope="module")
def opened(checkpoint: Path, data: Path) -> tuple[Checkpoint, Samples]:
    """The checkpoint that the pass began with, and the data that decided."""
    loaded = load_checkpoint(checkpoint, "cpu")
    return loaded, prepare(read_rows(str(data)), loaded, CONFIG).samples


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path, data: Path) -> Path:
    """Plan and trace of a finished pass with hard attention; nothing else of a result is asked for."""
    run = open_run(checkpoint, DataSource(str(data)), config=CONFIG)
    trace = list(run.trials())
    directory = tmp_path_factory.mktemp("result")
    source = PlanSource(model_type="bert", sha256=load_checkpoint(checkpoint, "cpu").sha256)
    file = PlanFile(source=source, config=CONFIG.model_dump(mode="json"), layers=run.plan.layers)
    (directory / "plan.json").write_text(file.model_dump_json())
    (directory / "trace.jsonl").write_text("".join(f"{trial.model_dump_json()}\n" for trial in trace))
    return directory


@pytest.fixture(scope="module")
def accepted(result: Path) -> list[Trial]:
    trials = [trial for trial in read_trace_beside(result) if trial.verdict is Verdict.ACCEPT]
    assert len(trials) > 2, "the path has several points"
    return trials


def apply(result: Path, checkpoint: Path, data: Path, output: Path, upto: int) -> Result:
    arguments = [result, checkpoint, "--data", data, "--output", output, "--upto", upto]
    return CliRunner().invoke(app, ["apply", *map(str, arguments)])


def test_each_point_is_the_removed_model_whose_loss_the_trace_tells(
    opened: tuple[Checkpoint, Samples], result: Path, accepted: list[Trial]
) -> None:
    loaded, samples = opened
    file, trace = read_plan_file(result), read_trace_beside(result)
    masked = PlainEvaluator(loaded.model, loaded.architecture, loaded.task, samples)
    before = Plan.full(loaded.dimensions)
    for trial in accepted:
        plan = file_at(file, Stop(trace, trial.seq), loaded.dimensions).plan
        assert plan != before
        removed = compact(loaded.model, loaded.architecture, plan)
        assert masked.losses(plan).mean().item() == pytest.approx(trial.loss, rel=ROUNDING)
        assert measure(removed, loaded.task, samples).losses.mean().item() == pytest.approx(trial.loss, rel=ROUNDING)
        assert file_at(file, Stop(trace, trial.seq - 1), loaded.dimensions).plan == before
        before = plan


def test_the_path_leads_from_the_untouched_model_to_the_plan(
    opened: tuple[Checkpoint, Samples], result: Path, accepted: list[Trial]
) -> None:
    dimensions, file, trace = opened[0].dimensions, read_plan_file(result), read_trace_beside(result / "plan.json")
    assert file_at(file, Stop(trace, 0), dimensions).plan == Plan.full(dimensions)
    assert file_at(file, Stop(trace, accepted[-1].seq), dimensions) == file
    assert file_at(file, Stop(trace, trace[-1].seq), dimensions) == file


def test_the_command_writes_the_model_of_a_point(
    tmp_path: Path,
    opened: tuple[Checkpoint, Samples],
    result: Path,
    accepted: list[Trial],
    checkpoint: Path,
    data: Path,
) -> None:
    loaded, samples = opened
    middle, output = accepted[len(accepted) // 2], tmp_path / "middle"
    done = apply(result, checkpoint, data, output, middle.seq)
    assert done.exit_code == 0, done.output
    model = load(output)
    assert measure(model, loaded.task, samples).losses.mean().item() == pytest.approx(middle.loss, rel=ROUNDING)
    stop = Stop(read_trace_beside(result), middle.seq)
    assert read_plan_file(output) == file_at(read_plan_file(result), stop, loaded.dimensions)


def test_the_path_of_a_pass_with_repairs_leads_to_its_plan(checkpoint: Path, data: Path) -> None:
    knobs = {"repair": "refit", "tolerance": 10.0, "attention_top_k": None, "max_length": 10}
    run = open_run(checkpoint, DataSource(str(data)), config=make_config("paper", knobs))
    trace, loaded = list(run.trials()), load_checkpoint(checkpoint, "cpu")
    config = make_config("paper", knobs).model_dump(mode="json")
    source = PlanSource(model_type="bert", sha256=loaded.sha256)
    file = PlanFile(source=source, config=config, layers=run.plan.layers)
    assert any(layer.ffn and not layer.neurons for layer in file.layers), "a block left its bias"
    assert file_at(file, Stop(trace, trace[-1].seq), loaded.dimensions) == file
    assert file_at(file, Stop(trace, 0), loaded.dimensions).plan == Plan.full(loaded.dimensions)


def test_a_trace_with_bands_of_an_earlier_version_is_read(result: Path, tmp_path: Path) -> None:
    trace, copy = read_trace_beside(result), tmp_path / "result"
    shutil.copytree(result, copy)
    lines = [json.dumps({**json.loads(trial.model_dump_json()), "loss_band": 0.01}) for trial in trace]
    (copy / "trace.jsonl").write_text("\n".join(lines))
    assert read_trace_beside(copy) == trace


@pytest.mark.parametrize(
    ("upto", "spoil", "complaint"),
    [
        (10_000, lambda trace: None, "there is no trial 10000; the trace has trials 0 to"),
        (0, lambda trace: trace.unlink(), "there is no trace.jsonl in it"),
        (0, lambda trace: trace.write_text("{}\n"), "is not a trace"),
        (0, lambda trace: trace.write_text(""), "is empty"),
        (0, lambda trace: trace.write_text(trace.read_text().splitlines()[0]), "does not lead to the plan"),
    ],
)
def test_what_is_no_point_of_the_plans_own_path_is_refused(
    tmp_path: Path, result: Path, checkpoint: Path, data: Path, upto: int, spoil: object, complaint: str
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("plan.json", "trace.jsonl"):
        shutil.copy(result / name, copy / name)
    assert callable(spoil)
    spoil(copy / "trace.jsonl")
    refused = apply(copy, checkpoint, data, tmp_path / "out", upto)
    assert refused.exit_code == 2
    assert complaint in " ".join(refused.stderr.split())
    assert not (tmp_path / "out").exists()
