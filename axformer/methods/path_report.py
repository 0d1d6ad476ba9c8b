"""The path of a pass as reports and the API tell it."""

from collections.abc import Mapping, Sequence

from axformer.methods.targets import Targets
from axformer.plan.path import Point
from axformer.scores.confidence import Figures
from axformer.wire.report import PathPoint


def path_report(
    points: Sequence[Point], figures: Sequence[Mapping[str, Figures]], kept: int, targets: Targets
) -> list[PathPoint]:
    """Every point with what is known of it.

    Args:
        figures: of each point, by the name of the data; empty mappings where nothing was measured.
        kept: the place of the point that is kept.
        targets: what counts parameters and operations.
    """
    told = []
    for place, (point, measured) in enumerate(zip(points, figures, strict=True)):
        estimate = targets.estimate(point.plan)
        told.append(
            PathPoint(
                seq=point.seq,
                element=point.element,
                loss=point.loss,
                confirming=measured.get("confirming"),
                test=measured.get("test"),
                parameters=targets.parameters(point.plan),
                encoder_parameters=targets.encoder_parameters(point.plan),
                operations=estimate.operations,
                encoder_operations=targets.encoder_operations(point.plan),
                estimated_speedup=estimate.estimated_speedup,
                kept=place == kept,
            )
        )
    return told
