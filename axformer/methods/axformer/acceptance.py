"""The accept rule (Algorithm 1, lines 4 and 19) as pure functions of numbers, and of bounds of them.

A trial may be decided before it is measured to the end: as soon as nothing that is still possible would change its verdict.

A trade after the gains (``tolerance``), which the paper does not have, puts a budget in the place of the least loss in both
lines and asks for no majority: it is known to hurt. The budget stands still whatever has been accepted, so a pass never goes
over it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from axformer.config import PassConfig, Safeguard
from axformer.plan.trial import Phase, Trial, Verdict


@dataclass(frozen=True)
class Rule:
    """What a trial is judged by."""

    min_loss: float
    """Least mean validation loss seen so far."""
    total: int
    """Samples in the validation set."""
    majority_fraction: float | None
    """Strictly more than this share of the samples must be helped (Alg. 1 line 4: 0.5); None asks for none."""
    loss_margin: float = 1.0
    """The loss must fall below this many times ``min_loss``; 1 is the paper's rule."""
    refine_margin: float | None = None
    """An element below this many times ``min_loss`` has its parts tried (Alg. 1 line 19); None where it has none."""
    budget: float | None = None
    """A mean loss that stands in the place of ``min_loss`` in both lines; None is the paper's rule."""

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
    """The one verdict that is still possible, or None while there are several.

    The verdict depends on loss and helped samples through three thresholds only, and monotonously. So it is certain where
    all corners of what is possible agree.
    """
    verdicts = {verdict_of(loss, helped, rule) for loss in bounds.loss for helped in bounds.helped}
    return verdicts.pop() if len(verdicts) == 1 else None


def refused_by_safeguard(trace: Sequence[Trial], config: PassConfig) -> int | None:
    """Trials that the rule would have accepted and the pass did not because of its safeguard; None where it has none."""
    if config.safeguard is Safeguard.NONE:
        return None
    return sum(was_refused(trial, config) for trial in trace)


def was_refused(trial: Trial, config: PassConfig) -> bool:
    """Whether a safeguard was the reason of a refusal."""
    is_kept = trial.verdict in (Verdict.REFINE, Verdict.REJECT)
    if config.safeguard is Safeguard.NONE or not is_kept or trial.loss_is_bound or trial.phase is Phase.TRADE:
        return False
    assert trial.helped is not None, "of the base alone nobody asks"
    rule = Rule(
        min_loss=trial.min_loss,
        total=trial.total,
        majority_fraction=config.majority_fraction,
        loss_margin=config.coarse_margin if trial.phase in (Phase.LAYER, Phase.BLOCK) else 1.0,
    )
    return verdict_of(trial.loss, trial.helped, rule) is Verdict.ACCEPT
