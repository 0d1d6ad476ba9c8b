"""What all reports work with: a model, its hidden states on some rows, and what bounds the work."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from axformer.analysis.labels import Labels, labels_of
from axformer.analysis.positions import Positions, positions_of
from axformer.analysis.representations import Representations, represent
from axformer.config import RunConfig
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet, prepare
from axformer.scores.confidence import CONFIDENCE, rising_metric
from axformer.scores.measured import measure
from axformer.surroundings import Surroundings
from axformer.wire.steps import Counter, StepName

_ERRORS = NormalDist().inv_cdf(CONFIDENCE)
"""Standard errors by which a figure is reliably higher, on one side."""


@dataclass(frozen=True)
class ReportBounds:
    """The most that reports take, so that memory and time are bounded; what is beyond is sampled with the seed, and said."""

    rows: int = 2000
    """Rows of each data set. An analysis of a base-size model over as many is meant to take minutes."""
    positions: int = 20_000
    """Positions of each data set, in whole rows. On disk, a base-size model's then take 400 MB."""
    design_bytes: int = 256 * 2**20
    """Bytes of the float32 matrix of all dimensions at the positions that probes are fitted on."""
    dimensions: int = 5000
    """Dimensions clustered together. Their correlations take 200 MB, and SciPy's distances as much again."""
    cka_positions: int = 5000
    """Positions that layers are compared on: several times as many as a layer is wide."""
    gradient_rows: int = 500
    """Rows that the importance of heads and the contribution of layers are measured on."""
    curve_rows: int = 400
    """Rows that each of the ten models without heads runs over, and both models of a drift."""


@dataclass(frozen=True)
class Guessing:
    """The value of guessing in one metric, so that a probe is not called as good as another where neither knows anything."""

    value: float
    """The share that the most frequent answer has right; 0 for correlations and other metrics."""
    rows: int

    def is_beaten(self, metric: float) -> bool:
        """Whether a figure is reliably better than guessing: by 1.6 standard errors."""
        spread = self.value * (1 - self.value) if self.value else 1.0
        return metric > self.value + _ERRORS * math.sqrt(spread / self.rows)


@dataclass(frozen=True)
class Represented:
    """A data set with its hidden states and labels."""

    data: DataSet
    states: Representations
    labels: Labels | None
    """None where nothing is probed."""
    positions: Positions
    """Where hidden states were read."""


@dataclass(frozen=True)
class Study:
    """One model on its rows."""

    checkpoint: Checkpoint
    config: RunConfig
    """How data is read."""
    data: Represented
    """The rows that measure."""
    train: Represented | None
    """The rows that probes learn from; None where none were given, or there is nothing to probe for."""
    metric: str
    """Name of the task's first metric."""
    model: float
    """The metric of the model itself on the rows that measure."""
    answers: Sequence[Any]
    """The model's own answers to them."""
    guessing: Guessing
    """What guessing gets on them."""
    bounds: ReportBounds = field(default_factory=ReportBounds)
    seed: int = 0
    surroundings: Surroundings = field(default_factory=Surroundings)

    def part(self, rows: int) -> DataSet:
        """Some of the rows that measure, drawn at random."""
        return sample(self.data.data, self.checkpoint, self.config, rows, self.seed)


def sample(data: DataSet, checkpoint: Checkpoint, config: RunConfig, most: int, seed: int) -> DataSet:
    """The data set, or so many of its rows, drawn at random, in the order of the file."""
    if len(data.rows) <= most:
        return data
    places = np.random.default_rng(seed).permutation(len(data.rows))[:most]
    return prepare(data.rows.at(sorted(places.tolist())), checkpoint, config)


def fitting(
    data: DataSet, checkpoint: Checkpoint, config: RunConfig, bounds: ReportBounds, seed: int
) -> tuple[DataSet, Positions]:
    """As many rows, drawn at random, as bounds take, and where they are read."""
    data = sample(data, checkpoint, config, bounds.rows, seed)
    positions = positions_of(checkpoint, data, config)
    counts = list(chain.from_iterable(map(positions.counts, data.samples.batches)))
    if sum(counts) > bounds.positions:
        rows = max(1, len(data.rows) * bounds.positions // sum(counts))
        data = sample(data, checkpoint, config, rows, seed)
        positions = positions_of(checkpoint, data, config)
    return data, positions


def represented(
    checkpoint: Checkpoint,
    sets: Sequence[tuple[DataSet, Positions]],
    directory: Path,
    around: Surroundings,
    *,
    is_probed: bool,
) -> list[Represented]:
    """The hidden states of a model on each data set, in files of a directory; with labels only if there are probes."""
    counter = Counter(StepName.REPRESENTING, sum(len(data.samples.batches) for data, _ in sets), around.on_step)
    found = []
    for number, (data, positions) in enumerate(sets):
        file = directory / f"states-{number}.npy"
        states = represent(checkpoint, data, positions, file, counter, around.check_cancelled)
        labels = labels_of(checkpoint, data) if is_probed else None
        found.append(Represented(data, states, labels, positions))
    return found


def metric_of_model(checkpoint: Checkpoint, data: DataSet) -> tuple[str, float, Sequence[Any]]:
    """The name of the task's first metric that is better when higher, its value of the model itself, and its answers."""
    measured = measure(checkpoint.model, checkpoint.task, data.samples)
    name = rising_metric(measured.figures)
    return name, measured.figures[name], measured.answers


def guessing_on(checkpoint: Checkpoint, data: DataSet, metric: str) -> Guessing:
    """What guessing gets on some rows.

    Args:
        checkpoint: the model with its task.
        data: the rows.
        metric: name of the task's metric.
    """
    encoded = data.samples.encoded
    figures = checkpoint.task.guess(encoded, checkpoint.model.config).figures
    return Guessing(figures.get(metric, 0.0) if metric != "loss" else 0.0, encoded.samples)
