from xml.etree import ElementTree

from axformer.drawing.lines import loss_curve
from axformer.wire.finetuning import LossPoint
from tests.axformer.drawing.test_chart import SVG

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
