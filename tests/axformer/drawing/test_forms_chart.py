"""Forms in one picture: each with its mark, its interval and a name that no other covers."""

from itertools import combinations
from xml.etree import ElementTree

import pytest

from axformer.drawing.forms import FormMark, FormSeries, forms_chart
from axformer.drawing.svg import LETTER
from axformer.errors import InputError
from tests.axformer.drawing.test_chart import SVG, assert_readable

NAMES = ("PyTorch", "ONNX", "ONNX int8")


def series(name: str, *times: float) -> FormSeries:
    """Forms that are as good as each other."""
    return FormSeries(name, [FormMark(NAMES[place], value, 84.0, (83.0, 85.0)) for place, value in enumerate(times)])


def test_every_form_has_a_mark_that_says_what_it_is_and_faster_is_further_to_the_right() -> None:
    text = forms_chart("Forms", "accuracy, %", 85.0, [series("speedup=2", 1.5, 2.0, 7.0)])
    root = ElementTree.fromstring(text)
    marks = [one for one in root.iter(f"{SVG}path") if "transform" in one.attrib]
    assert [one.findtext(f"{SVG}title") for one in marks] == [
        f"speedup=2, {name} 84.00, between 83.00 and 85.00, {times} times as fast"
        for name, times in zip(NAMES, ("1.50", "2.00", "7.00"), strict=True)
    ]
    places = [float(one.attrib["transform"].removeprefix("translate(").split()[0]) for one in marks]
    assert places == sorted(places)
    told = "; ".join(one.findtext(f"{SVG}title", "").removeprefix("speedup=2, ") for one in marks)
    assert_readable(text, "forms", f"untouched model 85.00. speedup=2: {told}")


def test_names_of_forms_at_one_place_do_not_cover_each_other() -> None:
    text = forms_chart("Forms", "accuracy, %", 85.0, [series(name, 2.0, 2.0, 2.0) for name in "abcd"])
    named = [one for one in ElementTree.fromstring(text).iter(f"{SVG}text") if one.text in NAMES]
    assert len(named) == 12
    for one, other in combinations(named, 2):
        near = abs(float(one.attrib["x"]) - float(other.attrib["x"])) < LETTER * len(str(one.text))
        assert not near or abs(float(one.attrib["y"]) - float(other.attrib["y"])) >= 14


def test_every_result_has_a_look_of_its_own() -> None:
    text = forms_chart("Forms", "accuracy, %", 85.0, [series(f"{number}", 2.0) for number in range(12)])
    marks = [one for one in ElementTree.fromstring(text).iter(f"{SVG}path") if "transform" in one.attrib]
    assert len({(one.attrib["class"], one.attrib["d"]) for one in marks}) == 12


def test_no_form_and_too_many_results_are_refused() -> None:
    for wrong in ([], [series("none")], [series(f"{number}", 2.0) for number in range(13)]):
        with pytest.raises(InputError, match="give 1 to 12 results"):
            forms_chart("Forms", "accuracy, %", 85.0, wrong)
