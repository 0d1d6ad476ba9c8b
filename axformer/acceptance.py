"""The accept rule (Algorithm 1, lines 4 and 19) as pure functions of numbers."""

from axformer.trial import Verdict


def accepted(
    loss: float, min_loss: float, helped: int, total: int, *, majority_fraction: float, loss_margin: float = 1.0
) -> bool:
    """Whether a change stays: the mean loss falls below its minimum and more than a majority of samples are helped.

    Args:
        loss: mean validation loss with the change.
        min_loss: least mean validation loss seen so far.
        helped: samples whose loss went down against the reference.
        total: samples in the validation set.
        majority_fraction: strictly more than this share of the samples must be helped (Alg. 1 line 4: 0.5).
        loss_margin: the loss must fall below ``loss_margin * min_loss``; 1 is the paper's rule.
    """
    return loss < loss_margin * min_loss and helped > majority_fraction * total


def worth_refining(loss: float, min_loss: float, *, refine_margin: float) -> bool:
    """Whether the parts of a kept element are tried: it is not important enough to be left whole (Alg. 1 line 19)."""
    return loss < refine_margin * min_loss


def verdict_of(*, is_accepted: bool, is_refined: bool) -> Verdict:
    """The word for the two decisions above."""
    if is_accepted:
        return Verdict.ACCEPT
    return Verdict.REFINE if is_refined else Verdict.REJECT
