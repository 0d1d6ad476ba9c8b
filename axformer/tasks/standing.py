"""How a model's answers stand to the labels: how many are right, whether they have anything to do with them, and whether they
would fit better if the classes were counted in another order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import linear_sum_assignment

from axformer.tasks.guess import mean_by_sample

DEVIATIONS = 3.0
"""Standard errors beyond which a difference is not put down to chance, which explains it once in a thousand runs or less."""
MOST_CLASSES = 1000
"""Of more classes no order is looked for, since their table would not fit the memory."""
_PREFERENCE = 0.5
"""Of a row: what the order as it is has before any other, so that classes which do not occur stay where they are."""


@dataclass(frozen=True)
class ClassOrder:
    """Another order of the classes, in which the labels fit the answers better."""

    classes: tuple[int, ...]
    """The model's class for each index of a label."""
    accuracy: float
    """With it."""


@dataclass(frozen=True)
class Standing:
    """How the answers of a model stand to the labels; None if a task knows no classes."""

    causes: str
    """What to look at where the answers are worse than guesses, as the end of "look at"."""
    right: np.ndarray | None = None
    """The share of each sample that is right, shape (samples,)."""
    agreement: np.ndarray | None = None
    """The same less what answers drawn with the same shares would have right: its mean is 0 for answers that have nothing to
    do with the labels, also where all are the same (the numerator of Cohen's kappa)."""
    order: ClassOrder | None = None
    """None if the order is the best, no other is reliably better, or there is no order that could be wrong."""
    names: tuple[str, ...] = ()
    """Of the classes that an order is about."""
    is_bar: bool = True
    """Whether a model that is worse than guessing is stopped for that alone. Models of words, spans, endings and tokens are
    not, since their data often fits them less than the data of a text's label; it is said, and only answers that go against
    the labels stop them."""


class Answered(Protocol):
    """Answers next to labels, decision by decision."""

    @property
    def sample(self) -> np.ndarray:
        """The place of each decision's sample."""

    @property
    def samples(self) -> int:
        """How many there are."""

    @property
    def classes(self) -> int:
        """How many there are of these."""

    def counts(self, chosen: np.ndarray) -> np.ndarray:
        """How often a class is right and another answered, shape (classes, classes), over some decisions."""

    def right(self, order: np.ndarray) -> np.ndarray:
        """Which decisions are right if label i stands for the model's class ``order[i]``."""

    def usual(self) -> np.ndarray:
        """What the most frequent answer has right of each decision."""

    def chance(self) -> np.ndarray:
        """What answers drawn with the same shares would have right of each decision."""


@dataclass(frozen=True)
class Choices:
    """One class a decision."""

    expected: np.ndarray
    predicted: np.ndarray
    sample: np.ndarray
    samples: int
    classes: int

    def counts(self, chosen: np.ndarray) -> np.ndarray:
        pairs = self.expected[chosen] * self.classes + self.predicted[chosen]
        return np.bincount(pairs, minlength=self.classes**2).reshape(self.classes, self.classes)

    def right(self, order: np.ndarray) -> np.ndarray:
        is_right: np.ndarray = order[self.expected] == self.predicted
        return is_right

    def usual(self) -> np.ndarray:
        is_right: np.ndarray = self.expected == np.bincount(self.expected).argmax()
        return is_right

    def chance(self) -> np.ndarray:
        shares = np.bincount(self.predicted, minlength=self.classes) / len(self.predicted)
        return np.asarray(shares[self.expected])


@dataclass(frozen=True)
class Flags:
    """Any number of classes a sample, as 0 and 1 of shape (samples, classes)."""

    expected: np.ndarray
    predicted: np.ndarray

    @property
    def sample(self) -> np.ndarray:
        return np.arange(self.samples)

    @property
    def samples(self) -> int:
        return len(self.expected)

    @property
    def classes(self) -> int:
        return int(self.expected.shape[1])

    def counts(self, chosen: np.ndarray) -> np.ndarray:
        counts: np.ndarray = self.expected[chosen].T @ self.predicted[chosen]
        return counts

    def right(self, order: np.ndarray) -> np.ndarray:
        shares: np.ndarray = (self.expected == self.predicted[:, order]).mean(axis=1)
        return shares

    def usual(self) -> np.ndarray:
        shares: np.ndarray = (self.expected == (self.expected.mean(axis=0) > _EVEN)).mean(axis=1)
        return shares

    def chance(self) -> np.ndarray:
        shares = self.predicted.mean(axis=0)
        chances: np.ndarray = np.where(self.expected == 1, shares, 1 - shares).mean(axis=1)
        return chances


def agreement_of(answered: Answered) -> np.ndarray:
    """How far answers agree with labels beyond chance; see :attr:`Standing.agreement`."""
    differences = answered.right(np.arange(answered.classes)) - answered.chance()
    return mean_by_sample(differences, answered.sample, answered.samples)


def better_order(answered: Answered) -> ClassOrder | None:
    """The order of the classes that fits best, if it reliably beats the one there is, and the most frequent answer.

    It is found on every second sample and judged on the others: of the many orders that there are, the best on few samples is
    good there by chance.
    """
    classes, is_judge = answered.classes, answered.sample % 2 == 1
    if not 1 < classes <= MOST_CLASSES or not is_judge.any():
        return None
    identity, candidate = np.arange(classes), _best(answered.counts(~is_judge))
    judges = np.unique(answered.sample[is_judge])

    def judged(right: np.ndarray) -> np.ndarray:
        means: np.ndarray = mean_by_sample(right, answered.sample, answered.samples)[judges]
        return means

    fits = judged(answered.right(candidate))
    others = judged(answered.right(identity)), judged(answered.usual())
    if not all(is_reliably_positive(fits - other) for other in others):
        return None
    best = _best(answered.counts(np.ones_like(is_judge)))
    return ClassOrder(tuple(best.tolist()), float(answered.right(best).mean()))


def is_reliably_positive(differences: np.ndarray) -> bool:
    """Whether the mean of paired differences lies above 0 by more than chance.

    One sample more is assumed that says the opposite as loudly as any, so that a handful which agree prove nothing.
    """
    largest = float(np.abs(differences).max())
    if largest <= _ROUNDING:
        return False
    values = np.append(differences, -largest)
    return bool(values.mean() > DEVIATIONS * values.std(ddof=1) / np.sqrt(len(values)))


def order_in_words(names: Sequence[str], order: Sequence[int] | None = None) -> str:
    """Which class each index stands for; of many classes those first that another order moves."""
    places = list(range(len(names)))
    moved = [index for index in places if order is not None and order[index] != index] or places
    shown = places if len(places) <= _SHOWN else moved[:_SHOWN]
    listed = ", ".join(f"{index} = {names[index if order is None else order[index]][:_NAME_SHOWN]}" for index in shown)
    return listed if len(shown) == len(places) else f"{listed} and {len(places) - len(shown)} more"


_EVEN = 0.5
_ROUNDING = 1e-5
"""By so much losses may differ for no reason but the order of sums."""
_SHOWN = 10
_NAME_SHOWN = 40


def _best(counts: np.ndarray) -> np.ndarray:
    """The order that puts most answers right."""
    return np.asarray(linear_sum_assignment(counts + _PREFERENCE * np.eye(len(counts)), maximize=True)[1])
