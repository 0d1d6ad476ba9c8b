"""The accept rule (Algorithm 1, lines 4 and 19) as pure functions of numbers, and of bounds on them.

A trial may be decided before all samples are measured: as soon as the remaining samples cannot change its verdict.

The trade after the gains (``tolerance``) is not in the paper. It replaces the smallest loss by a budget in both lines, and
requires no majority, since it is known to hurt. The budget does not depend on what has been accepted, so a pass never exceeds
it.
"""

from dataclasses import dataclass

from axformer.config import PassConfig
from axformer.plan.trial import Phase, Trial, Verdict


@dataclass(frozen=True)
class Rule:
    """The thresholds of a trial."""

    min_loss: float
    """Smallest mean validation loss so far."""
    helped_above: float | None
    """Strictly more than this many samples must be helped (Alg. 1 line 4: half of them); None requires none."""
    loss_margin: float = 1.0
    """The loss must be below this many times ``min_loss``; 1 is the paper's rule."""
    refine_margin: float | None = None
    """If the loss is below this many times ``min_loss``, the parts of a kept element are tried (Alg. 1 line 19); None if it has
    no parts."""
    budget: float | None = None
    """A mean loss that replaces ``min_loss`` in both lines; None for the paper's rule."""

    @property
    def line(self) -> float:
        """The loss that margins are counted from."""
        return self.min_loss if self.budget is None else self.budget


@dataclass(frozen=True)
class Bounds:
    """Bounds on the outcome of a trial that is still being measured."""

    loss: tuple[float, float]
    """Smallest and largest possible mean loss."""
    helped: tuple[int, int]
    """Smallest and largest possible number of samples whose loss is below the reference."""


def verdict_of(loss: float, helped: int, rule: Rule) -> Verdict:
    """The verdict on a trial that was measured to the end.

    Args:
        loss: mean validation loss with the change.
        helped: number of samples whose loss is below the reference.
    """
    is_helpful = rule.helped_above is None or helped > rule.helped_above
    if loss < rule.loss_margin * rule.line and is_helpful:
        return Verdict.ACCEPT
    return verdict_of_kept(loss, rule)


def verdict_of_kept(loss: float, rule: Rule) -> Verdict:
    """The verdict on a trial that the rule or a safeguard does not accept: whether its parts are tried."""
    is_refined = rule.refine_margin is not None and loss < rule.refine_margin * rule.line
    return Verdict.REFINE if is_refined else Verdict.REJECT


def decided(bounds: Bounds, rule: Rule) -> Verdict | None:
    """The only verdict that is still possible; None while several are.

    The verdict depends on the loss and on the helped samples through three thresholds only, and monotonically. So it is certain
    if all corners of the bounds agree.
    """
    verdicts = {verdict_of(loss, helped, rule) for loss in bounds.loss for helped in bounds.helped}
    return verdicts.pop() if len(verdicts) == 1 else None


def was_refused(trial: Trial, config: PassConfig) -> bool:
    """Whether a trial was refused because of the safeguard or a condition."""
    is_kept = trial.verdict in (Verdict.REFINE, Verdict.REJECT)
    if not config.is_guarded or not is_kept or trial.loss_is_bound or trial.phase is Phase.TRADE:
        return False
    assert trial.helped is not None, "only the base trial has none"
    rule = Rule(
        min_loss=trial.min_loss,
        helped_above=config.majority_fraction * trial.total,
        loss_margin=config.variant.coarse_margin if trial.phase in (Phase.LAYER, Phase.BLOCK) else 1.0,
    )
    return verdict_of(trial.loss, trial.helped, rule) is Verdict.ACCEPT
