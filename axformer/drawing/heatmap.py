"""A matrix of numbers as a picture: the higher a number, the stronger its cell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from axformer.drawing.svg import EDGE, LETTER, WIDTH, Canvas, line_of, words
from axformer.errors import InputError

_GAP, _BELOW = 28, 46
_MOST_HEIGHT, _LEAST_HEIGHT = 30, 12
"""Height of a row in units."""
_WRITTEN = 34
"""Least width of a cell that holds its number."""
_STRONG = 0.75
"""From this strength on, numbers are written in the colour of the background."""
_LABEL_LETTERS = 24
"""Longer names of rows are cut."""


@dataclass(frozen=True)
class Heatmap:
    """A matrix with its words."""

    name: str
    """Prefix that makes its ids unique on a page."""
    title: str
    subtitle: Sequence[str]
    rows: Sequence[str]
    """Names of the rows, from the top down."""
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    row_axis: str
    column_axis: str
    least: float
    """The number of an empty cell."""
    most: float
    """The number of a full one."""
    form: str = ".2f"
    """How numbers are written."""


def heatmap(matrix: Heatmap) -> str:
    """The SVG text of a matrix.

    Raises:
        InputError: it is empty.
    """
    if not matrix.values or not matrix.values[0]:
        raise InputError("the matrix has no numbers, so there is nothing to draw")
    shown = [_shortened(name) for name in matrix.rows]
    left = EDGE + LETTER * max(map(len, shown)) + 26
    cell = (WIDTH - EDGE - left) / len(matrix.columns)
    height = max(_LEAST_HEIGHT, min(_MOST_HEIGHT, cell))
    flat = [value for row in matrix.values for value in row]
    summary = (
        f"{matrix.title}: {len(matrix.rows)} rows ({matrix.row_axis}), {len(matrix.columns)} columns ({matrix.column_axis}), "
        f"from {min(flat):{matrix.form}} to {max(flat):{matrix.form}}"
    )
    canvas = Canvas(matrix.name, matrix.title, matrix.subtitle, summary, WIDTH)
    top = canvas.top + _GAP
    drawn: list[str] = []
    for index, row in enumerate(matrix.values):
        y = top + index * height
        drawn.append(words(left - 6, round(y + height / 2 + 4, 1), shown[index], "faint", "end"))
        drawn += line_of(_cells(matrix, index, row, (left, y), (cell, height)))
    bottom = top + len(matrix.values) * height
    drawn += _names(matrix.columns, left, cell, bottom + 16)
    drawn.append(words((left + WIDTH - EDGE) / 2, bottom + 36, matrix.column_axis, "ink", "middle"))
    drawn.append(words(EDGE, top - 8, matrix.row_axis, "ink"))
    return canvas.drawn(drawn, bottom + _BELOW)


def _cells(
    matrix: Heatmap, index: int, row: Sequence[float], corner: tuple[float, float], size: tuple[float, float]
) -> Iterator[str]:
    (left, y), (cell, height) = corner, size
    for place, value in enumerate(row):
        x = left + place * cell
        strength = _strength(matrix, value)
        said = f"{matrix.row_axis} {matrix.rows[index]}, {matrix.column_axis} {matrix.columns[place]}: {value:{matrix.form}}"
        yield (
            f'<rect class="heat" fill-opacity="{strength:.2f}" x="{x:.1f}" y="{y:.1f}" width="{max(cell - 1, 1):.1f}" '
            f'height="{height - 1:.1f}"><title>{escape(said)}</title></rect>'
        )
        if cell >= _WRITTEN:
            shade = "on-heat" if strength >= _STRONG else "ink"
            text = words(
                round(x + cell / 2, 1), round(y + height / 2 + 4, 1), f"{value:{matrix.form}}", shade, "middle"
            )
            yield text.replace("<text ", '<text pointer-events="none" ', 1)


def _strength(matrix: Heatmap, value: float) -> float:
    span = matrix.most - matrix.least
    return min(1.0, max(0.0, (value - matrix.least) / span)) if span > 0 else 0.0


def _names(columns: Sequence[str], left: float, cell: float, y: float) -> Iterator[str]:
    """The names of columns, as many as there is room for."""
    room = LETTER * max(map(len, columns)) + 6
    every = max(1, -(-int(room) // max(1, int(cell))))
    for place in range(0, len(columns), every):
        yield words(round(left + (place + 0.5) * cell, 1), y, columns[place], "faint", "middle")


def _shortened(name: str) -> str:
    return name if len(name) <= _LABEL_LETTERS else f"{name[: _LABEL_LETTERS - 1]}…"
