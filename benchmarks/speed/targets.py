"""How fast a pass should be: ratios in one run on two cores, preset ``published``, all rows of each set, the same verdicts."""

from dataclasses import dataclass

from benchmarks.speed.figures import Spread, ceiling, kernels_ceiling, least_overhead, overhead, ratio
from benchmarks.speed.record import SetResult
from benchmarks.speed.steps import DYNAMIC, EARLY, PADDED, step_named

FLOAT32 = EARLY
"""The step with everything that float32 allows."""
OVERHEAD = 1.3
"""Most times the seconds that the counted operations take at the machine's matrix-multiply rate, in float32."""


@dataclass(frozen=True)
class Target:
    """A ratio to be reached."""

    set: str
    step: str
    against: str
    ratio: float


TARGETS = tuple(
    Target(name, step, against, wanted)
    for name, step, padded, dynamic in (
        ("cola", FLOAT32, 60, 8),
        ("rte", FLOAT32, 12, 5),
        ("sst2", FLOAT32, 25, 6),
    )
    for against, wanted in ((PADDED, padded), (DYNAMIC, dynamic))
)


@dataclass(frozen=True)
class Outcome:
    """What became of one target."""

    what: str
    wanted: str
    measured: Spread | None
    """Null where it was not measured."""
    by_arithmetic: Spread | None
    """What the machine would allow, from the float32 pass; null where that was not measured."""
    by_kernels: Spread | None
    """What PyTorch's kernels would allow; null where they were not timed."""
    is_met: bool


def outcomes(result: SetResult, cut: SetResult | None) -> list[Outcome]:
    """The targets of one set; that verdicts are the same is told beside them.

    Args:
        result: of the whole set.
        cut: of its cut, on which kernels were timed alone.
    """
    found = []
    for target in (one for one in TARGETS if one.set == result.name):
        measured = ratio(result, target.step, target.against)
        is_met = measured is not None and measured.median >= target.ratio
        most = ceiling(result, FLOAT32, step_named(target.step).arithmetic, target.against)
        least = None if cut is None else _least_overhead(cut, target.step)
        fastest = None if least is None else kernels_ceiling(result, FLOAT32, least, target.against)
        what, wanted = f"{target.step} over {target.against}", f"≥ {target.ratio:g}×"
        found.append(Outcome(what, wanted, measured, most, fastest, is_met))
    measured = overhead(result, FLOAT32, step_named(FLOAT32).arithmetic)
    is_met = measured is not None and measured.median <= OVERHEAD
    least = None if cut is None else _least_overhead(cut, FLOAT32)
    what, wanted = f"{FLOAT32}: seconds over operations / rate", f"≤ {OVERHEAD:g}×"
    by_kernels = None if least is None else Spread.of([least])
    found.append(Outcome(what, wanted, measured, Spread.of([1.0]), by_kernels, is_met))
    return found


def _least_overhead(cut: SetResult, step: str) -> float | None:
    """What a step's kernels take on the cut, over the operations of the float32 pass; null where they were not timed."""
    return least_overhead(cut.alone[step], cut.flops[FLOAT32]) if step in cut.alone else None
