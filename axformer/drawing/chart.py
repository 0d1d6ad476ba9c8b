"""A pass as a picture: the loss of every trial in the order of the pass, and below it the loss of the model as it stood.

Verdicts differ in form and colour. A trial that was decided early has a lower bound for a loss, and points up. The axis holds
what was close: the base, what was accepted and what was refined. Trials above or below it stand in a gutter at its edge, since
one removed block can cost more than all the rest together and would leave nothing else to see.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby

from axformer.drawing.marks import ACCENT, GOOD, LINES, MARKS, OPEN, QUIET, SOFT, Colour
from axformer.drawing.scale import Scale, labels
from axformer.drawing.svg import Canvas, words
from axformer.errors import InputError
from axformer.plan.elements import parse
from axformer.plan.trial import Phase, Trial, Verdict

_WIDTH, _HEIGHT = 766, 512
_LEFT, _RIGHT = 66, 746
_UPPER, _BAND, _LOWER = (84, 264), 286, (344, 434)
"""Top and bottom of both plots, and where the names of layers stand between them."""
_GUTTER = 14
_MARGIN = 0.2
"""Room above and below what is shown, as a share of it."""
_LEAST_SPAN = 0.02
"""The axis spans at least this share of the base's loss, so that a flat pass looks flat."""
_MOST_TICKS = 10
_MOST_NAMED = 2000
"""Above so many trials only accepted ones have a tooltip each; a picture of a long pass stays small."""
_LETTER = 6.4
"""Width of a letter, about."""


def _both(colour: Colour, declarations: str, light: str = "", dark: str = "") -> tuple[str, str]:
    """Declarations for light and for dark grounds, which may differ in more than their colour."""
    return f"{declarations.format(colour.light)};{light}", f"{declarations.format(colour.dark)};{dark}"


_SHADES = {
    "grid": ("stroke:#e6e9ed", "stroke:#21262d"),
    "base": _both(SOFT, "stroke:{};stroke-dasharray:6 4;fill:none"),
    "least": _both(ACCENT, "stroke:{};stroke-width:2;stroke-linejoin:round;fill:none"),
    "accept": _both(GOOD, "fill:{}", "stroke:#fff", "stroke:#0d1117"),
    "refine": _both(OPEN, "stroke:{};stroke-width:1.5", "fill:#fff", "fill:#0d1117"),
    "reject": _both(QUIET, "fill:none;stroke:{};stroke-width:5;stroke-linecap:round"),
    "bound": _both(QUIET, "fill:none;stroke:{};stroke-width:1.5;stroke-linecap:round"),
    "band": ("fill:#f1f4f7", "fill:#161b22"),
}


def loss_chart(trace: Sequence[Trial]) -> str:
    """The SVG text of a pass, or of its beginning while it runs.

    Args:
        trace: the trials of one pass from its base on.

    Raises:
        InputError: there is no trial.
    """
    if not trace:
        raise InputError("the trace holds no trial, so there is nothing to draw; wait for the first")
    across = Scale(0, max(len(trace) - 1, 1), _LEFT + 8, _RIGHT - 8)
    canvas = Canvas("chart", "The loss, trial by trial", describe_trace(trace), _WIDTH, _HEIGHT, _SHADES)
    return canvas.drawn(
        [
            words(_LEFT, 26, "The loss, trial by trial", "ink title"),
            words(_LEFT, 46, describe_trace(trace), "faint"),
            *_trials(trace, across),
            *_layers(trace, across),
            *_model(trace, across),
            *_legend(),
        ]
    )


def describe_trace(trace: Sequence[Trial]) -> str:
    """The chart in words."""
    counts = {verdict: sum(trial.verdict is verdict for trial in trace) for verdict in Verdict}
    early = sum(_kind(trial) == "bound" for trial in trace)
    base, last = _standing(trace)[0].loss, _standing(trace)[-1].loss
    return (
        f"{len(trace):,} trials: the untouched model, {counts[Verdict.ACCEPT]:,} accepted, {counts[Verdict.REFINE]:,} refined, "
        f"{counts[Verdict.REJECT]:,} rejected ({early:,} early). Loss {base:.4f} → {last:.4f}"
    )


def _standing(trace: Sequence[Trial]) -> list[Trial]:
    """The base and what was accepted: the trials whose loss is one that the model has had."""
    return [trial for trial in trace if trial.verdict in (Verdict.BASE, Verdict.ACCEPT)]


def _kind(trial: Trial) -> str:
    return "bound" if trial.loss_is_bound and trial.verdict is Verdict.REJECT else trial.verdict.value


def _axis(losses: Sequence[float], base: float, plot: tuple[int, int]) -> Scale:
    low, high = min(losses), max(losses)
    lacking = max(0.0, _LEAST_SPAN * abs(base) - (high - low)) or (0.0 if high > low else 1.0)
    low, high = low - lacking / 2, high + lacking / 2
    room = _MARGIN * (high - low)
    return Scale(low - room, high + room, plot[1], plot[0])


def _trials(trace: Sequence[Trial], across: Scale) -> Iterator[str]:
    """The upper plot."""
    axis = _axis([trial.loss for trial in trace if trial.verdict is not Verdict.REJECT], trace[0].loss, _UPPER)
    yield from _frame(axis, trace[0].loss)
    least = [min(trial.loss, trial.min_loss) if trial.verdict is Verdict.ACCEPT else trial.min_loss for trial in trace]
    yield _steps(enumerate(least), len(trace) - 1, axis, across)
    if any(_is_above(trial, axis) for trial in trace):
        yield words(_LEFT - 6, axis.stop - 4, "higher", "faint", "end")
    if any(_is_below(trial, axis) for trial in trace):
        yield words(_LEFT - 6, axis.start + 11, "lower", "faint", "end")
    yield from _marks(trace, axis, across)


