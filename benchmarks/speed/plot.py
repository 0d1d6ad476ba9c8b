"""The speed-ups as a picture: a panel a set, a bar a step, on a logarithmic axis. Plain SVG, in light and dark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from benchmarks.speed.figures import Spread, ratio
from benchmarks.speed.record import SetResult
from benchmarks.speed.steps import PADDED, STEPS
from benchmarks.speed.targets import TARGETS

_WIDTH, _LEFT, _RIGHT = 860, 130, 90
_BAR, _GAP, _TITLE, _AXIS, _MARGIN = 16, 8, 34, 26, 16
_TICKS = (1, 2, 5)
_STYLE = """\
.ground{fill:#ffffff}.text{fill:#1b2333}.faint{fill:#5b6577}.grid{stroke:#d9dee7}.bar{fill:#2f6fb3}
.base{fill:#9aa5b8}.range{stroke:#1b2333}.target{stroke:#c2571a}.goal{fill:#c2571a}
@media (prefers-color-scheme: dark){.ground{fill:#0d1117}.text{fill:#e6edf3}.faint{fill:#9da7b3}.grid{stroke:#30363d}
.bar{fill:#58a6ff}.base{fill:#6e7681}.range{stroke:#e6edf3}.target{stroke:#f0883e}.goal{fill:#f0883e}}"""


@dataclass(frozen=True)
class _Bar:
    step: str
    speed: Spread
    target: float | None


def draw(sets: Sequence[SetResult]) -> str:
    """The picture, with the ratio over ``padded-128`` in every bar and the target, where there is one, as a line across it."""
    panels = [(one, _bars(one)) for one in sets]
    highest = max(max(bar.speed.most, bar.target or 1) for _, bars in panels for bar in bars)
    axis = _Axis(highest)
    body, top = [], _MARGIN + _TITLE
    for one, bars in panels:
        body += _panel(one, bars, top, axis)
        top += _TITLE + len(bars) * (_BAR + _GAP) + _AXIS
    label = f"Speed-up over {PADDED}, by step and set"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" role="img" aria-label="{label}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="13">',
            f"<style>{_STYLE}</style>",
            f'<rect class="ground" width="{_WIDTH}" height="{top}"/>',
            _text(_MARGIN, _MARGIN + 14, f"{label} (logarithmic)", "text", weight="bold"),
            _text(_WIDTH - _MARGIN - 75, _MARGIN + 14, "— least to most of the rounds", "faint", anchor="end"),
            _text(_WIDTH - _MARGIN, _MARGIN + 14, "| target", "goal", anchor="end"),
            *body,
            "</svg>\n",
        ]
    )


class _Axis:
    """Where a ratio stands."""

    def __init__(self, highest: float) -> None:
        self._decades = math.log10(max(highest, 2.0)) * 1.02

    def at(self, value: float) -> float:
        """The place of a ratio; what is below 1 stands at 1."""
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * max(0.0, math.log10(value)) / self._decades

    @property
    def ticks(self) -> list[int]:
        """Round ratios on the axis."""
        everything = [digit * 10**power for power in range(int(self._decades) + 1) for digit in _TICKS]
        return [tick for tick in everything if math.log10(tick) <= self._decades]


def _bars(result: SetResult) -> list[_Bar]:
    targets = {one.step: one.ratio for one in TARGETS if (one.set, one.against) == (result.name, PADDED)}
    speeds = [(step.name, ratio(result, step.name, PADDED)) for step in STEPS]
    return [
        _Bar(name, speed, targets.get(name) if result.is_whole else None) for name, speed in speeds if speed is not None
    ]


def _panel(result: SetResult, bars: Sequence[_Bar], top: float, axis: _Axis) -> list[str]:
    first = top + _TITLE - _GAP
    last = first + len(bars) * (_BAR + _GAP)
    lines = [_text(_MARGIN, top + 12, f"{result.title}, {result.rows:,} rows", "text", weight="bold")]
    for tick in axis.ticks:
        place = axis.at(tick)
        lines.append(_line(place, first, place, last, "grid"))
        lines.append(_text(place, last + 13, f"{tick}×", "faint", anchor="middle", size=11))
    for number, bar in enumerate(bars):
        lines += _drawn(bar, first + _GAP / 2 + number * (_BAR + _GAP), axis)
    return lines


def _drawn(bar: _Bar, top: float, axis: _Axis) -> list[str]:
    middle, end = top + _BAR / 2, axis.at(bar.speed.median)
    kind = "base" if bar.step == PADDED else "bar"
    furthest = max(axis.at(bar.speed.most), end)
    lines = [
        _text(_LEFT - 8, middle + 4.5, bar.step, "text", anchor="end"),
        f'<rect class="{kind}" x="{_LEFT}" y="{top:.1f}" width="{max(2.0, end - _LEFT):.1f}" height="{_BAR}"/>',
    ]
    if bar.speed.rounds > 1:
        lines.append(_line(axis.at(bar.speed.least), middle, furthest, middle, "range"))
    if bar.target is not None:
        place = axis.at(bar.target)
        lines.append(_line(place, top - 3, place, top + _BAR + 3, "target", width=2.5))
        furthest = max(furthest, place) if place < furthest + 60 else furthest
    lines.append(_text(furthest + 7, middle + 4.5, f"{bar.speed.median:.1f}×", "text"))
    return lines


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, width: float = 1) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke-width="{width}"/>'


def _text(
    x: float, y: float, text: str, kind: str, *, anchor: str = "start", weight: str = "normal", size: int = 13
) -> str:
    style = f'text-anchor="{anchor}" font-weight="{weight}" font-size="{size}"'
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
