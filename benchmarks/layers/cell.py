"""One cell: drop layers one after the other as ``method=layers`` does, and measure each model on held-out rows."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from axformer.config import make_config
from axformer.data.reading import read_rows
from axformer.data.source import DataSource
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.repair.settings import completed, make_settings
from axformer.reporting.environment import describe
from axformer.run import PruningRun
from axformer.surroundings import Surroundings
from axformer.wire.metrics import first_metric
from benchmarks.compress.latency import latency
from benchmarks.layers.grid import DROPPED, SHORT_ROWS, TRAININGS, Cell
from benchmarks.sets.parts import sample

FORMAT = "axformer-layers/1"


def measure(cell: Cell, checkpoint: Path, sets: Path, state: Path) -> dict[str, Any]:
    """Run one cell.

    Args:
        cell: the cell.
        checkpoint: directory of its checkpoint.
        sets: directory of the prepared sets.
        state: directory for the state of trainings, which an interrupted cell continues from.
    """
    started, load, asked = time.monotonic(), os.getloadavg()[0], TRAININGS[cell.training]
    counts = DROPPED[cell.checkpoint.family]
    knobs = {
        "method": "layers",
        "strategy": cell.strategy.value,
        "within_points": None,
        "confirm": 0.0,
        "max_length": cell.checkpoint.max_length,
        "seed": cell.checkpoint.seed,
    }
    config = make_config("paper", knobs)
    validation, test, train = (
        DataSource(str(cell.checkpoint.rows(sets, part))) for part in ("validation", "test", "train")
    )
    if cell.training == "short":
        train = DataSource(str(_some(Path(train.path), state)))
    settings = None if asked is None else completed(make_settings(asked), config.finetune_defaults)
    run = PruningRun.open(
        checkpoint, validation, test=test, config=config, train=None if asked is None else train, finetune=settings
    )
    trials = list(run.trials(upto=max(counts), surroundings=Surroundings(state)))
    points = [point.model_dump(mode="json") for point in run.passes.path]
    dropped = [sum(layer.dropped for layer in trial.plan or ()) for trial in trials]
    figures = points[0]["test"]
    measured = {"latency": _latency(checkpoint, cell, test, trials)} if cell.training == "untrained" else {}
    return {
        "format": FORMAT,
        "cell": cell.name,
        "data": cell.checkpoint.data,
        "model": cell.checkpoint.family,
        "seed": cell.checkpoint.seed,
        "strategy": cell.strategy.value,
        "training": cell.training,
        "settings": None if settings is None else settings.model_dump(mode="json"),
        "metric": first_metric(figures),
        "points": [{"dropped": count, **point} for count, point in zip(dropped, points, strict=True)],
        "trials_seconds": [trial.seconds for trial in trials],
        "seconds": time.monotonic() - started,
        "threads": torch.get_num_threads(),
        "load": [load, os.getloadavg()[0]],
        "environment": describe("cpu"),
    } | measured


def _latency(home: Path, cell: Cell, test: DataSource, trials: Sequence[Trial]) -> dict[str, Any]:
    """The latency of the models of all trials, by the number of dropped layers."""
    rows = read_rows(test.path, test.columns)
    checkpoint = load_checkpoint(home, "cpu").for_rows(rows)
    samples = prepare(rows, checkpoint, make_config("paper", {"max_length": cell.checkpoint.max_length})).samples
    plans = [Plan(layers=trial.plan) for trial in trials if trial.plan is not None]
    models = {str(len(plan.dropped)): compact(checkpoint.model, checkpoint.architecture, plan) for plan in plans}
    return latency(checkpoint, samples, models)


def _some(train: Path, state: Path) -> Path:
    """A file with a sample of the training rows, in the directory of the trainings' state."""
    state.mkdir(parents=True, exist_ok=True)
    file = state / "train.jsonl"
    with train.open(encoding="utf-8") as lines:
        file.write_text("".join(sample(list(lines), SHORT_ROWS)), encoding="utf-8")
    return file
