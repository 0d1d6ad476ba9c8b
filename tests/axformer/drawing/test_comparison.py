"""Passes side by side: a curve each, and letters that do not cover each other."""

from xml.etree import ElementTree

import pytest

from axformer.drawing.comparison import LossCourse, comparison
from axformer.errors import InputError
from tests.axformer.drawing.test_chart import SVG, assert_readable


def some_courses(count: int) -> list[LossCourse]:
    """Passes that end at the same trial with the same loss."""
    return [LossCourse("ABCDEF"[place], f"job {place}", [(0, 0.5), (place + 1, 0.4)], 20) for place in range(count)]


def test_every_pass_has_a_curve_and_a_letter_of_its_own() -> None:
    text = comparison(some_courses(6))
    root = ElementTree.fromstring(text)
    curves = [path for path in root.iter(f"{SVG}path") if path.attrib["class"].startswith("curve-")]
    assert [path.findtext(f"{SVG}title") for path in curves] == [
        f"{'ABCDEF'[place]}, job {place}: 0.5000 → 0.4000 in 20 trials" for place in range(6)
    ]
    assert len({path.attrib["d"] for path in curves}) == 6
    letters = [one for one in root.iter(f"{SVG}text") if one.attrib["class"].startswith("letter-")]
    assert [one.text for one in letters] == list("ABCDEF")
    assert len({one.attrib["x"] for one in letters}) == 6
    assert max(float(one.attrib["x"]) for one in letters) < 766 - 12


def test_a_pass_that_has_not_been_measured_has_no_curve_and_none_at_all_are_refused() -> None:
    measured, other = some_courses(2)
    empty = LossCourse("B", other.name, [], 0)
    assert_readable(comparison([measured, empty]), "courses", "A, job 0: 0.5000 → 0.4000 in 20 trials")
    with pytest.raises(InputError, match="none of these jobs has been measured"):
        comparison([empty])
