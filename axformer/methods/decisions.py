"""What a run has decided so far: its trials, and what follows from them."""

from collections.abc import Mapping, Sequence

from axformer.config import RunConfig
from axformer.methods.base import plan_of
from axformer.methods.confirmation import MeasuredPath, note_of
from axformer.methods.targets import Targets
from axformer.plan.elements import Dimensions
from axformer.plan.path import Point, points_of
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.scores.confidence import Figures
from axformer.wire.answer_sheet import AnswerSheet
from axformer.wire.report import PathPoint
from axformer.wire.verdicts import Certificate


class Decisions:
    """The trials so far. They are added to :attr:`trace`, and after the last one :attr:`measured`; the rest follows."""

    def __init__(self, config: RunConfig, dimensions: Dimensions, targets: Targets) -> None:
        self._config = config
        self._dimensions = dimensions
        self.targets = targets
        """The targets of the run; they count parameters and operations."""
        self.trace: list[Trial] = []
        self.measured: MeasuredPath | None = None
        """The measured path of the finished run; None if there is no data for it or it was not asked for."""

    @property
    def points(self) -> list[Point]:
        """The models on the path, the untouched one first; empty before the first trial."""
        kept, refits = self._config.attention_kept, self._config.needs.fitting
        return points_of(self.trace, self._dimensions, kept, keeps_bias=refits) if self.trace else []

    @property
    def plan(self) -> Plan:
        """The plan of the trials. Once the path is measured (``confirm``), it ends at the chosen point."""
        if self.measured is not None:
            return self.measured.point.plan
        return plan_of(self.trace, self._dimensions, self._config)

    @property
    def note(self) -> str | None:
        """What the user should know about how the run ended; None if there is nothing to say."""
        notes = [self.targets.note(self.plan)]
        if self.measured is not None:
            notes.append(note_of(self.measured, self._config))
        return "; ".join(note for note in notes if note is not None) or None

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the model that is kept; None unless ``within_points`` chose it."""
        return None if self.measured is None else self.measured.certificate

    @property
    def sheet(self) -> AnswerSheet | None:
        """The answers of the path to rows that certify; None without unlabelled rows."""
        return None if self.measured is None else self.measured.sheet

    @property
    def path(self) -> list[PathPoint]:
        """The path, for the report."""
        if self.measured is not None:
            return path_report(self.measured.points, self.measured.figures, self.measured.kept, self.targets)
        points = self.points
        return path_report(points, [{} for _ in points], len(points) - 1, self.targets)


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
        report.append(
            PathPoint(
                seq=point.seq,
                element=point.element,
                loss=point.loss,
                deciding=None if point.figures is None else point.figures.metrics,
                confirming=measured.get("confirming"),
                unlabelled=measured.get("unlabelled"),
                test=measured.get("test"),
                parameters=targets.parameters(point.plan),
                encoder_parameters=targets.encoder_parameters(point.plan),
                operations=targets.operations(point.plan),
                encoder_operations=targets.encoder_operations(point.plan),
                estimated_speedup=targets.speedup(point.plan),
                kept=index == kept,
            )
        )
    return report
