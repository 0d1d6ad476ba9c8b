"""Probes of one study: fitted on its training rows, measured on its other rows in the task's first metric."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from axformer.analysis.labels import LabelKind, figures_of_scores
from axformer.analysis.probes import Linear, Probe, fit
from axformer.analysis.representations import CHUNK, Representations
from axformer.analysis.study import Represented, Study

NEAR = 0.99
"""A probe with this share of the oracle's metric is as good (Dalvi et al., section 6.1)."""
_BYTES = 4


@dataclass(frozen=True)
class MeasuredProbe:
    """A probe with what it is worth."""

    probe: Probe
    metric: float
    scores: np.ndarray
    """Of the rows that measure, shape (positions, outputs)."""
    seconds: float
    """Time to fit it."""


class Probing:
    """Fits and measures probes."""

    def __init__(self, study: Study) -> None:
        """
        Args:
            study: with training rows and labels.
        """
        assert study.train is not None, "probes learn from training rows"
        self._study = study
        self._train: Represented = study.train

    def on(self, dimensions: Sequence[int]) -> MeasuredProbe:
        """Fit and measure a probe on some dimensions."""
        study, train = self._study, self._train
        study.surroundings.check_cancelled()
        assert train.labels is not None, "the task has labels to probe for"
        places = self._places(len(dimensions))
        began = time.monotonic()
        labels = train.labels if len(places) == train.states.positions else train.labels.at(places)
        probe = fit(train.states.columns(dimensions, places), labels, study.seed)
        seconds = time.monotonic() - began
        scores = scores_of(probe.linear, study.data.states, dimensions)
        figures = figures_of_scores(
            study.checkpoint.task, study.data.data.samples.encoded, study.data.states.counts, scores
        )
        return MeasuredProbe(probe, figures[study.metric], scores, seconds)

    def of_layers(self, layers: Sequence[int]) -> MeasuredProbe:
        """Fit and measure a probe on all dimensions of some hidden states."""
        return self.on(dimensions_of(layers, self._train.states.hidden))

    def is_near(self, metric: float, oracle: float) -> bool:
        """Whether a probe is as good as the oracle: reliably better than guessing, with 99 % of the oracle's metric."""
        return self._study.guessing.is_beaten(metric) and metric >= min(oracle, NEAR * oracle)

    def by_class(self, scores: np.ndarray) -> dict[str, float] | None:
        """The share of each class's positions that scores tell right; None where answers are no classes."""
        labels = self._study.data.labels
        assert labels is not None, "the task has labels to probe for"
        if labels.kind is not LabelKind.CLASS:
            return None
        right, names = scores.argmax(axis=1) == labels.values, self._study.checkpoint.model.config.id2label
        return {str(names[index]): float(right[labels.values == index].mean()) for index in np.unique(labels.values)}

    def _places(self, dimensions: int) -> np.ndarray:
        """The training positions whose design matrix is within bounds, drawn at random."""
        most, count = self._study.bounds.design_bytes // (_BYTES * dimensions), self._train.states.positions
        if count <= most:
            return np.arange(count)
        return np.sort(np.random.default_rng(self._study.seed).permutation(count)[: max(most, 1)])


def dimensions_of(layers: Sequence[int], hidden: int) -> list[int]:
    """The numbers of all dimensions of some hidden states."""
    return [dimension for layer in layers for dimension in range(layer * hidden, (layer + 1) * hidden)]


def scores_of(linear: Linear, states: Representations, dimensions: Sequence[int]) -> np.ndarray:
    """The scores of all positions, shape (positions, outputs), some positions at a time."""
    parts = (slice(start, start + CHUNK) for start in range(0, states.positions, CHUNK))
    return np.concatenate([linear.scores(states.columns(dimensions, part)) for part in parts])
