"""A path that is measured as trials are has the figures of whole forward passes of each model, in every family and task."""

import pytest

from axformer.config import make_config
from axformer.methods.confirmation import measure_path
from axformer.model.compact import compact
from axformer.plan.elements import parse
from axformer.plan.path import Point
from axformer.plan.plan import Plan
from axformer.scores.measured import measure
from tests.family_cases import Case, all_cases, checkpoint_of, data_of
from tests.tiny_families import DIMENSIONS

IDS = (
    ("layer.1.hard_attention", "layer.3.ffn"),
    ("layer.2.attention.head.1", "layer.1.ffn.neurons.3:20"),
    ("layer.3.attention",),
)


def some_points() -> list[Point]:
    """The untouched model, and three that go further and further."""
    points = [Point(0, None, 0.0, Plan.full(DIMENSIONS))]
    for seq, ids in enumerate(IDS, 1):
        plan = points[-1].plan
        for id in ids:
            plan = plan.apply(parse(id), top_k=3)
        points.append(Point(seq, ids[-1], 0.0, plan))
    return points


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_measured_as_trials_equals_whole_forward_passes(case: Case) -> None:
    checkpoint, data, points = checkpoint_of(case), data_of(case), some_points()
    config = make_config("paper", {"attention_top_k": 3})
    measured = measure_path(checkpoint, points, {"test": data}, config)
    assert measured.kept == len(points) - 1
    for point, figures in zip(points, measured.figures, strict=True):
        small = compact(checkpoint.model, checkpoint.architecture, point.plan)
        assert figures["test"] == pytest.approx(
            measure(small, checkpoint.task, data.samples).figures, rel=1e-4, abs=1e-5
        )
