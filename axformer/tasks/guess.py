"""Guessing: answering without looking at the inputs, the baseline that a fine-tuned model is expected to beat."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

_LEAST = 1e-6
"""Lower bound of a guessed probability, so that its logarithm is finite."""
SHARES_KEPT = 100
"""Most classes whose shares are reported, by frequency."""


@dataclass(frozen=True)
class Guess:
    """Per-sample figures of guessing, for a paired comparison with a model."""

    losses: np.ndarray
    """The loss of each sample, shape (samples,)."""
    right: np.ndarray | None = None
    """The share of each sample that the most frequent answer gets right; None if there is no right and wrong."""
    shares: Mapping[str, float] | None = None
    """The frequency of each class, the most frequent first; None if answers are not classes."""

    @property
    def figures(self) -> dict[str, float]:
        """The mean loss, and the accuracy of the most frequent answer if there is one."""
        accuracy = {} if self.right is None else {"accuracy": float(self.right.mean())}
        return {"loss": float(self.losses.mean()), **accuracy}


def guess_of_choices(expected: np.ndarray, sample: np.ndarray, samples: int, names: Sequence[str]) -> Guess:
    """Guess one of several classes; the loss is that of equal probabilities for all of them.

    That is above the entropy of the class frequencies. A model that has only learned roughly how frequent the classes are, as
    happens on small sets, therefore does not count as worse than guessing.

    Args:
        expected: the right class of each decision, shape (decisions,).
        sample: the sample of each decision.
    """
    counts = np.bincount(expected, minlength=len(names))
    return Guess(
        losses=np.full(samples, math.log(len(names))),
        right=mean_by_sample(expected == counts.argmax(), sample, samples),
        shares=_told(counts / len(expected), names),
    )


def guess_of_flags(expected: np.ndarray, names: Sequence[str]) -> Guess:
    """Guess for each class whether it applies, from its frequency; the most frequent answer is a whole set of classes.

    Args:
        expected: 1 where a class applies, shape (samples, classes).
    """
    shares = expected.mean(axis=0)
    given = np.where(expected == 1, shares, 1 - shares)  # never 0: a class that applies anywhere has a share
    sets, counts = np.unique(expected, axis=0, return_counts=True)
    usual = expected == sets[counts.argmax()]
    return Guess(losses=-np.log(given).mean(axis=1), right=usual.all(axis=1).astype(float), shares=_told(shares, names))


def guess_of_numbers(expected: np.ndarray) -> Guess:
    """Guess the mean, whose squared error is the variance; ``expected`` has shape (samples,) or (samples, numbers)."""
    numbers = expected.reshape(len(expected), -1)
    return Guess(losses=((numbers - numbers.mean(axis=0)) ** 2).mean(axis=1))


def guess_of_degrees(expected: np.ndarray) -> Guess:
    """Guess the mean of numbers between 0 and 1, of shape (samples,); the loss is the binary cross-entropy."""
    mean = np.clip(expected.mean(), _LEAST, 1 - _LEAST)
    return Guess(losses=-(expected * np.log(mean) + (1 - expected) * np.log(1 - mean)))


def guess_evenly(choices: int, samples: int) -> Guess:
    """Guess with the same probability for each of ``choices``, once or several times per sample."""
    return Guess(losses=np.full(samples, math.log(choices)))


def mean_by_sample(values: np.ndarray, sample: np.ndarray, samples: int) -> np.ndarray:
    """The mean over the decisions of each sample, 0 without any, shape (samples,); see :func:`guess_of_choices`."""
    counts = np.bincount(sample, minlength=samples)
    return np.asarray(np.bincount(sample, weights=values, minlength=samples) / np.maximum(counts, 1))


def _told(shares: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    order = np.argsort(-shares, kind="stable")[:SHARES_KEPT]
    return {names[place]: float(shares[place]) for place in order.tolist() if shares[place]}
