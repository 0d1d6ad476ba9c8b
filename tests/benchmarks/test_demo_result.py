"""What the demo says of its results together: one picture, and which file to deploy."""

from pathlib import Path
from xml.etree import ElementTree

from benchmarks.demo_result import Delivered, advice, chart_of
from tests.axformer.reporting.test_deploy_table import form, report

SLOWER = Delivered("no-worse", Path("var/one"), report(form("compact", 9.0, 0.85, (-0.01, 0.01))))
FASTER = Delivered(
    "within-points=2",
    Path("var/two"),
    report(form("compact", 6.0, 0.84, (-0.02, 0.001)), form("onnx_int8", 2.0, 0.84, (-0.02, 0.001)), points=2.0),
)
WORSE = Delivered("speedup=2", Path("var/three"), report(form("compact", 1.0, 0.5, (-0.4, -0.3))))


def test_the_fastest_form_of_all_results_that_is_as_good_is_advised_with_its_place() -> None:
    assert advice([SLOWER, FASTER, WORSE]) == (
        "Deploy var/two/onnx_int8/ (ONNX int8): 5.0 times as fast with one input, held-out accuracy 84.00 (before 85.00)."
    )


def test_where_no_form_is_faster_and_as_good_the_model_is_kept() -> None:
    assert advice([WORSE]).endswith("keep your model.")


def test_every_form_of_every_result_is_in_the_picture() -> None:
    text = chart_of([SLOWER, FASTER])
    ElementTree.fromstring(text)
    assert "no-worse, PyTorch 85.00, between 84.00 and 86.00, 1.11 times as fast" in text
    assert "within-points=2, ONNX int8 84.00, between 83.00 and 85.10, 5.00 times as fast" in text
