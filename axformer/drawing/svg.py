"""Common parts of all pictures: background, heading, legend, and a description for screen readers.

Interactive parts have a tooltip and are grouped in lines (``data-line``): a page announces the tooltips, and arrow keys move
along a line and between lines. A picture is a complete file; ``inline`` prepares it for a page that has the style sheet.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from axformer.drawing.sheet import SHEET

WIDTH = 766
"""Width of a standalone picture in units, which are pixels if there is room."""
NARROW, WIDE = 280, 1600
"""Smallest and largest supported width."""
EDGE = 20
"""Margin on the left and on the right."""
LETTER = 6.4
"""Approximate width of a letter."""
_ROW = 18
_STYLE = f"<style>{SHEET}</style>\n"


@dataclass(frozen=True)
class Canvas:
    """The frame of one picture."""

    name: str
    """Prefix that makes its ids unique on a page."""
    title: str
    subtitle: Sequence[str]
    """Lines below the title."""
    summary: str
    """The picture in words."""
    width: int
    """Width in units, which are pixels if there is room."""

    @property
    def top(self) -> int:
        """Bottom of the heading."""
        return 34 + _ROW * len(self._lines())

    def drawn(self, lines: Iterable[str], height: float) -> str:
        """The text of the whole SVG file with these elements.

        Args:
            lines: SVG elements, below ``top``.
            height: units of the whole picture.
        """
        title, summary = f"{self.name}-title", f"{self.name}-summary"
        heading = [words(EDGE, 28, self.title, "ink title")]
        heading += [words(EDGE, 48 + _ROW * row, line, "faint") for row, line in enumerate(self._lines())]
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" class="drawn" viewBox="0 0 {self.width} {height:g}" '
                f'width="{self.width}" height="{height:g}" role="img" aria-labelledby="{title} {summary}">',
                f'<title id="{title}">{escape(self.title)}</title>',
                f'<desc id="{summary}">{escape(self.summary)}</desc>',
                f'{_STYLE}<rect class="ground" x=".5" y=".5" width="{self.width - 1}" height="{height - 1:g}" rx="8"/>',
                *heading,
                *lines,
                "</svg>",
                "",
            ]
        )

    def _lines(self) -> list[str]:
        return _wrapped(self.subtitle, self.width)


def inline(picture: str) -> str:
    """The picture for a page that has the style sheet."""
    return picture.replace(_STYLE, "", 1)


def words(x: float, y: float, text: str, shade: str, anchor: str = "start") -> str:
    """A line of text, its base line at ``y``."""
    return f'<text class="{shade}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def line_of(marks: Iterable[str]) -> Iterator[str]:
    """A line of marks, side by side."""
    yield '<g data-line="">'
    yield from marks
    yield "</g>"


def legend(entries: Iterable[tuple[str, str]], y: float, width: int) -> tuple[list[str], float]:
    """Symbols, drawn around their centres, with their meanings, in as many rows as the width requires.

    Returns:
        The SVG elements, and the bottom of the last row.
    """
    parts, x = [], float(EDGE)
    for sign, meaning in entries:
        room = 44 + LETTER * len(meaning)
        if x > EDGE and x + room - 20 > width - EDGE:
            x, y = float(EDGE), y + _ROW
        parts.append(f'<g transform="translate({x + 11:g} {y - 4:g})">{sign}</g>')
        parts.append(words(x + 29, y, meaning, "ink"))
        x += room
    return parts, y + 20


def notes(sentences: Iterable[str], y: float, width: int) -> tuple[list[str], float]:
    """Sentences below a picture, and their bottom."""
    lines = _wrapped(sentences, width)
    return [words(EDGE, y + _ROW * row, line, "faint") for row, line in enumerate(lines)], y + _ROW * len(lines)


def _wrapped(sentences: Iterable[str], width: int) -> list[str]:
    return [line for one in sentences for line in wrap(one, int((width - 2 * EDGE) / LETTER))]
