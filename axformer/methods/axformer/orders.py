"""``order=search``: one pass in each order of the three regions, and the best of them is kept (appendix A).

The passes depend on nothing but the model and the data, so they may run one after another or on different machines. What
stands before the first block of a pass, the loss of the untouched model and the trials of hard attention, is the same in all.
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from axformer.config import Order, PassConfig
from axformer.plan.trial import Phase, Trial, Verdict

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


def passes_in(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Trials of several passes one after another, split where a pass begins."""
    passes: list[list[Trial]] = []
    for trial in trials:
        if trial.phase is Phase.BASE or not passes:
            passes.append([])
        passes[-1].append(trial)
    return passes


def opening_of(trace: Sequence[Trial]) -> list[Trial]:
    """The trials of a pass that are the same in any order."""
    return list(takewhile(lambda trial: trial.phase in (Phase.BASE, Phase.HARD_ATTENTION), trace))


def final_loss(trace: Sequence[Trial]) -> float:
    """The validation loss of what a pass leaves of the model: with a loss budget it need not be the least."""
    return _standing_losses(trace)[-1]


def least_loss(trace: Sequence[Trial]) -> float:
    """The least validation loss that the model has had in a pass."""
    return min(_standing_losses(trace))


Rank = tuple[float, ...]
"""How a pass stands beside others, the best least."""


def best_of(ranks: Sequence[Rank]) -> int:
    """Place of the pass that ranks least; among equals the first."""
    return min(range(len(ranks)), key=lambda place: ranks[place])


def _standing_losses(trace: Sequence[Trial]) -> list[float]:
    """The losses of the model as it was and as each acceptance left it."""
    return [trial.loss for trial in trace if trial.verdict in (Verdict.BASE, Verdict.ACCEPT)]
