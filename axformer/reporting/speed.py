"""How fast models are, measured pairwise in one run so that ratios mean something."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from axformer.reporting.workloads import Workload
from axformer.wire.report import SpeedCell

PATIENCE = 4
"""Times :attr:`Effort.seconds` after which a measurement ends, however few its repeats are."""

Inputs = Mapping[str, Tensor]


@dataclass(frozen=True)
class Effort:
    """When one measurement ends."""

    least: int
    """Repeats in any case, but where a model is so slow that they take more than ``PATIENCE`` times ``seconds``."""
    most: int
    """Repeats that are enough."""
    seconds: float
    """A model, after which the ``least`` repeats are enough."""
    warm_ups: int
    """Forward passes of each model that are not counted; the first ones allocate."""


QUICK = Effort(least=5, most=20, seconds=0.25, warm_ups=1)
"""At the end of a pass, where people wait for the result."""
THOROUGH = Effort(least=20, most=200, seconds=5.0, warm_ups=3)
"""Where speed is what was asked for."""
HEADLINE = Effort(least=10, most=40, seconds=2.0, warm_ups=5)
"""Of the one figure that summaries show."""


def measure_speed(models: Sequence[Any], workloads: Sequence[Workload], effort: Effort) -> list[list[SpeedCell]]:
    """The cells of each model, one for each workload."""
    table = [_cells(workload, take_turns(models, workload.batches, effort)) for workload in workloads]
    return [[cells[place] for cells in table] for place in range(len(models))]


def take_turns(models: Sequence[Any], batches: Sequence[Inputs], effort: Effort) -> list[list[float]]:
    """Seconds of each forward pass of each model; the same number of each, and each model's the same batches in turn.

    In every repeat each model computes the same batch, beginning with another model each time, so that whatever else the
    machine does falls on all of them alike.

    Args:
        models: each is given its inputs on its own device.
        batches: what they take.
        effort: when to stop.
    """
    own = [[_on_device(batch, model.device) for batch in batches] for model in models]
    seconds: list[list[float]] = [[] for _ in models]
    with torch.inference_mode():
        for _ in range(effort.warm_ups):
            for model, mine in zip(models, own, strict=True):
                model(**mine[0])
        for repeat in range(effort.most):
            for turn in range(len(models)):
                place = (repeat + turn) % len(models)
                seconds[place].append(_seconds(models[place], own[place][repeat % len(batches)]))
            if is_enough(sum(map(sum, seconds)) / len(models), repeat + 1, effort):
                break
    return seconds


def is_enough(spent: float, repeats: int, effort: Effort) -> bool:
    """Whether a measurement ends that has taken so many seconds a model."""
    return (spent >= effort.seconds and repeats >= effort.least) or spent >= PATIENCE * effort.seconds


def _cells(workload: Workload, seconds: Sequence[Sequence[float]]) -> list[SpeedCell]:
    return [_cell(workload, taken) for taken in seconds]


def _cell(workload: Workload, seconds: Sequence[float]) -> SpeedCell:
    median, slow = (1000 * float(value) for value in np.quantile(seconds, [0.5, 0.95]))
    return SpeedCell(
        batch=workload.batch,
        length=workload.length,
        tokens=workload.tokens,
        p50_ms=median,
        p95_ms=slow,
        inputs_per_second=workload.batch * len(seconds) / sum(seconds),
        repeats=len(seconds),
    )


def _on_device(inputs: Inputs, device: Any) -> Inputs:
    return {name: values.to(device) for name, values in inputs.items()}


def _seconds(model: Any, inputs: Inputs) -> float:
    _wait(model)
    start = time.perf_counter()
    model(**inputs)
    _wait(model)
    return time.perf_counter() - start


def _wait(model: Any) -> None:
    device = torch.device(model.device)
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
