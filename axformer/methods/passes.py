"""The passes of a run, their results so far, and the choice between them: one pass, or six with ``order=search``."""

from collections.abc import Mapping, Sequence

from axformer.config import RunConfig
from axformer.methods.confirmation import MeasuredPath, note_of
from axformer.methods.targets import Rank, Targets
from axformer.methods.traces import final_loss
from axformer.plan.elements import Dimensions
from axformer.plan.path import Point, points_of
from axformer.plan.plan import Plan
from axformer.plan.trial import Phase, Trial
from axformer.scores.confidence import Figures
from axformer.wire.report import OrderResult, PathPoint
from axformer.wire.verdicts import Certificate


class Passes:
    """The passes so far. Trials are added one by one, and :attr:`measured` after the last pass; the rest follows from them."""

    def __init__(self, configs: Sequence[RunConfig], dimensions: Dimensions, targets: Targets) -> None:
        self.configs = configs
        """One config for each pass."""
        self._dimensions = dimensions
        self.targets = targets
        """The targets of the run; they count parameters and operations."""
        self.traces: list[list[Trial]] = []
        """The trials of each pass that has begun, in the order of the configs."""
        self.measured: list[MeasuredPath] = []
        """The measured path of each finished pass; empty if there is no data for it or it was not asked for."""

    def add(self, trial: Trial) -> None:
        """Add the next trial. A trial of the untouched model begins a pass."""
        if trial.phase is Phase.BASE:
            self.traces.append([])
        self.traces[-1].append(trial)

    def points(self) -> list[list[Point]]:
        """The path of each pass that has begun."""
        return [self._points(index) for index in range(len(self.traces))]

    @property
    def config(self) -> RunConfig:
        """The knobs of the pass that is kept."""
        return self.configs[self._best()]

    @property
    def trace(self) -> Sequence[Trial]:
        """The trials of the pass that is kept."""
        return self.traces[self._best()] if self.traces else []

    @property
    def plan(self) -> Plan:
        """The plan of the pass that is kept. Once the pass is measured (``confirm``), it ends at the chosen point."""
        return self._end(self._best()).plan if self.traces else Plan.full(self._dimensions)

    @property
    def note(self) -> str | None:
        """What the user should know about how the run ended; None if there is nothing to say."""
        notes = [self.targets.note(self.plan)]
        if self.measured:
            notes.append(note_of(self.measured[self._best()], self.config))
        return "; ".join(note for note in notes if note is not None) or None

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the pass that is kept; None unless ``within_points`` chose the model."""
        return self.measured[self._best()].certificate if self.measured else None

    @property
    def path(self) -> list[PathPoint]:
        """The path of the pass that is kept, for the report."""
        index = self._best()
        if index < len(self.measured):
            measured = self.measured[index]
            return path_report(measured.points, measured.figures, measured.kept, self.targets)
        points = self._points(index)
        return path_report(points, [{} for _ in points], len(points) - 1, self.targets)

    @property
    def orders(self) -> list[OrderResult] | None:
        """The result of each order; None if the run has one pass."""
        if len(self.configs) == 1:
            return None
        return [
            OrderResult(
                order=config.pass_name,
                loss=self._loss(index),
                trials=len(trace),
                seconds=trace[-1].seconds,
                parameters=self.targets.parameters(self._end(index).plan),
                encoder_parameters=self.targets.encoder_parameters(self._end(index).plan),
                kept=index == self._best(),
            )
            for index, (config, trace) in enumerate(zip(self.configs, self.traces, strict=False))
        ]

    def _best(self) -> int:
        """Index of the pass that is kept: the first with the lowest rank."""
        return best_of([self._rank(index) for index in range(len(self.traces))])

    def _rank(self, index: int) -> Rank:
        return self.targets.rank(self._end(index).plan, self._loss(index))

    def _loss(self, index: int) -> float:
        """The loss by which a pass is compared with others."""
        confirmed = self.measured[index].loss if index < len(self.measured) else None
        return final_loss(self.traces[index]) if confirmed is None else confirmed

    def _end(self, index: int) -> Point:
        """The last point of a pass, or the chosen one once the pass is measured."""
        return self.measured[index].point if index < len(self.measured) else self._points(index)[-1]

    def _points(self, index: int) -> list[Point]:
        config = self.configs[index]
        return points_of(self.traces[index], self._dimensions, config.attention_kept, keeps_bias=config.needs.fitting)


def best_of(ranks: Sequence[Rank]) -> int:
    """Index of the lowest rank; the first if several are equal."""
    return min(range(len(ranks)), key=lambda index: ranks[index])


def path_report(
    points: Sequence[Point], figures: Sequence[Mapping[str, Figures]], kept: int, targets: Targets
) -> list[PathPoint]:
    """Describe every point.

    Args:
        figures: figures of each point by data set; empty mappings where nothing was measured.
        kept: index of the point that is kept.
        targets: counts parameters and operations.
    """
    report = []
    for index, (point, measured) in enumerate(zip(points, figures, strict=True)):
        estimate = targets.estimate(point.plan)
        report.append(
            PathPoint(
                seq=point.seq,
                element=point.element,
                loss=point.loss,
                deciding=None if point.figures is None else point.figures.metrics,
                confirming=measured.get("confirming"),
                test=measured.get("test"),
                parameters=targets.parameters(point.plan),
                encoder_parameters=targets.encoder_parameters(point.plan),
                operations=estimate.operations,
                encoder_operations=targets.encoder_operations(point.plan),
                estimated_speedup=estimate.estimated_speedup,
                kept=index == kept,
            )
        )
    return report
