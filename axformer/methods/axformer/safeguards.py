"""The safeguard beside the accept rule: a gain must hold on every part of the data.

The rule looks at one validation set hundreds of times, and on a small one something always looks good. A safeguard sees the
gains of all samples: each one's loss just before a change less its loss with it, whatever ``helped_reference`` counts by.
Against the untouched model everything would look good once something had been gained.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from axformer.config import PassConfig, Safeguard
from axformer.errors import ConfigError

IsSafe = Callable[[Tensor], bool]
"""Whether a change with these gains, float64 of shape (samples,), may be accepted if the rule accepts it."""


def safeguard_of(config: PassConfig, total: int) -> IsSafe | None:
    """The safeguard of a whole pass; None where there is none.

    Args:
        config: the knobs.
        total: samples in the validation set.

    Raises:
        ConfigError: there are fewer samples than folds.
    """
    if config.safeguard is Safeguard.NONE:
        return None
    folds = folds_of(total, config.safeguard_folds, config.seed)
    return lambda gains: is_gain_on_each(gains, folds)


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
