"""``order=search``: one pass in each order of the three regions, and the best of them is kept (appendix A).

The passes depend on nothing but the model and the data, so they may run one after another or on different machines. What
stands before the first block of a pass, the loss of the untouched model and the trials of hard attention, is the same in all.
"""

from collections.abc import Sequence
from itertools import takewhile

from axformer.config import Order, PassConfig
from axformer.plan.trial import Phase, Trial

SEARCHED_ORDERS = (
    Order.TOP_MIDDLE_BOTTOM,
    Order.TOP_BOTTOM_MIDDLE,
    Order.MIDDLE_TOP_BOTTOM,
    Order.MIDDLE_BOTTOM_TOP,
    Order.BOTTOM_TOP_MIDDLE,
    Order.BOTTOM_MIDDLE_TOP,
)
"""All permutations of the regions, in the order in which they are run; the default comes first."""


def pass_configs(config: PassConfig) -> list[PassConfig]:
    """The passes that these knobs ask for: six for ``order=search``, else one."""
    if config.order is not Order.SEARCH:
        return [config]
    return [config.model_copy(update={"order": order}) for order in SEARCHED_ORDERS]


def opening_of(trace: Sequence[Trial]) -> list[Trial]:
    """The trials of a pass that are the same in any order."""
    return list(takewhile(lambda trial: trial.phase in (Phase.BASE, Phase.HARD_ATTENTION), trace))
