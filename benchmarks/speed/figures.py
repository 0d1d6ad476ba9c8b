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


def ceiling(result: SetResult, operations: int, arithmetic: str, against: str) -> Spread | None:
    """The ratio if these operations ran at the measured matrix-multiply rate, and nothing beside them took any time."""
    theirs, trials = runs_of(result, against), len(result.trace)
    return Spread.of(seconds_of(run, trials) * run.rates[arithmetic] / operations for run in theirs.values())


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
