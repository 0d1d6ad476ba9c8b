"""Matrices and lines hold every number, in words too, and say so if there is none."""

from xml.etree import ElementTree

import pytest

from axformer.drawing.heatmap import Heatmap, heatmap
from axformer.drawing.lines import Line, LineChart, lines_chart
from axformer.errors import InputError

SVG = "{http://www.w3.org/2000/svg}"


def matrix(values: list[list[float]], rows: list[str], columns: list[str]) -> Heatmap:
    return Heatmap("heat", "Title & more", ["below"], rows, columns, values, "layer", "head", 0.0, 1.0)


def titles(picture: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(picture).iter(f"{SVG}title")]


def test_every_cell_is_there_and_stronger_the_higher_its_number() -> None:
    picture = heatmap(matrix([[0.0, 0.25], [0.5, 2.0]], ["<a>", "a name that is much too long for a row"], ["x", "y"]))
    cells = [one for one in ElementTree.fromstring(picture).iter(f"{SVG}rect") if one.get("class") == "heat"]
    assert [float(cell.get("fill-opacity") or 0) for cell in cells] == [0.0, 0.25, 0.5, 1.0]
    assert "layer <a>, head y: 0.25" in titles(picture)
    assert "from 0.00 to 2.00" in picture


def test_narrow_cells_hold_no_numbers() -> None:
    wide, narrow = (heatmap(matrix([[0.5] * count], ["0"], ["0"] * count)) for count in (4, 40))
    assert wide.count(">0.50</text>") == 4
    assert narrow.count(">0.50</text>") == 0


def test_lines_hold_their_points_and_levels() -> None:
    chart = LineChart(
        "probes", "Probes", [], "layers", "accuracy", [Line("probe", [(0, 0.5), (1, 0.75)])], [("oracle", 0.8)]
    )
    picture = lines_chart(chart)
    assert {"probe, layers 0: 0.5000", "probe, layers 1: 0.7500", "oracle"} <= set(titles(picture))
    assert "oracle (0.8000)" in picture
    assert ">0.5</text>" in picture  # of the vertical axis
    ticks = [
        one.text for one in ElementTree.fromstring(picture).iter(f"{SVG}text") if one.get("text-anchor") == "middle"
    ]
    assert ticks == ["0", "1", "layers"]


def test_one_point_and_equal_points_are_drawn() -> None:
    for points in ([(0.0, 1.0)], [(0.0, 1.0), (1.0, 1.0)]):
        assert "<circle" in lines_chart(LineChart("one", "One", [], "x", "y", [Line("it", points)]))


def test_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="no numbers"):
        heatmap(matrix([], [], []))
    with pytest.raises(InputError, match="0 lines with 0 points"):
        lines_chart(LineChart("none", "None", [], "x", "y", []))
