"""A verdict looks the same on every page and in every picture, and can be told from its ground."""

import re
from pathlib import Path

import pytest

import api.pages
from axformer.drawing.marks import ACCENT, CURVES, GOOD, MARKS, SOFT, UNTRIED
from axformer.drawing.sheet import SHEET

PAGES = (Path(api.pages.__file__).parent / "static" / "pages.css").read_text()
VARIABLES = {"accent": ACCENT, "good": GOOD, "soft": SOFT, "untried": UNTRIED} | {
    f"c{place}": colour for place, colour in enumerate(CURVES)
}
GROUNDS = {"light": "#ffffff", "dark": "#15171c"}


def luminance(colour):
    """Relative luminance, as WCAG 2 has it."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("name", VARIABLES)
def test_colours_of_pages_are_those_of_pictures(name):
    assert re.findall(rf"--{name}: (#[0-9a-f]{{6}});", PAGES) == [VARIABLES[name].light, VARIABLES[name].dark]


@pytest.mark.parametrize("kind", MARKS)
@pytest.mark.parametrize("side", GROUNDS)
def test_a_mark_can_be_told_from_its_ground(kind, side):
    lighter, darker = sorted((luminance(getattr(MARKS[kind].colour, side)), luminance(GROUNDS[side])), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 3


def test_pages_take_the_style_sheet_of_the_pictures(member):
    address = re.search(r'href="(/static/\w+/pictures.css)"', member.get("/").text)
    assert address is not None
    answer = member.client.get(address[1])
    assert (answer.text, answer.headers["content-type"]) == (SHEET, "text/css; charset=utf-8")
