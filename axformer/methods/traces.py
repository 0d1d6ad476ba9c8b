"""Reading traces: where each pass begins, and the losses of the models it went through."""

from collections.abc import Iterable, Sequence

from axformer.plan.trial import Phase, Trial, Verdict


def passes_in(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Split the trials of consecutive passes, one list for each pass."""
    passes: list[list[Trial]] = []
    for trial in trials:
        if trial.phase is Phase.BASE or not passes:
            passes.append([])
        passes[-1].append(trial)
    return passes


def final_loss(trace: Sequence[Trial]) -> float:
    """The validation loss of the model that a pass ends with; after a trade it may be above the lowest."""
    return _standing_losses(trace)[-1]


def least_loss(trace: Sequence[Trial]) -> float:
    """The lowest validation loss of any model in a pass."""
    return min(_standing_losses(trace))


def _standing_losses(trace: Sequence[Trial]) -> list[float]:
    """The losses of the untouched model and after each acceptance."""
    return [trial.loss for trial in trace if trial.verdict in (Verdict.BASE, Verdict.ACCEPT)]
