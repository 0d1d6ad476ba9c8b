"""Safeguards beside the accept rule: an acceptance must be more than chance would give, or hold on every part of the data.

The rule looks at one validation set hundreds of times, and on a small one something always looks good. A safeguard sees the
gains of all samples: each one's loss just before a change less its loss with it, whatever ``helped_reference`` counts by.
Against the untouched model everything would look good once something had been gained.

``sign_test`` and ``paired`` keep the chance that a pass accepts anything at all below ``safeguard_alpha`` where nothing that
it tries makes a difference on average: each trial gets that chance divided by the number of trials that the pass can make at
most (Bonferroni's correction, which holds however trials depend on each other). The number follows from the model's shape and
the knobs alone (``progress.most_trials``), so it is known before the first trial and is the same after a pause. A search of
orders is six passes, each with this chance of its own.
"""

import math
from collections.abc import Callable

import torch
from scipy.special import bdtrc, stdtrit
from torch import Tensor

from axformer.config import PassConfig, Safeguard
from axformer.errors import ConfigError
from axformer.methods.axformer.acceptance import Rule, verdict_of
from axformer.methods.axformer.progress import most_trials
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Phase, Trial, Verdict

IsSafe = Callable[[Tensor], bool]
"""Whether a change with these gains, float64 of shape (samples,), may be accepted if the rule accepts it."""


def safeguard_of(config: PassConfig, dimensions: Dimensions, total: int) -> IsSafe | None:
    """The safeguard of a whole pass; null where there is none.

    Args:
        config: the knobs.
        dimensions: of the model.
        total: samples in the validation set.

    Raises:
        ConfigError: there are fewer samples than folds.
    """
    if config.safeguard is Safeguard.NONE:
        return None
    if config.safeguard is Safeguard.FOLDS:
        folds = folds_of(total, config.safeguard_folds, config.seed)
        return lambda gains: is_gain_on_each(gains, folds)
    alpha = config.safeguard_alpha / max(1, most_trials(dimensions, config))
    if config.safeguard is Safeguard.SIGN_TEST:
        return lambda gains: chance_of_signs(int((gains > 0).sum()), int((gains < 0).sum())) <= alpha
    return lambda gains: lower_bound(gains, alpha) > 0


def was_refused(trial: Trial, config: PassConfig) -> bool:
    """Whether a safeguard was the reason of a refusal: the rule would have accepted, the pass with these knobs did not."""
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


def chance_of_signs(helped: int, hurt: int) -> float:
    """The sign test: how likely at least so many samples are helped if each changes for better or worse by the toss of a coin.

    Exact (binomial, one-sided). Samples whose loss did not change say nothing and are not counted.
    """
    return float(bdtrc(helped - 1, helped + hurt, 0.5)) if helped else 1.0


def lower_bound(gains: Tensor, alpha: float) -> float:
    """What the mean gain is above with confidence ``1 - alpha``, by Student's t over the samples.

    Exact for gains that spread like a normal distribution, near it for many samples of any other. Of fewer than two samples
    nothing is known: minus infinity.
    """
    count = len(gains)
    if count < 2:
        return -math.inf
    error = gains.std().item() / math.sqrt(count)
    return gains.mean().item() - float(stdtrit(count - 1, 1 - alpha)) * error


def folds_of(total: int, folds: int, seed: int) -> Tensor:
    """The fold of each sample, shape (samples,): a random split into folds of equal size, give or take one sample.

    Raises:
        ConfigError: there are fewer samples than folds.
    """
    if total < folds:
        raise ConfigError(
            f"safeguard_folds={folds} is more than the {total} validation samples; take at most {total}, or more data"
        )
    fold = torch.empty(total, dtype=torch.long)
    fold[torch.randperm(total, generator=torch.Generator().manual_seed(seed))] = torch.arange(total) % folds
    return fold


def is_gain_on_each(gains: Tensor, folds: Tensor) -> bool:
    """Whether the mean gain is above 0 on every fold, given the fold of each sample."""
    sums = torch.zeros(int(folds.max()) + 1, dtype=gains.dtype).index_add_(0, folds, gains)
    return bool((sums > 0).all())
