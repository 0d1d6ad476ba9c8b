"""One cell: drop layers one after the other as ``method=layers`` does, and measure each model on held-out rows."""

import os
import time
from pathlib import Path
from typing import Any

import torch

from axformer.config import make_config
from axformer.data.source import DataSource
from axformer.repair.settings import completed, make_settings
from axformer.reporting.environment import describe
from axformer.run import PruningRun
from axformer.scores.confidence import first_metric
from benchmarks.layers.grid import DROPPED, TRAININGS, Cell

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
    settings = None if asked is None else completed(make_settings(asked), config.finetune_defaults)
    run = PruningRun.open(
        checkpoint, validation, test=test, config=config, train=None if asked is None else train, finetune=settings
    )
    trials = list(run.trials(upto=max(counts), directory=state))
    points = [point.model_dump(mode="json") for point in run.passes.path]
    figures = points[0]["test"]
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
        "points": [
            {"dropped": sum(layer.dropped for layer in trial.plan or ()), **point}
            for trial, point in zip(trials, points, strict=True)
        ],
        "trials_seconds": [trial.seconds for trial in trials],
        "seconds": time.monotonic() - started,
        "threads": torch.get_num_threads(),
        "load": [load, os.getloadavg()[0]],
        "environment": describe("cpu"),
    }
