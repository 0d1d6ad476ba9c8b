"""The path of a pass as the report and the API show it."""

from collections.abc import Mapping, Sequence

from axformer.methods.targets import Targets
from axformer.plan.path import Point
from axformer.scores.confidence import Figures
from axformer.wire.report import PathPoint


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
