"""How well a model's answers agree with the labels: how many are right, whether they are related at all, and whether another
order of the classes would fit better."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from axformer.tasks.guess import mean_by_sample

DEVIATIONS = 3.0
"""Standard errors beyond which a difference does not count as chance, which explains it at most once in a thousand runs."""
MOST_CLASSES = 1000
"""With more classes no other order is searched, since the table would not fit into memory."""
_PREFERENCE = 0.5
"""Bonus of the present order, in rows, so that classes that do not occur keep their place."""


@dataclass(frozen=True)
class ClassOrder:
    """An order of the classes in which the labels fit the answers better."""

    classes: tuple[int, ...]
    """The model's class for each index of a label."""
    accuracy: float
    """The accuracy in this order."""


@dataclass(frozen=True)
class LabelAgreement:
    """How well the answers of a model agree with the labels."""

    causes: str
    """What to check if the answers are worse than guesses, as the end of a sentence "look at ..."."""
    right: np.ndarray | None = None
    """The share of each sample that is right, shape (samples,)."""
    agreement: np.ndarray | None = None
    """``right`` minus what random answers with the same frequencies would get right. Its mean is 0 for answers unrelated to
    the labels, even if all are equal (the numerator of Cohen's kappa)."""
    order: ClassOrder | None = None
    """A reliably better order of the classes; None if there is none, or if the task has no order."""
    names: tuple[str, ...] = ()
    """Names of the classes of the order."""
    is_bar: bool = True
    """Whether being worse than guessing is reason enough to refuse a model. Tagging, span, multiple-choice and language models
    are not refused for that, since their data often fits them less well. The user is told, and only answers that contradict
    the labels stop the run."""
    scheme: str | None = None
    """Why the labels are in another scheme than the answers, in words; None if they are not."""

    @property
    def misread(self) -> str | None:
        """Why the labels reliably do not mean what the model takes them for, in words; None if they do."""
        if self.order is None:
            return self.scheme
        return (
            f"the labels seem to count the classes in another order: the model's label2id says {order_in_words(self.names)}; "
            f"the labels fit {order_in_words(self.names, self.order.classes)} (accuracy {self.order.accuracy:.4f}); give "
            "labels by name, count them as the model does, or correct label2id and id2label in the checkpoint's config.json"
        )


@dataclass(frozen=True)
class Choices:
    """One class for each decision."""

    expected: np.ndarray
    predicted: np.ndarray
    sample: np.ndarray
    """The sample of each decision."""
    samples: int
    classes: int

    def counts(self, chosen: np.ndarray) -> np.ndarray:
        """The confusion matrix of some decisions, expected by answered, shape (classes, classes)."""
        pairs = self.expected[chosen] * self.classes + self.predicted[chosen]
        return np.bincount(pairs, minlength=self.classes**2).reshape(self.classes, self.classes)

    def right(self, order: np.ndarray) -> np.ndarray:
        """Which decisions are right if label i means the model's class ``order[i]``."""
        return np.asarray(order[self.expected] == self.predicted)

    def usual(self) -> np.ndarray:
        """What the most frequent answer gets right in each decision."""
        return np.asarray(self.expected == np.bincount(self.expected).argmax())

    def chance(self) -> np.ndarray:
        """What random answers with the same frequencies would get right in each decision."""
        shares = np.bincount(self.predicted, minlength=self.classes) / len(self.predicted)
        return np.asarray(shares[self.expected])


@dataclass(frozen=True)
class Flags:
    """Any number of classes for each sample, as 0 and 1 of shape (samples, classes); members as of :class:`Choices`."""

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
        return np.asarray(self.expected[chosen].T @ self.predicted[chosen])

    def right(self, order: np.ndarray) -> np.ndarray:
        return np.asarray((self.expected == self.predicted[:, order]).mean(axis=1))

    def usual(self) -> np.ndarray:
        return np.asarray((self.expected == (self.expected.mean(axis=0) > _EVEN)).mean(axis=1))

    def chance(self) -> np.ndarray:
        shares = self.predicted.mean(axis=0)
        return np.asarray(np.where(self.expected == 1, shares, 1 - shares).mean(axis=1))


Answered = Choices | Flags
"""Answers next to labels, decision by decision."""


def agreement_of(answered: Answered) -> np.ndarray:
    """Agreement of answers and labels beyond chance; see :attr:`LabelAgreement.agreement`."""
    differences = answered.right(np.arange(answered.classes)) - answered.chance()
    return mean_by_sample(differences, answered.sample, answered.samples)


def better_order(answered: Answered, inputs: Sequence[int]) -> ClassOrder | None:
    """The best order of the classes, if it reliably beats the present order and the most frequent answer.

    It is found on every second sample and tested on the others, since the best of many orders on few samples is good there by
    chance. Copies of an input are on one side, and together one sample.

    Args:
        inputs: the first sample with the same input as each sample.
    """
    sample = np.array(inputs)[answered.sample]
    classes, is_judge = answered.classes, sample % 2 == 1
    if not 1 < classes <= MOST_CLASSES or not is_judge.any():
        return None
    identity, candidate = np.arange(classes), _best(answered.counts(~is_judge))
    judges = np.unique(sample[is_judge])

    def judged(right: np.ndarray) -> np.ndarray:
        return np.asarray(mean_by_sample(right, sample, answered.samples)[judges])

    fits = judged(answered.right(candidate))
    others = judged(answered.right(identity)), judged(answered.usual())
    if not all(is_reliably_positive(fits - other) for other in others):
        return None
    best = _best(answered.counts(np.ones_like(is_judge)))
    return ClassOrder(tuple(best.tolist()), float(answered.right(best).mean()))


def is_reliably_positive(differences: np.ndarray) -> bool:
    """Whether the mean of paired differences is above 0 by more than chance.

    One extra sample is assumed that contradicts as strongly as any, so that a few unanimous samples prove nothing.
    """
    largest = float(np.abs(differences).max())
    if largest <= _ROUNDING:
        return False
    values = np.append(differences, -largest)
    return bool(values.mean() > DEVIATIONS * values.std(ddof=1) / np.sqrt(len(values)))


def order_in_words(names: Sequence[str], order: Sequence[int] | None = None) -> str:
    """The class of each index in words; with many classes, those that another order moves come first."""
    places = list(range(len(names)))
    moved = [index for index in places if order is not None and order[index] != index] or places
    shown = places if len(places) <= _SHOWN else moved[:_SHOWN]
    listed = ", ".join(f"{index} = {names[index if order is None else order[index]][:_NAME_SHOWN]}" for index in shown)
    return listed if len(shown) == len(places) else f"{listed} and {len(places) - len(shown)} more"


_EVEN = 0.5
_ROUNDING = 1e-5
"""Losses may differ by this much because of the order of summation alone."""
_SHOWN = 10
_NAME_SHOWN = 40


def _best(counts: np.ndarray) -> np.ndarray:
    """The order with the most right answers."""
    return np.asarray(linear_sum_assignment(counts + _PREFERENCE * np.eye(len(counts)), maximize=True)[1])
