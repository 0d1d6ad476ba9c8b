"""What all reports work with: a model, its hidden states on some rows, and what bounds the work."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from axformer.analysis.bounds import ReportBounds
from axformer.analysis.guessing import Guessing
from axformer.analysis.labels import Labels, labels_of
from axformer.analysis.positions import Positions, positions_of
from axformer.analysis.representations import Representations, represent
from axformer.config import RunConfig
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet, prepare
from axformer.scores.confidence import rising_metric
from axformer.scores.measured import measure
from axformer.surroundings import Surroundings
from axformer.wire.steps import Counter, StepName


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


def metric_of_model(checkpoint: Checkpoint, data: DataSet) -> tuple[str, float]:
    """The name of the task's first metric that is better when higher, and its value of the model itself."""
    figures = measure(checkpoint.model, checkpoint.task, data.samples).figures
    name = rising_metric(figures)
    return name, figures[name]
