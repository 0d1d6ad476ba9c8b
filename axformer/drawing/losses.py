"""The losses of a training as a picture: on the training rows at every hundredth, on the deciding rows after every epoch."""

from collections.abc import Iterator, Sequence

from axformer.drawing.scale import Scale, labels
from axformer.drawing.svg import EDGE, WIDTH, Canvas, legend, line_of, words
from axformer.errors import InputError
from axformer.wire.finetuning import LossPoint

_LEFT = 66
_GAP, _HEIGHT = 14, 130
"""Space above the plot, and its height."""
_MARGIN = 0.1
"""Margin above and below the data, as a share of its range."""
_LEAST_SPAN = 0.02
"""The axis spans at least this share of the largest loss, so that a flat curve looks flat."""
_MOST_TICKS = 4
_LOOKS = {"training rows": "test", "deciding rows": "confirming"}
"""The class in the style sheet of each line."""

Line = list[tuple[float, float]]
"""Epochs and losses."""


def has_losses(curve: Sequence[LossPoint]) -> bool:
    """Whether there is a line to draw."""
    return any(len(line) > 1 for line in _lines(curve).values())


def loss_curve(curve: Sequence[LossPoint], width: int = WIDTH) -> str:
    """The SVG text of a training's losses so far.

    Args:
        curve: its points, in order.
        width: units of the picture.

    Raises:
        InputError: there are not two points of one line.
    """
    if not has_losses(curve):
        raise InputError("the training has fewer than two losses, so there is no curve to draw")
    lines = {name: line for name, line in _lines(curve).items() if line}
    values = [loss for line in lines.values() for _, loss in line]
    most, least = max(values), min(values)
    margin = max((most - least) * _MARGIN, abs(most) * _LEAST_SPAN / 2, 1e-9)
    subtitle = [f"{name}: {line[0][1]:.4f} at first, {line[-1][1]:.4f} at last" for name, line in lines.items()]
    canvas = Canvas("losses", "Losses of the training", subtitle, "; ".join(subtitle), width)
    top = canvas.top + _GAP
    upright = Scale(most + margin, least - margin, top, top + _HEIGHT)
    across = Scale(0.0, curve[-1].epoch, _LEFT, width - EDGE)
    signs = [(f'<path class="{_LOOKS[name]}" d="M-8 0H8"/>', name) for name in lines]
    entries, height = legend(signs, top + _HEIGHT + 48, width)
    drawn = [
        *_grid(upright, across, width),
        *(part for name, line in lines.items() for part in _drawn(name, line, across, upright)),
        *entries,
    ]
    return canvas.drawn(drawn, height)


def _lines(curve: Sequence[LossPoint]) -> dict[str, Line]:
    training = [(point.epoch, point.loss) for point in curve if point.loss is not None]
    deciding = [(point.epoch, point.deciding) for point in curve if point.deciding is not None]
    return {"training rows": training, "deciding rows": deciding}


def _grid(upright: Scale, across: Scale, width: int) -> Iterator[str]:
    ticks = Scale(upright.high, upright.low, 0, 1).ticks(_MOST_TICKS)
    for tick, label in zip(ticks, labels(ticks), strict=True):
        y = upright.place(tick)
        yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{width - EDGE}"/>'
        yield words(_LEFT - 8, y + 4, label, "faint", "end")
    epochs = across.ticks(_MOST_TICKS)
    for epoch, label in zip(epochs, labels(epochs), strict=True):
        yield words(across.place(epoch), upright.stop + 18, label, "faint", "middle")
    yield words(width - EDGE, upright.stop + 34, "epochs", "faint", "end")


def _drawn(name: str, line: Line, across: Scale, upright: Scale) -> Iterator[str]:
    places = [(across.place(epoch), upright.place(loss)) for epoch, loss in line]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    yield f'<path class="{_LOOKS[name]}" d="M{path}"/>'
    yield from line_of(
        f'<circle class="{_LOOKS[name]}-point" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{name}, epoch {epoch:.2f}: '
        f"{loss:.4f}</title></circle>"
        for (x, y), (epoch, loss) in zip(places, line, strict=True)
    )
