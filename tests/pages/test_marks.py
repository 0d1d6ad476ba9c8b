"""A verdict looks the same on a page and in a picture on paper."""

import re
from pathlib import Path

import pytest

import api.pages
from axformer.drawing.marks import ACCENT, GOOD, KEPT, LINES, MARKS, OPEN, QUIET, SOFT
from tests.api.conftest import trial

SHEET = (Path(api.pages.__file__).parent / "static" / "pages.css").read_text()
VARIABLES = {"accept": GOOD, "refine": OPEN, "reject": QUIET, "accent": ACCENT, "soft": SOFT, "kept": KEPT}
GROUNDS = {"light": "#ffffff", "dark": "#15171c"}


def luminance(colour):
    """Relative luminance, as WCAG 2 has it."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("name", VARIABLES)
def test_colours_of_pages_are_those_of_pictures(name):
    assert re.findall(rf"--{name}: (#[0-9a-f]{{6}});", SHEET) == [VARIABLES[name].light, VARIABLES[name].dark]


@pytest.mark.parametrize("kind", MARKS)
@pytest.mark.parametrize("side", GROUNDS)
def test_a_mark_can_be_told_from_its_ground(kind, side):
    lighter, darker = sorted((luminance(getattr(MARKS[kind].colour, side)), luminance(GROUNDS[side])), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 3


def test_the_legend_of_a_job_has_all_marks_from_which_its_chart_takes_them(member, stage):
    text = member.get(f"/jobs/{stage.running([trial(0)])}").text
    legend = text.partition('id="chart-legend"')[2].partition("</p>")[0]
    assert dict(re.findall(r'data-mark="(\w+)"[^>]* d="M0 0([^"]+)"', legend)) == {
        kind: mark.path for kind, mark in MARKS.items()
    }
    for words in (*(mark.legend for mark in MARKS.values()), *LINES.values()):
        assert words in legend
