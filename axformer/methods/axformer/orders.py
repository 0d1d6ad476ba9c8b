"""``order=search``: one pass in each order of the three regions; the best one is kept (appendix A).

Each pass depends only on the model and the data. The trials before the first block of a pass (the untouched model and hard
attention) are the same in all passes.
"""

from collections.abc import Sequence
from itertools import takewhile

from axformer.config import Order, PassConfig, RunConfig
from axformer.plan.trial import Phase, Trial

SEARCHED_ORDERS = (
    Order.TOP_MIDDLE_BOTTOM,
    Order.TOP_BOTTOM_MIDDLE,
    Order.MIDDLE_TOP_BOTTOM,
    Order.MIDDLE_BOTTOM_TOP,
    Order.BOTTOM_TOP_MIDDLE,
    Order.BOTTOM_MIDDLE_TOP,
)
"""All permutations of the regions in the order in which they run, the default first."""


def pass_configs(config: PassConfig) -> list[PassConfig]:
    """The config of each pass: six for ``order=search``, otherwise one."""
    if config.order is not Order.SEARCH:
        return [config]
    return [config.model_copy(update={"order": order}) for order in SEARCHED_ORDERS]


def passes_of(config: RunConfig) -> Sequence[RunConfig]:
    """The config of each pass of a run of any method."""
    return pass_configs(config) if isinstance(config, PassConfig) else [config]


def opening_of(trace: Sequence[Trial]) -> list[Trial]:
    """The first trials of a pass, which are the same in every order."""
    return list(takewhile(lambda trial: trial.phase in (Phase.BASE, Phase.HARD_ATTENTION), trace))
