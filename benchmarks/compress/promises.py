"""Tables of certificates, and of the certified models' metrics on held-out rows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.compress.grid import POINTS
from benchmarks.compress.reading import POINT, Content, point_at
from benchmarks.compress.tables import NONE, Lines, compressed, table

ROUNDING = 1e-9
"""Allowed rounding error of a difference of two metrics."""


@dataclass(frozen=True)
class Promise:
    """One choice: the smallest model that was certified within some points."""

    points: float
    test: str
    budget: float | None
    """None if nothing was certified, so that the untouched model is kept."""
    fall: float
    """Fall of the metric on held-out rows, in points."""
    least_fall: float
    """The lower end of the fall's 95 % interval."""

    @property
    def fell_short(self) -> bool:
        """Whether the metric fell by the points or more on the held-out rows."""
        return self.budget is not None and self.fall >= self.points - ROUNDING

    @property
    def is_refuted(self) -> bool:
        """Whether the metric fell by the points or more, and beyond what the noise of these rows explains."""
        return self.budget is not None and self.least_fall >= self.points - ROUNDING


def promises_of(found: Sequence[Content]) -> list[Promise]:
    """Every choice of every cell."""
    return [_promise(one, certified) for one in found for certified in one["certified"]]


def by_points(found: Sequence[Content]) -> Lines:
    """The numbers of certified models and of those that fell short, over all runs."""
    every = promises_of(found)
    rows = []
    for points in POINTS:
        asked = [one for one in every if one.points == points]
        tests = sorted({one.test for one in asked})
        rows += [_counted(points, test, [one for one in asked if one.test == test]) for test in tests]
        if len(tests) > 1:
            rows.append(_counted(points, "all", asked))
    return table(["points", "test", "runs", "certified", "of these", "fell short", "beyond the noise"], rows)


def by_set(found: Sequence[Content]) -> Lines:
    """The kept budgets, seed by seed."""
    rows = []
    for (model, data), group in compressed(found).items():
        confirming = group[0]["certified"][0]["rows"]
        kept = [
            ", ".join(
                _kept_text(one, certified)
                for one in group
                for certified in one["certified"]
                if _is_of(certified, points)
            )
            for points in POINTS
        ]
        rows.append([data, model, f"{confirming:,}", *kept])
    return table(["set", "model", "confirming rows", *(f"within {points:g}" for points in POINTS)], rows)


def _counted(points: float, test: str, asked: Sequence[Promise]) -> list[str]:
    kept = [one for one in asked if one.budget is not None]
    counts = Counter(one.budget for one in kept if one.budget is not None)
    budgets = ", ".join(f"{count} at {budget:g}" for budget, count in sorted(counts.items(), reverse=True))
    fell_short, refuted = sum(one.fell_short for one in kept), sum(one.is_refuted for one in kept)
    return [f"{points:g}", test, str(len(asked)), str(len(kept)), budgets or NONE, str(fell_short), str(refuted)]


def _promise(one: Content, certified: Content) -> Promise:
    budget = certified["budget"]
    point = None if budget is None else point_at(one, budget)
    value, (_, most) = (0.0, (0.0, 0.0)) if point is None else (point["change"]["value"], point["change"]["interval"])
    test = certified["test"].replace("_", " ") + (" (asymptotic)" if certified["asymptotic"] else "")
    return Promise(certified["points"], test, budget, -POINT * value, -POINT * most)


def _is_of(certified: Content, points: float) -> bool:
    return bool(certified["points"] == points)


def _kept_text(one: Content, certified: Content) -> str:
    promise = _promise(one, certified)
    return NONE if promise.budget is None else f"{promise.budget:g} ({-promise.fall:+.2f})"
