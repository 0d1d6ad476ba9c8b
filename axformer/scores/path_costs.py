"""What each model on a path costs in the task's first metric and brings in speed, and which to take for a wish."""

from collections.abc import Sequence
from dataclasses import dataclass

from axformer.wire.metrics import LOSS, LOWER_IS_BETTER, in_words, judging_metric
from axformer.wire.report import PathPoint

DATA = {"test": "held-out", "confirming": "confirming", "deciding": "deciding"}
"""Names of the data sets, the least biased first."""
_ROUNDING = 1e-9
NOTEWORTHY = 1.05
"""A model on the path that is less than this many times as fast as the kept one is not worth a word."""


@dataclass(frozen=True)
class PathModel:
    """One model on a path, beside the untouched one."""

    point: PathPoint
    value: float
    """Its metric."""
    change: float
    """Of the metric, in the unit of its figures."""
    cost: float
    """How much worse the metric is, in the same unit; negative where it is better."""
    is_best: bool
    """Whether no other model is both as fast and as good, and better in one of the two, or this is the untouched one."""

    @property
    def times(self) -> float:
        """How many times as fast it is, estimated from operations."""
        return self.point.estimated_speedup


@dataclass(frozen=True)
class Costs:
    """All models of a path, judged by one figure on one data set."""

    data: str
    """A key of ``DATA``."""
    metric: str
    models: Sequence[PathModel]
    """The untouched one first, in the order of the path."""

    @property
    def name(self) -> str:
        """The figure for people."""
        return f"{DATA[self.data]} {in_words(self.metric)}"

    @property
    def unit(self) -> str:
        """The unit of changes: points of a share, or percent of the untouched model's figure."""
        return "%" if self.metric in LOWER_IS_BETTER else "points"

    @property
    def best(self) -> list[PathModel]:
        """The models that are worth a look, from the slowest to the fastest."""
        return sorted((model for model in self.models if model.is_best), key=lambda model: model.times)

    def within(self, allowed: float) -> PathModel:
        """The fastest model that costs no more than this; there is always the untouched one.

        Args:
            allowed: in the unit of the changes, at least 0.
        """
        affordable = [model for model in self.models if model.cost <= allowed + _ROUNDING]
        return max(affordable, key=lambda model: (model.times, -model.cost))

    def at_least(self, times: float) -> PathModel | None:
        """The model of the least cost that is at least so many times as fast; None if none is."""
        fast = [model for model in self.models if model.times >= times - _ROUNDING]
        return min(fast, key=lambda model: (model.cost, -model.times), default=None)

    def beyond(self, allowed: float | None) -> PathModel | None:
        """The fastest model within what was allowed, where that is clearly faster than the kept one, else the one of the least
        cost that is; None if none is, or none was kept.

        Args:
            allowed: in the unit of the changes; None if nothing was.
        """
        kept = next((model for model in self.models if model.point.kept), None)
        if kept is None:
            return None
        affordable = self.within(max(allowed or 0.0, 0.0))
        least = NOTEWORTHY * kept.times
        return affordable if affordable.times >= least else self.at_least(least)


def told_beyond(
    path: Sequence[PathPoint], allowed: float | None, *, is_certified: bool
) -> tuple[str, PathModel] | None:
    """What else the path offers, in one sentence, and the model of which it speaks; None if nothing.

    Args:
        allowed: the points that the run was allowed to cost; None if nothing was allowed.
        is_certified: whether the kept model is certified, which the others are then not.
    """
    costs = costs_of(path)[0] if path else None
    model = None if costs is None else costs.beyond(allowed)
    if costs is None or model is None:
        return None
    without = ", without a certificate" if is_certified else ""
    price = f"{costs.name} {model.change:+.2f} {costs.unit}{without}"
    return f"The path has more: {model.times:.2f} times fewer operations, {price}.", model


def costs_of(path: Sequence[PathPoint]) -> list[Costs]:
    """The costs of a path by each data set that all its models were measured on, the least biased first.

    Args:
        path: the path of a report, the untouched model first; not empty.

    Returns:
        Of held-out and confirming data, those that there are; else of the deciding data alone, its loss where there is nothing
        more.
    """
    found: list[Costs] = []
    for data in DATA:
        figures = [measured for point in path if (measured := getattr(point, data)) is not None]
        if len(figures) < len(path) or (data == "deciding" and found):
            continue
        metric = judging_metric(figures[0], data)
        if all(metric in one for one in figures):
            found.append(_costs(data, metric, path, [one[metric] for one in figures]))
    return found or [_costs("deciding", LOSS, path, [point.loss for point in path])]


def _costs(data: str, metric: str, path: Sequence[PathPoint], values: Sequence[float]) -> Costs:
    untouched, is_lower_better = values[0], metric in LOWER_IS_BETTER
    changes = [
        100 * ((value / untouched - 1 if untouched else 0.0) if is_lower_better else value - untouched)
        for value in values
    ]
    costs = [change if is_lower_better else -change for change in changes]
    models = [
        PathModel(point, value, change + 0.0, cost + 0.0, _is_best(place, path, costs))
        for place, (point, value, change, cost) in enumerate(zip(path, values, changes, costs, strict=True))
    ]
    return Costs(data, metric, models)


def _is_best(place: int, path: Sequence[PathPoint], costs: Sequence[float]) -> bool:
    """Whether no other model is as fast and costs as little; of equal models, the first one is. The untouched model, which
    all others are measured by, always is."""
    if place == 0:
        return True
    own = (path[place].estimated_speedup, -costs[place])
    for other, point in enumerate(path):
        beside = (point.estimated_speedup, -costs[other])
        if beside != own and beside[0] >= own[0] and beside[1] >= own[1]:
            return False
        if beside == own and other < place:
            return False
    return True
