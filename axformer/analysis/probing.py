"""Probes of one study: fitted on its training rows, measured on its other rows in the task's first metric."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from axformer.analysis.labels import LabelKind, figures_of_scores
from axformer.analysis.probes import Linear, Probe, fit
from axformer.analysis.representations import CHUNK, Representations
from axformer.analysis.study import ReportBounds, Represented, Study

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
        assert self._train.labels is not None, "the task has labels to probe for"
        self._places = places_of(self._train.states, study.bounds, study.seed)
        self._labels = self._train.labels.at(self._places)

    def on(self, dimensions: Sequence[int]) -> MeasuredProbe:
        """Fit and measure a probe on some dimensions."""
        study = self._study
        study.surroundings.check_cancelled()
        began = time.monotonic()
        probe = fit(self._train.states.columns(dimensions, self._places), self._labels, study.seed)
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


def places_of(states: Representations, bounds: ReportBounds, seed: int) -> np.ndarray:
    """The training positions that every probe learns from: all, or, drawn at random, as many as the matrix of all dimensions
    may have. Probes on fewer dimensions could take more, and would look too good beside it."""
    most = max(1, bounds.design_bytes // (_BYTES * states.dimensions))
    if states.positions <= most:
        return np.arange(states.positions)
    return np.sort(np.random.default_rng(seed).permutation(states.positions)[:most])


def dimensions_of(layers: Sequence[int], hidden: int) -> list[int]:
    """The numbers of all dimensions of some hidden states."""
    return [dimension for layer in layers for dimension in range(layer * hidden, (layer + 1) * hidden)]


def scores_of(linear: Linear, states: Representations, dimensions: Sequence[int]) -> np.ndarray:
    """The scores of all positions, shape (positions, outputs), some positions at a time."""
    parts = (slice(start, start + CHUNK) for start in range(0, states.positions, CHUNK))
    return np.concatenate([linear.scores(states.columns(dimensions, part)) for part in parts])
