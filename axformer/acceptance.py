"""The accept rule (Algorithm 1, lines 4 and 19) as pure functions of numbers, and of bounds of them.

A trial may be decided before it is measured to the end: as soon as nothing that is still possible would change its verdict.
"""

from dataclasses import dataclass

from axformer.trial import Verdict


@dataclass(frozen=True)
class Rule:
    """What a trial is judged by."""

    min_loss: float
    """Least mean validation loss seen so far."""
    total: int
    """Samples in the validation set."""
    majority_fraction: float
    """Strictly more than this share of the samples must be helped (Alg. 1 line 4: 0.5)."""
    loss_margin: float = 1.0
    """The loss must fall below this many times ``min_loss``; 1 is the paper's rule."""
    refine_margin: float | None = None
    """An element below this many times ``min_loss`` has its parts tried (Alg. 1 line 19); null where it has none."""


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
    if loss < rule.loss_margin * rule.min_loss and helped > rule.majority_fraction * rule.total:
        return Verdict.ACCEPT
    is_refined = rule.refine_margin is not None and loss < rule.refine_margin * rule.min_loss
    return Verdict.REFINE if is_refined else Verdict.REJECT


def decided(bounds: Bounds, rule: Rule) -> Verdict | None:
    """The one verdict that is still possible, or null while there are several.

    The verdict depends on loss and helped samples through three thresholds only, and monotonously. So it is certain where
    all corners of what is possible agree.
    """
    verdicts = {verdict_of(loss, helped, rule) for loss in bounds.loss for helped in bounds.helped}
    return verdicts.pop() if len(verdicts) == 1 else None
