"""Linear probes: how well a linear classifier reads the labels from some dimensions (Dalvi et al., 2020, sections 3.2 and 6).

The loss is that of the paper: cross-entropy, for numbers the squared error, plus 1e-5 times the sum of absolute weights, plus
1e-5 times the sum of squared weights. scikit-learn minimises it: ``LogisticRegression`` with the solver ``saga`` in ten epochs,
``ElasticNet`` in ten rounds over the dimensions. The paper took ten epochs of Adam, which on a few thousand rows are far from
the minimum. Columns are standardised on the training rows, which the paper does not do.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from axformer.analysis.labels import LabelKind, Labels

if TYPE_CHECKING:
    from sklearn.linear_model import ElasticNet, LogisticRegression

L1 = L2 = 1e-5
"""Weights of the two penalties (appendix of the paper)."""
EPOCHS = 10
_NEVER = -1e4
"""The score of a class that no training row has."""
_LEAST_SPREAD = 1e-6
"""Columns with a smaller standard deviation are constant and stay 0."""


@dataclass(frozen=True)
class Linear:
    """A linear map from dimensions to outputs."""

    weight: np.ndarray
    """float32 of shape (outputs, dimensions)."""
    bias: np.ndarray
    """float32 of shape (outputs,)."""

    def scores(self, x: np.ndarray) -> np.ndarray:
        """From shape (positions, dimensions) to (positions, outputs)."""
        return np.asarray(x @ self.weight.T + self.bias, dtype=np.float32)


@dataclass(frozen=True)
class Probe:
    """A fitted probe."""

    linear: Linear
    """On dimensions as they are."""
    sizes: np.ndarray
    """Absolute weights of the standardised dimensions, shape (outputs, dimensions)."""


def fit(x: np.ndarray, labels: Labels, seed: int) -> Probe:
    """Fit a probe.

    Args:
        x: float32 of shape (positions, dimensions); it is overwritten.
        labels: of the positions.
        seed: of the order in which the solver takes the rows.
    """
    from sklearn.exceptions import ConvergenceWarning  # slow to import, and only probes need it

    mean, spread = x.mean(axis=0), x.std(axis=0)
    scale = np.where(spread < _LEAST_SPREAD, 0.0, 1.0 / np.maximum(spread, _LEAST_SPREAD)).astype(np.float32)
    x -= mean
    x *= scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ten epochs are what is asked for
        weight, bias = _numbers(x, labels) if labels.kind is LabelKind.NUMBERS else _classes(x, labels, seed)
    own = (weight * scale).astype(np.float32)
    return Probe(Linear(own, (bias - own @ mean).astype(np.float32)), np.abs(weight))


def classifier(rows: int, seed: int) -> "LogisticRegression":
    """scikit-learn's classifier with the loss above for so many rows."""
    from sklearn.linear_model import LogisticRegression

    alpha = L1 + 2 * L2
    return LogisticRegression(
        C=1 / (alpha * rows), l1_ratio=L1 / alpha, solver="saga", max_iter=EPOCHS, random_state=seed
    )


def regressor() -> "ElasticNet":
    """scikit-learn's regression with the loss above, which it halves."""
    from sklearn.linear_model import ElasticNet

    alpha = (L1 + 2 * L2) / 2
    return ElasticNet(alpha=alpha, l1_ratio=L1 / (L1 + 2 * L2), max_iter=EPOCHS)


def _classes(x: np.ndarray, labels: Labels, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if labels.kind is LabelKind.FLAGS:
        return _stacked([_truth(x, flags.astype(int), seed) for flags in labels.values.T])
    if labels.kind is LabelKind.TRUTH:
        return _stacked([_truth(x, labels.values, seed)])
    model = classifier(len(x), seed).fit(x, labels.values)
    weight = np.zeros((labels.outputs, x.shape[1]), dtype=np.float32)
    bias = np.full(labels.outputs, _NEVER, dtype=np.float32)
    if len(model.classes_) == 2:  # one logit for the second of two
        weight[model.classes_[1]], bias[model.classes_] = model.coef_[0], (0.0, model.intercept_[0])
    else:
        weight[model.classes_], bias[model.classes_] = model.coef_, model.intercept_
    return weight, bias


def _truth(x: np.ndarray, values: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
    """The logit of yes; one that is sure if all training rows say the same."""
    if values.min() == values.max():
        return np.zeros(x.shape[1], dtype=np.float32), -_NEVER if values[0] else _NEVER
    model = classifier(len(x), seed).fit(x, values)
    return model.coef_[0], model.intercept_[0]


def _numbers(x: np.ndarray, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
    models = [regressor().fit(x, numbers) for numbers in labels.values.T]
    return _stacked([(model.coef_, model.intercept_) for model in models])


def _stacked(parts: Sequence[tuple[np.ndarray, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Weights and biases of one estimator for each output."""
    weight, bias = zip(*parts, strict=True)
    return np.stack(weight).astype(np.float32), np.array(bias, dtype=np.float32)
