"""The plans that a pass tried, so that single trials of it can be measured alone."""

from collections.abc import Mapping, Sequence

from axformer.plan.trial import Trial, Verdict


def plans_of(trials: Sequence[Trial]) -> dict[int, list[str]]:
    """What each trial evaluated, by its number: the elements accepted before it, and its own."""
    accepted: list[str] = []
    plans = {}
    for trial in trials:
        if trial.element is not None:
            plans[trial.seq] = [*accepted, trial.element]
            if trial.verdict is Verdict.ACCEPT:
                accepted.append(trial.element)
    return plans


def spread_out(plans: Mapping[int, list[str]], number: int, turn: int, turns: int) -> dict[int, list[str]]:
    """Some plans from all over the pass, others in every turn, as far as there are enough.

    Args:
        plans: those of the pass, in order.
        number: how many a turn.
        turn: which turn it is, from 0.
        turns: how many there are.
    """
    wanted = number * turns
    places = [len(plans) * (2 * place + 1) // (2 * wanted) for place in range(turn, wanted, turns)]
    seqs = list(plans)
    return {seqs[place]: plans[seqs[place]] for place in places}
