"""What traces say of passes: where one ends and the next begins, and the losses of the models on their way."""

from collections.abc import Iterable, Sequence

from axformer.plan.trial import Phase, Trial, Verdict


def passes_in(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Trials of several passes one after another, split where a pass begins."""
    passes: list[list[Trial]] = []
    for trial in trials:
        if trial.phase is Phase.BASE or not passes:
            passes.append([])
        passes[-1].append(trial)
    return passes


def final_loss(trace: Sequence[Trial]) -> float:
    """The validation loss of the model that a pass leaves: after a trade it need not be the least."""
    return _standing_losses(trace)[-1]


def least_loss(trace: Sequence[Trial]) -> float:
    """The least validation loss that the model has had in a pass."""
    return min(_standing_losses(trace))


def _standing_losses(trace: Sequence[Trial]) -> list[float]:
    """The losses of the model as it was and as each acceptance left it."""
    return [trial.loss for trial in trace if trial.verdict in (Verdict.BASE, Verdict.ACCEPT)]
