"""The accept rule (Algorithm 1, lines 4 and 19) as pure functions of numbers, and of bounds of them; and when a pass may stop.

A trial may be decided before it is measured to the end: as soon as nothing that is still possible would change its verdict.

A budget lets loss go for size, which the paper does not: it takes the place of the least loss in both lines. So what is within
the budget is accepted, or its parts are tried. Most samples must be helped all the same: the paper has this half of the rule
against overfitting, and a looser loss makes it no less needed. Both lines stand still then, whatever has been accepted, so a
pass never goes over its budget. A trade after the gains (``tolerance``) has a budget too, and asks for no majority: it is known
to hurt.
"""

from dataclasses import dataclass

from axformer.plan.trial import Verdict


@dataclass(frozen=True)
class Rule:
    """What a trial is judged by."""

    min_loss: float
    """Least mean validation loss seen so far."""
    total: int
    """Samples in the validation set."""
    majority_fraction: float | None
    """Strictly more than this share of the samples must be helped (Alg. 1 line 4: 0.5); null asks for none."""
    loss_margin: float = 1.0
    """The loss must fall below this many times ``min_loss``; 1 is the paper's rule."""
    refine_margin: float | None = None
    """An element below this many times ``min_loss`` has its parts tried (Alg. 1 line 19); null where it has none."""
    budget: float | None = None
    """A mean loss that stands in the place of ``min_loss`` in both lines; null is the paper's rule."""

    @property
    def line(self) -> float:
        """The loss that margins are counted from."""
        return self.min_loss if self.budget is None else self.budget


@dataclass(frozen=True)
class Bounds:
    """What is known of a trial."""

    loss: tuple[float, float]
    """Between which values its mean loss lies, both possible."""
    helped: tuple[int, int]
    """The same for the samples whose loss went down against the reference."""


def verdict_of(loss: float, helped: int, rule: Rule) -> Verdict:
    """The verdict over a trial that is measured to the end.

    Args:
        loss: mean validation loss with the change.
        helped: samples whose loss went down against the reference.
    """
    share = rule.majority_fraction
    if loss < rule.loss_margin * rule.line and (share is None or helped > share * rule.total):
        return Verdict.ACCEPT
    return verdict_of_kept(loss, rule)


def verdict_of_kept(loss: float, rule: Rule) -> Verdict:
    """The verdict over a trial that is not accepted, whether by the rule or by a safeguard: whether its parts are tried."""
    is_refined = rule.refine_margin is not None and loss < rule.refine_margin * rule.line
    return Verdict.REFINE if is_refined else Verdict.REJECT


def decided(bounds: Bounds, rule: Rule) -> Verdict | None:
    """The one verdict that is still possible, or null while there are several.

    The verdict depends on loss and helped samples through three thresholds only, and monotonously. So it is certain where
    all corners of what is possible agree.
    """
    verdicts = {verdict_of(loss, helped, rule) for loss in bounds.loss for helped in bounds.helped}
    return verdicts.pop() if len(verdicts) == 1 else None


@dataclass(frozen=True)
class Goal:
    """How far a pass goes; without any part it goes to its end."""

    size: float | None = None
    """Share of the parameters that may be left."""
    speedup: float | None = None
    """How many times fewer operations there should be."""


def is_met(goal: Goal, size: float, speedup: float) -> bool:
    """Whether a pass may stop: all that its goal names is reached, and it names something.

    Args:
        size: share of the parameters that is left.
        speedup: operations of the untouched model for each that is left.
    """
    wanted = []
    if goal.size is not None:
        wanted.append(size <= goal.size)
    if goal.speedup is not None:
        wanted.append(speedup >= goal.speedup)
    return bool(wanted) and all(wanted)
