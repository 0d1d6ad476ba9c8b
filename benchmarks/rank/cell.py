"""One cell: make smaller models in one way, and measure all of them on held-out rows."""

import os
import time
from pathlib import Path
from typing import Any

import torch

from axformer.config import make_config
from axformer.data.source import DataSource
from axformer.repair.settings import make_settings
from axformer.reporting.environment import describe
from axformer.run import PruningRun
from axformer.surroundings import Surroundings
from axformer.wire.metrics import first_metric
from benchmarks.rank.grid import ORDERS, Cell

FORMAT = "axformer-rank/1"


def measure(cell: Cell, checkpoint: Path, sets: Path, state: Path) -> dict[str, Any]:
    """Run one cell.

    Args:
        cell: the cell.
        checkpoint: directory of its checkpoint.
        sets: directory of the prepared sets.
        state: directory for the state of trainings, which an interrupted cell continues from.
    """
    started, load, way = time.monotonic(), os.getloadavg()[0], cell.how
    own: dict[str, Any] = {"max_length": cell.checkpoint.max_length, "seed": cell.checkpoint.seed}
    own |= {"task_name": cell.checkpoint.task_name} if cell.way in ORDERS else {}
    config = make_config(way.preset, {**way.knobs, **own})
    validation, test, train = (
        DataSource(str(cell.checkpoint.rows(sets, part))) for part in ("validation", "test", "train")
    )
    training: dict[str, Any] = {"train": train, "finetune": make_settings({"bf16": True})} if way.trains else {}
    run = PruningRun.open(checkpoint, validation, test=test, config=config, **training)
    trials = list(run.trials(surroundings=Surroundings(state)))
    searched = time.monotonic() - started
    points = [point.model_dump(mode="json") for point in run.passes.path]
    return {
        "format": FORMAT,
        "cell": cell.name,
        "data": cell.checkpoint.data,
        "model": cell.checkpoint.family,
        "seed": cell.checkpoint.seed,
        "way": cell.way,
        "config": config.model_dump(mode="json"),
        "metric": first_metric(points[0]["test"]),
        "points": points,
        "trials": len(trials),
        "certificate": None if run.passes.certificate is None else run.passes.certificate.model_dump(mode="json"),
        "seconds": searched,
        "threads": torch.get_num_threads(),
        "load": [load, os.getloadavg()[0]],
        "environment": describe("cpu"),
    }
