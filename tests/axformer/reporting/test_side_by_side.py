"""Results on one picture: what cannot share an axis is refused, and up is better whatever the metric."""

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from axformer.errors import InputError
from axformer.reporting.deploy_table import deployables
from axformer.reporting.deployable import Deployables
from axformer.reporting.side_by_side import side_by_side
from tests.axformer.drawing.test_chart import SVG
from tests.axformer.reporting.earlier import form, report


def forms(*made: dict[str, Any], base: dict[str, Any] | None = None) -> Deployables:
    found = deployables(report(*made) | ({} if base is None else {"base_form": base}))
    assert found is not None
    return found


def marks(drawn: str) -> list[tuple[str, float]]:
    """What is told of each mark, and its height above the line of the untouched model."""
    root = ElementTree.fromstring(drawn)
    (line,) = (one for one in root.iter(f"{SVG}path") if one.get("class") == "base" and "H" in one.attrib["d"][4:])
    ground = float(re.search(r"M\S+ (\S+)H", line.attrib["d"]).group(1))  # type: ignore[union-attr]
    found = [one for one in root.iter(f"{SVG}path") if "transform" in one.attrib]
    places = [float(one.attrib["transform"].split()[1].rstrip(")")) for one in found]
    return [(one.findtext(f"{SVG}title", ""), ground - place) for one, place in zip(found, places, strict=True)]


def test_every_form_of_every_result_is_drawn_by_its_change_from_its_own_untouched_model() -> None:
    better = forms(form("compact", 5.0, 0.87, (0.01, 0.03)))
    worse = forms(form("compact", 4.0, 0.80, (-0.06, -0.04)), form("onnx_int8", 2.0, 0.79))
    told, heights = zip(*marks(side_by_side([("pass", better), ("rank", worse)])), strict=True)
    assert told == (
        "pass, PyTorch 2.00, between 1.00 and 3.00, 2.00 times as fast",
        "rank, PyTorch -5.00, between -6.00 and -4.00, 2.50 times as fast",
        "rank, ONNX int8 -6.00, 5.00 times as fast",
    )
    assert heights[0] > 0 > heights[1] > heights[2]


def test_a_metric_that_should_fall_is_drawn_by_how_far_it_fell() -> None:
    lower = {"test": {"loss": 0.2}, "validation": {"loss": 0.2}, "test_change": None}
    base = form("base", 10.0, 0.85) | {"test": {"loss": 0.3}, "validation": {"loss": 0.3}}
    ((told, height),) = marks(side_by_side([("pass", forms(form("compact", 5.0, 0.8) | lower, base=base))]))
    assert told == "pass, PyTorch 0.10, 2.00 times as fast"
    assert height > 0


def test_results_that_were_measured_by_different_metrics_are_refused() -> None:
    pearson = {"test": {"loss": 0.3, "pearson": 0.8}, "test_change": None}
    other = forms(form("compact", 5.0, 0.8) | pearson, base=form("base", 10.0, 0.85) | pearson)
    with pytest.raises(InputError, match="held-out accuracy, held-out pearson"):
        side_by_side([("one", forms(form("compact", 5.0, 0.8))), ("other", other)])
    unmeasured = forms(form("compact", 5.0, 0.8) | {"speed": []})
    for nothing in ([], [("one", unmeasured)]):
        with pytest.raises(InputError, match="no form of these results"):
            side_by_side(nothing)
