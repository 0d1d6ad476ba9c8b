"""Speed of models, measured in turns in one run so that their ratios are meaningful."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from axformer.reporting.workloads import Workload
from axformer.scores.confidence import RESAMPLES, SEED, interval
from axformer.wire.report import SpeedCell

PATIENCE = 4
"""A measurement ends after this many times :attr:`Effort.seconds`, even with few repeats or wide intervals."""
NARROW = 0.05
"""A ratio is known well enough once its interval is no wider than this share of it."""
_LOOK = 10
"""The intervals are looked at after every so many repeats."""

Inputs = Mapping[str, Tensor]


@dataclass(frozen=True)
class Effort:
    """How long a measurement runs."""

    least: int
    """Fewest repeats, unless they take longer than ``PATIENCE`` times ``seconds``."""
    most: int
    """Most repeats."""
    seconds: float
    """Seconds for each model after which the ``least`` repeats are enough."""
    warm_ups: int
    """Uncounted forward passes of each model; the first ones allocate memory."""


QUICK = Effort(least=10, most=200, seconds=0.5, warm_ups=3)
"""For the end of a pass, when the user waits for the result."""
THOROUGH = Effort(least=20, most=200, seconds=5.0, warm_ups=3)
"""For a run whose purpose is to measure speed."""


def measure_speed(models: Sequence[Any], workloads: Sequence[Workload], effort: Effort) -> list[list[SpeedCell]]:
    """Measure the cells of each model, one for each workload.

    Args:
        models: all others are compared with the first.
        workloads: what they compute.
        effort: how long each workload takes.
    """
    table = [_row(models, workload, effort) for workload in workloads]
    return [[cells[index] for cells in table] for index in range(len(models))]


def _row(models: Sequence[Any], workload: Workload, effort: Effort) -> list[SpeedCell]:
    """The cells of all models for one workload."""
    taken = take_turns(models, workload.batches, effort)
    cells = [_cell(workload, turns, model) for model, turns in zip(models, taken, strict=True)]
    return [cells[0], *(_compared(cell, taken[0], turns) for cell, turns in zip(cells[1:], taken[1:], strict=True))]


def _compared(cell: SpeedCell, first: Sequence["TimedTurn"], turns: Sequence["TimedTurn"]) -> SpeedCell:
    times, ends = times_of(first, turns)
    return cell.model_copy(update={"times": times, "times_interval": ends})


def times_of(first: Sequence["TimedTurn"], turns: Sequence["TimedTurn"]) -> tuple[float, tuple[float, float]]:
    """How many times as fast a model is as the first one, and the interval of that.

    Each repeat gives a ratio, of two turns on the same batch in a row, which other load on the machine slows down alike. Their
    median counts; its interval is the percentile bootstrap over repeats.
    """
    ratios = np.array([one.seconds / other.seconds for one, other in zip(first, turns, strict=True)])
    drawn = np.random.default_rng(SEED).choice(ratios, (RESAMPLES, len(ratios)))
    return float(np.median(ratios)), interval(np.median(drawn, axis=1))


@dataclass(frozen=True)
class TimedTurn:
    """One forward pass."""

    seconds: float
    busy: float
    """Seconds of them in which the calling thread had a processor."""


def take_turns(models: Sequence[Any], batches: Sequence[Inputs], effort: Effort) -> list[list[TimedTurn]]:
    """Time the forward passes of several models in turns, the same number for each.

    In every repeat each model computes the same batch, and every repeat starts with a different model, so that other load
    on the machine affects all models alike.

    Args:
        models: the models; each gets its inputs on its own device.
        batches: the inputs, used in rotation.
        effort: when to stop.

    Returns:
        Every forward pass of each model.
    """
    own = [[_on_device(batch, model.device) for batch in batches] for model in models]
    taken: list[list[TimedTurn]] = [[] for _ in models]
    with torch.inference_mode():
        for _ in range(effort.warm_ups):
            for model, inputs in zip(models, own, strict=True):
                model(**inputs[0])
        for repeat in range(effort.most):
            for turn in range(len(models)):
                index = (repeat + turn) % len(models)
                taken[index].append(_turn(models[index], own[index][repeat % len(batches)]))
            spent = sum(turn.seconds for turns in taken for turn in turns) / len(models)
            if is_enough(spent, repeat + 1, effort) and (spent >= PATIENCE * effort.seconds or _are_known(taken)):
                break
    return taken


def _are_known(taken: Sequence[Sequence[TimedTurn]]) -> bool:
    """Whether the ratios of all models to the first are known well enough; looked at now and then, since it takes a while."""
    first, *others = taken
    if others and len(first) % _LOOK:
        return False
    known = (times_of(first, turns) for turns in others)
    return all(high - low <= NARROW * times for times, (low, high) in known)


def is_enough(spent: float, repeats: int, effort: Effort) -> bool:
    """Whether a measurement may end after some seconds for each model."""
    return (spent >= effort.seconds and repeats >= effort.least) or spent >= PATIENCE * effort.seconds


def _cell(workload: Workload, turns: Sequence[TimedTurn], model: Any) -> SpeedCell:
    seconds = [turn.seconds for turn in turns]
    median, slow = (1000 * float(value) for value in np.quantile(seconds, [0.5, 0.95]))
    return SpeedCell(
        batch=workload.batch,
        length=workload.length,
        tokens=workload.tokens,
        p50_ms=median,
        p95_ms=slow,
        inputs_per_second=workload.batch * len(seconds) / sum(seconds),
        repeats=len(seconds),
        processor_share=min(1.0, sum(turn.busy for turn in turns) / sum(seconds)) if _is_on_processor(model) else None,
    )


def _on_device(inputs: Inputs, device: Any) -> Inputs:
    return {name: values.to(device) for name, values in inputs.items()}


def _turn(model: Any, inputs: Inputs) -> TimedTurn:
    _wait(model)
    start, busy = time.perf_counter(), time.thread_time()
    model(**inputs)
    _wait(model)
    return TimedTurn(time.perf_counter() - start, time.thread_time() - busy)


def _wait(model: Any) -> None:
    if not _is_on_processor(model):
        torch.accelerator.synchronize(torch.device(model.device))


def _is_on_processor(model: Any) -> bool:
    return torch.device(model.device).type == "cpu"