def _model(trace: Sequence[Trial], across: Scale) -> Iterator[str]:
    """The lower plot."""
    standing = _standing(trace)
    axis = _axis([trial.loss for trial in standing], trace[0].loss, _LOWER)
    yield words(_LEFT, _LOWER[0] - 14, "Loss of the model as it stood", "ink")
    yield from _frame(axis, trace[0].loss)
    yield _steps([(trial.seq, trial.loss) for trial in standing], len(trace) - 1, axis, across)
    yield from _marks(standing[1:], axis, across)
    for seq in across.ticks(_MOST_TICKS):
        if seq == int(seq):
            yield words(across.place(seq), _LOWER[1] + 18, f"{seq:,.0f}", "faint", "middle")
    yield words(_LEFT - 6, _LOWER[1] + 18, "trial", "faint", "end")


def _frame(axis: Scale, base: float) -> Iterator[str]:
    """Lines at round losses, and the one of the untouched model."""
    ticks = axis.ticks(_MOST_TICKS // 2)
    for tick, label in zip(ticks, labels(ticks), strict=True):
        yield f'<path class="grid" d="M{_LEFT} {axis.place(tick):.1f}H{_RIGHT}"/>'
        yield words(_LEFT - 6, round(axis.place(tick) + 4, 1), label, "faint", "end")
    yield f'<path class="base" d="M{_LEFT} {axis.place(base):.1f}H{_RIGHT}"><title>untouched model {base:.4f}</title></path>'


def _steps(points: Iterable[tuple[int, float]], last: int, axis: Scale, across: Scale) -> str:
    """A line that stays at a loss until the next one takes its place."""
    path: list[str] = []
    height: float | None = None
    for seq, loss in points:
        if height != axis.place(loss):
            height = axis.place(loss)
            x = across.place(seq)
            path.append(f"H{x:.1f}V{height:.1f}" if path else f"M{x:.1f} {height:.1f}")
    return f'<path class="least" d="{"".join(path)}H{across.place(last):.1f}"/>'


def _marks(trials: Sequence[Trial], axis: Scale, across: Scale) -> Iterator[str]:
    """A mark a trial, accepted ones above all others."""
    named = len(trials) <= _MOST_NAMED
    for kind, mark in reversed(MARKS.items()):
        here = [trial for trial in trials if _kind(trial) == kind]
        places = [f"M{across.place(trial.seq):.1f} {_height(trial, axis):.1f}{mark.path}" for trial in here]
        if named or kind == "accept":
            for trial, place in zip(here, places, strict=True):
                yield f'<path class="{kind}" d="{place}"><title>{escape(_tooltip(trial))}</title></path>'
        elif places:
            yield f'<path class="{kind}" d="{"".join(places)}"/>'


def _tooltip(trial: Trial) -> str:
    loss = f"{'at least ' if trial.loss_is_bound else ''}{trial.loss:.4f}"
    told = f"{trial.seq}: {trial.element} {MARKS[_kind(trial)].verdict}, loss {loss}"
    return f"{told}, least before {trial.min_loss:.4f}, helped {trial.helped} of {trial.samples}"


def _is_above(trial: Trial, axis: Scale) -> bool:
    """A loss that is no number counts as high."""
    return not trial.loss <= axis.high


def _is_below(trial: Trial, axis: Scale) -> bool:
    return trial.loss < axis.low


def _height(trial: Trial, axis: Scale) -> float:
    """Where a trial stands, in a gutter if need be."""
    if _is_above(trial, axis):
        return axis.stop - _GUTTER / 2
    return axis.start + _GUTTER / 2 if _is_below(trial, axis) else axis.place(trial.loss)


def _layers(trace: Sequence[Trial], across: Scale) -> Iterator[str]:
    """Which layer the trials were about, as a band below them."""
    runs = [list(run) for _, run in groupby(trace[1:], key=_subject)]
    for count, run in enumerate(runs):
        left, right = across.place(run[0].seq - 0.5), across.place(run[-1].seq + 0.5)
        if count % 2 == 0:
            yield f'<rect class="band" x="{left:.1f}" y="{_BAND}" width="{right - left:.1f}" height="18"/>'
        room = right - left - _LETTER  # for a gap to the next name
        name = next((name for name in _names(_subject(run[0])) if len(name) * _LETTER < room), None)
        if name is not None:
            yield words(round((left + right) / 2, 1), _BAND + 13, name, "faint", "middle")
    yield words(_LEFT - 6, _BAND + 13, "layer", "faint", "end")


def _subject(trial: Trial) -> int | None:
    """The layer of a trial; none where hard attention was tried, which goes through them all."""
    return None if trial.phase is Phase.HARD_ATTENTION or trial.element is None else parse(trial.element).layer


def _names(layer: int | None) -> tuple[str, ...]:
    """What may stand in the band, the longest first."""
    return ("hard attention", "hard") if layer is None else (str(layer),)


def _legend() -> Iterator[str]:
    x, y = float(_LEFT), _HEIGHT - 22
    for kind, mark in MARKS.items():
        yield f'<path class="{kind}" d="M{x + 5:g} {y - 4}{mark.path}"/>{words(x + 16, y, mark.legend, "ink")}'
        x += 30 + _LETTER * len(mark.legend)
    for kind in ("least", "base"):
        yield f'<path class="{kind}" d="M{x:g} {y - 4}h22"/>{words(x + 28, y, LINES[kind], "ink")}'
        x += 42 + _LETTER * len(LINES[kind])
