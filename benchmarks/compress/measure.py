"""The measurements of a cell: figures on held-out rows, certificates and times."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from axformer.config import make_config
from axformer.config.compress import CompressConfig
from axformer.data.batches import Samples
from axformer.plan.plan import Plan
from axformer.reporting.environment import describe
from axformer.scores.certificate import certify
from axformer.scores.confidence import bootstrap, interval
from axformer.scores.measured import figures_of
from axformer.scores.measured import measure as measure_model
from axformer.tasks.base import Task
from axformer.tasks.token_classification import TokenClassification
from axformer.wire.metrics import first_metric
from benchmarks.checkpoints import Checkpoint
from benchmarks.compress.grid import BUDGETS, CONFIRM, POINTS, Cell, Variant
from benchmarks.compress.ground import Opened, RowFiles, open_cell
from benchmarks.compress.latency import latency
from benchmarks.compress.ways import Made, go


def measure(cell: Cell, variant: Variant, home: Path, files: RowFiles) -> dict[str, Any]:
    """Measure one cell.

    Args:
        cell: the cell.
        variant: the cell's variant.
        home: directory of the cell's checkpoint.
        files: the cell's rows.
    """
    started, load = time.monotonic(), os.getloadavg()
    opened = open_cell(home, files, config_of(cell.checkpoint, variant))
    way = go(opened.ground, variant)
    models = [opened.checkpoint.model, *(made.model for made in way.made)]
    plans = [opened.ground.targets.full, *(made.plan for made in way.made)]
    confirming, test = (_tables(opened, models, samples) for samples in (opened.confirming, opened.test))
    task = opened.checkpoint.task
    content: dict[str, Any] = {
        "task": task.name,
        "metric": _metric_of(task, test[0])[0],
        "checkpoint": opened.checkpoint.sha256,
        "rows": opened.rows,
        "tokens": int(opened.ground.calibration.lengths.sum()),
        "points": [
            _point(opened, opened.ground.targets.full, test[0], test[0]),
            *(_made_point(opened, made, test[0], table) for made, table in zip(way.made, test[1:], strict=True)),
        ],
        "certified": [_certified(opened, plans, confirming, points, way.made) for points in POINTS],
        "seconds": {
            "shared": way.shared_seconds,
            "budgets": [made.seconds for made in way.made],
            "run": way.seconds,
            "whole": time.monotonic() - started,
        },
        "threads": torch.get_num_threads(),
        "load": [load[0], os.getloadavg()[0]],
        "environment": describe("cpu"),
    }
    if cell.has_latency:
        content["latency"] = latency(
            opened.checkpoint, opened.test, {f"{made.budget:g}": made.model for made in way.made}
        )
    return content


def config_of(checkpoint: Checkpoint, variant: Variant) -> CompressConfig:
    """The knobs of a run. Certificates are made afterwards, for all points from the same models."""
    asked = {
        "method": "compress",
        "budgets": BUDGETS,
        "confirm": CONFIRM,
        "within_points": None,
        "seed": checkpoint.seed,
        "max_length": checkpoint.max_length,
        **variant.knobs,
    }
    config = make_config("paper", asked)
    assert isinstance(config, CompressConfig)
    return config


def _tables(opened: Opened, models: Sequence[Any], samples: Samples) -> list[np.ndarray]:
    return [measure_model(model, opened.checkpoint.task, samples).table for model in models]


def _metric_of(task: Task, table: np.ndarray) -> tuple[str, Callable[[np.ndarray], float]]:
    """The certified metric: the task's first one, or for a tagger the mean over sentences (see ``docs/certificate.md``)."""
    if task.name == TokenClassification.name:
        return "accuracy (mean over sentences)", lambda rows: float((rows[:, 1] / rows[:, 2]).mean())
    name = first_metric(figures_of(table, task))
    return name, lambda rows: figures_of(rows, task)[name]


def _point(opened: Opened, plan: Plan, before: np.ndarray, table: np.ndarray) -> dict[str, Any]:
    """The figures of one model on held-out rows, and the change of the metric with a 95 % paired bootstrap interval."""
    task, targets = opened.checkpoint.task, opened.ground.targets
    _, metric = _metric_of(task, before)

    def drawn(rows: np.ndarray) -> np.ndarray:
        return bootstrap(rows, lambda sample: {"metric": metric(sample)})["metric"]

    return {
        "share": opened.share(plan),
        "metric": metric(table),
        "change": {"value": metric(table) - metric(before), "interval": interval(drawn(table) - drawn(before))},
        "test": figures_of(table, task),
        "encoder_parameters": targets.encoder_parameters(plan),
        "operations": targets.operations(plan),
        "estimated_speedup": targets.speedup(plan),
    }


def _made_point(opened: Opened, made: Made, before: np.ndarray, table: np.ndarray) -> dict[str, Any]:
    about = {"budget": made.budget, "tokens_per_unknown": made.tokens_per_unknown}
    return about | _point(opened, made.plan, before, table)


def _certified(
    opened: Opened,
    plans: Sequence[Plan],
    confirming: Sequence[np.ndarray],
    points: float,
    made: Sequence[Made],
) -> Mapping[str, Any]:
    """The certificate within ``points``, and the budget of the chosen model; None for the untouched model."""
    kept, certificate = certify(
        *(confirming, opened.checkpoint.task, points, range(len(plans))),
        [opened.costs(plan) for plan in plans],
    )
    fields = ("test", "rows", "asymptotic", "order", "tested", "passed", "p_value")
    figures = certificate.model_dump(mode="json", include=set(fields))
    return {"points": points, "budget": made[kept - 1].budget if kept else None, **figures}
