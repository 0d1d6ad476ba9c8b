from xml.etree import ElementTree

import pytest

from axformer.drawing.losses import LossCourse, comparison, loss_curve
from axformer.errors import InputError
from axformer.wire.finetuning import LossPoint
from tests.axformer.drawing.test_chart import SVG, assert_readable

CURVE = [
    LossPoint(step=1, epoch=0.5, loss=0.9),
    LossPoint(step=2, epoch=1.0, loss=0.7, deciding=0.8),
    LossPoint(step=3, epoch=1.5, loss=None),
    LossPoint(step=4, epoch=2.0, loss=0.5, deciding=0.85),
]


def test_both_lines_have_their_points_and_their_figures() -> None:
    drawn = loss_curve(CURVE)
    assert drawn is not None
    root = ElementTree.fromstring(drawn)
    titles = [one.text for one in root.iter(f"{SVG}title")]
    assert [title for title in titles if title and "epoch" in title] == [
        "training rows, epoch 0.5: 0.9000",
        "training rows, epoch 1: 0.7000",
        "training rows, epoch 2: 0.5000",
        "deciding rows, epoch 1: 0.8000",
        "deciding rows, epoch 2: 0.8500",
    ]
    assert "training rows: 0.9000 at first, 0.5000 at last" in drawn


def test_equal_losses_are_a_flat_line_and_one_is_none() -> None:
    flat = [point.model_copy(update={"loss": 0.0, "deciding": None}) for point in CURVE]
    drawn = loss_curve(flat)
    assert drawn is not None
    assert "<path" in drawn
    assert loss_curve(CURVE[:1]) is None


def some_courses(count: int) -> list[LossCourse]:
    """Passes that end at the same trial with the same loss."""
    return [LossCourse(f"{'ABCDEF'[place]} job", [(0, 0.5), (place + 1, 0.4)], 20) for place in range(count)]


def test_every_pass_has_a_curve_of_its_own_and_a_place_in_the_legend() -> None:
    root = ElementTree.fromstring(comparison(some_courses(6)))
    curves = [path for path in root.iter(f"{SVG}path") if path.find(f"{SVG}title") is not None]
    assert [path.findtext(f"{SVG}title") for path in curves] == [
        f"{letter} job: 0.5000 at 0 to 0.4000 at 19" for letter in "ABCDEF"
    ]
    assert len({path.attrib["d"] for path in curves}) == 6
    assert len({path.attrib["stroke-dasharray"] for path in curves}) == 6
    named = [one.text for one in root.iter(f"{SVG}text") if (one.text or "").endswith(" job")]
    assert named == [f"{letter} job" for letter in "ABCDEF"]


def test_a_pass_that_has_not_been_measured_has_no_curve_and_none_at_all_are_refused() -> None:
    measured, other = some_courses(2)
    empty = LossCourse(other.name, [], 0)
    assert_readable(comparison([measured, empty]), "courses", "A job: 0.5000 at 0 to 0.4000 at 19")
    last = comparison([empty, measured])
    assert 'class="curve-1"' in last, "the others keep their looks"
    assert 'class="curve-0"' not in last
    with pytest.raises(InputError, match="none of these jobs has been measured"):
        comparison([empty])
