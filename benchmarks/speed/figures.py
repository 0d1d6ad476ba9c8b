"""Figures from runs: medians over rounds, and ratios within a round."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.speed.record import Run, SetResult


@dataclass(frozen=True)
class Spread:
    """A figure that was measured once a round."""

    median: float
    least: float
    most: float
    rounds: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread | None":
        """Of the values of all rounds; null where there is none."""
        known = list(values)
        return cls(statistics.median(known), min(known), max(known), len(known)) if known else None

    def scaled(self, factor: float) -> "Spread":
        """All of it times a number."""
        return Spread(self.median * factor, self.least * factor, self.most * factor, self.rounds)


def runs_of(result: SetResult, step: str) -> dict[int, Run]:
    """A step's runs by round."""
    return {turn: run for turn, runs in enumerate(result.rounds) for run in runs if run.step == step}


def seconds_of(run: Run, trials: int) -> float:
    """What a pass takes: measured, or the median of single trials times the number of trials."""
    if run.seconds is not None:
        return run.seconds
    return trials * statistics.median(one.seconds for one in run.evaluations)


def seconds(result: SetResult, step: str) -> Spread | None:
    """What a pass takes."""
    return Spread.of(seconds_of(run, len(result.trace)) for run in runs_of(result, step).values())


def ratio(result: SetResult, step: str, against: str) -> Spread | None:
    """How many times as long the other step takes, from rounds that have both."""
    ours, theirs = runs_of(result, step), runs_of(result, against)
    trials = len(result.trace)
    return Spread.of(
        seconds_of(theirs[turn], trials) / seconds_of(run, trials) for turn, run in ours.items() if turn in theirs
    )


def overhead(result: SetResult, step: str, arithmetic: str) -> Spread | None:
    """Seconds over those that the counted operations take at the rate that the same process measured."""
    counted, trials = result.flops.get(step), len(result.trace)
    runs = runs_of(result, step).values()
    return (
        None
        if counted is None
        else Spread.of(seconds_of(run, trials) * run.rates[arithmetic] / counted for run in runs)
    )


def least_overhead(alone: Run, flops: int) -> float:
    """Seconds that the kernels of a pass take by themselves, over those of float32 operations at the rate of the same core.

    What is beside the kernels, Python and cores that wait for each other, takes no time in it.

    Args:
        alone: the pass with its kernels timed.
        flops: operations of the float32 pass.
    """
    return sum(alone.kinds.values()) * alone.rates["float32"] / flops


def kernels_ceiling(result: SetResult, step: str, least: float, against: str) -> Spread | None:
    """The ratio if nothing but kernels took time, and as much over the operations of ``step`` as on the cut.

    Args:
        least: of the cut, by :func:`least_overhead`.
    """
    arithmetic = ceiling(result, step, "float32", against)
    return None if arithmetic is None else arithmetic.scaled(1 / least)


def ceiling(result: SetResult, step: str, arithmetic: str, against: str) -> Spread | None:
    """The ratio if nothing but arithmetic took time, or in low precision, if nothing that is not multiplied changed.

    In float32 the counted operations of ``step`` run at the measured matrix-multiply rate, and what is beside them takes no
    time. In another arithmetic they run at its rate, and what is beside them takes as long as in the same round's float32 pass.
    """
    counted, trials = result.flops.get(step), len(result.trace)
    if counted is None:
        return None
    ours, theirs = runs_of(result, step), runs_of(result, against)
    floors = {turn: counted / run.rates[arithmetic] for turn, run in ours.items()}
    if arithmetic != "float32":
        beside = {turn: seconds_of(run, trials) - counted / run.rates["float32"] for turn, run in ours.items()}
        floors = {turn: floor + max(0.0, beside[turn]) for turn, floor in floors.items()}
    return Spread.of(seconds_of(theirs[turn], trials) / floor for turn, floor in floors.items() if turn in theirs)


def rates(result: SetResult, arithmetic: str) -> list[float]:
    """All measured matrix-multiply rates, in operations a second."""
    return [run.rates[arithmetic] for runs in result.rounds for run in runs]


def peak_bytes(result: SetResult, step: str) -> int:
    """The most memory that any run of a step held."""
    return max(run.peak_bytes for run in runs_of(result, step).values())


def device_peak_bytes(result: SetResult, step: str) -> int | None:
    """The same on the accelerator; null on a CPU."""
    known = [run.device_peak_bytes for run in runs_of(result, step).values() if run.device_peak_bytes is not None]
    return max(known) if known else None
