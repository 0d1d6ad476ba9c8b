"""The safeguard next to the accept rule: a gain must hold on every fold of the data.

The rule is applied to one validation set hundreds of times, and on a small set some trial always looks good by chance. The
safeguard gets the gain of every sample: its loss just before the change minus its loss after it, whatever
``helped_reference`` says. Gains against the untouched model would all look good as soon as anything had been gained.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from axformer.config import PassConfig
from axformer.errors import ConfigError

IsSafe = Callable[[Tensor], bool]
"""Takes per-sample gains, float64 of shape (samples,); says whether a trial that the rule accepts may be accepted."""


def safeguard_of(config: PassConfig, total: int) -> IsSafe | None:
    """The safeguard of a pass; None if the knobs ask for none.

    Args:
        config: the knobs.
        total: samples in the validation set.

    Raises:
        ConfigError: there are fewer samples than folds.
    """
    if config.safeguard is None:
        return None
    folds = folds_of(total, config.safeguard, config.seed)
    return lambda gains: is_gain_on_each(gains, folds)


def folds_of(total: int, folds: int, seed: int) -> Tensor:
    """The fold of each sample, shape (samples,): a random split into folds whose sizes differ by at most one.

    Raises:
        ConfigError: there are fewer samples than folds.
    """
    if total < folds:
        raise ConfigError(
            f"safeguard={folds} is more than the {total} validation samples; take at most {total}, or more data"
        )
    fold = torch.empty(total, dtype=torch.long)
    fold[torch.randperm(total, generator=torch.Generator().manual_seed(seed))] = torch.arange(total) % folds
    return fold


def is_gain_on_each(gains: Tensor, folds: Tensor) -> bool:
    """Whether the mean gain is above 0 on every fold, given the fold of each sample."""
    sums = torch.zeros(int(folds.max()) + 1, dtype=gains.dtype).index_add_(0, folds, gains)
    return bool((sums > 0).all())
