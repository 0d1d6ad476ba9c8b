"""What all pictures of a pass share: a ground of their own, a heading, a legend, and a name for screen readers.

What can be pointed at has a tooltip, and stands in a line (``data-line``) with its neighbours: a page reads the tooltips out
and lets arrow keys go along the line and from line to line. A picture is a file of its own; ``inline`` gives it to a page that
has the style sheet itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from axformer.drawing.sheet import SHEET

WIDTH = 766
"""Units of a picture that stands alone, as many pixels where there is room."""
NARROW, WIDE = 280, 1600
"""The least and the most that a picture can be drawn for."""
EDGE = 20
"""Free on the left and on the right."""
LETTER = 6.4
"""Width of a letter, about."""
_ROW = 18
_STYLE = f"<style>{SHEET}</style>\n"


@dataclass(frozen=True)
class Canvas:
    """The frame of one picture."""

    name: str
    """Tells its ids from those of other pictures on the same page."""
    title: str
    subtitle: Sequence[str]
    """Lines below the title."""
    summary: str
    """The picture in words."""
    width: int
    """Units, as many pixels where there is room."""

    @property
    def top(self) -> int:
        """Where the heading ends."""
        return 34 + _ROW * len(self._lines())

    def drawn(self, lines: Iterable[str], height: float) -> str:
        """The text of the whole SVG file around what is drawn.

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
    """The same picture for a page that has the style sheet itself."""
    return picture.replace(_STYLE, "", 1)


def words(x: float, y: float, text: str, shade: str, anchor: str = "start") -> str:
    """A line of text, its base line at ``y``."""
    return f'<text class="{shade}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def line_of(marks: Iterable[str]) -> Iterator[str]:
    """Marks that stand side by side."""
    yield '<g data-line="">'
    yield from marks
    yield "</g>"


def legend(entries: Iterable[tuple[str, str]], y: float, width: int) -> tuple[list[str], float]:
    """Signs, each drawn around its middle, with their meanings; in as many rows as the width asks for.

    Returns:
        the SVG elements, and where the last row ends.
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
    """Sentences below a picture, and where they end."""
    lines = _wrapped(sentences, width)
    return [words(EDGE, y + _ROW * row, line, "faint") for row, line in enumerate(lines)], y + _ROW * len(lines)


def _wrapped(sentences: Iterable[str], width: int) -> list[str]:
    return [line for one in sentences for line in wrap(one, int((width - 2 * EDGE) / LETTER))]
