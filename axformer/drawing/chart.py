"""The chart of a pass: the loss of every trial in order, and below it the loss of the model.

Verdicts differ in shape and colour. A trial that was rejected early has a lower bound instead of a loss, which would look
better than it is, so it stands in a band of its own above the plot. The axis covers the base and the accepted and refined
trials. Trials beyond it are drawn in a gutter at its edge, since one removed block can cost more than all the rest together and
would flatten everything else. What follows the trial that was kept is veiled.

For a long pass, a sample of the rejected trials suffices; accepted and refined trials and the counts must be complete.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from axformer.drawing.marks import LINES, MARKS, DrawnTrial, kind_of, measured
from axformer.drawing.scale import LEFT, Axes, Scale, fitted
from axformer.drawing.svg import EDGE, LETTER, WIDTH, Canvas, legend, line_of, words
from axformer.errors import InputError
from axformer.plan.elements import ElementKind, is_of_encoder, label_of, parse
from axformer.plan.trial import Verdict

_GAP, _UPPER, _BETWEEN, _LOWER = 20, 180, 80, 90
"""Space above the upper plot; its height; space between the plots for the names of layers; height of the lower plot."""
_GUTTER = 14
_EARLY = 24
"""Height of the band of trials that were rejected early."""
_MARGIN = 0.2
"""Margin above and below the data, as a share of its range."""
_LEAST_SPAN = 0.02
"""The axis spans at least this share of the base's loss, so that a flat pass looks flat."""
_MOST_TICKS = 5
_SPOT = 2.0
"""What lies closer than this, in units, cannot be told apart."""
_MOST_NAMED = 2000
"""With more marks of rejected trials than this, they have no tooltips, to keep the picture small."""


@dataclass(frozen=True)
class TrialCounts:
    """Counts of a whole pass."""

    trials: int
    """Including the base."""
    accepted: int
    refined: int
    rejected: int
    early: int
    """Rejected trials with a lower bound instead of a loss."""

    @classmethod
    def of(cls, trials: Sequence[DrawnTrial]) -> "TrialCounts":
        """Count all trials of a pass."""
        kinds = [kind_of(trial) for trial in trials]
        early = kinds.count("bound")
        return cls(len(kinds), kinds.count("accept"), kinds.count("refine"), kinds.count("reject") + early, early)


def loss_chart(
    trials: Sequence[DrawnTrial], tally: TrialCounts | None = None, width: int = WIDTH, *, kept: int | None = None
) -> str:
    """The SVG text of a pass, or of its beginning while it runs.

    Args:
        trials: trials of one pass from its base on; some rejected ones may be left out.
        tally: counts of the whole pass, if trials are left out.
        width: units of the picture.
        kept: number of the trial whose model is the result, if later ones were accepted too; None if unknown.

    Raises:
        InputError: there is no trial.
    """
    if not trials:
        raise InputError("the trace holds no trial, so there is nothing to draw; wait for the first")
    tally = tally or TrialCounts.of(trials)
    summary = describe_trace(trials, tally)
    canvas = Canvas("chart", "The loss, trial by trial", [summary], summary, width)
    top = canvas.top + _GAP + (_GUTTER + _EARLY if tally.early else 0)
    lower = top + _UPPER + _BETWEEN
    across = Scale(0, max(tally.trials - 1, 1), LEFT + 8, width - EDGE - 8)
    signs, height = legend(_signs(), lower + _LOWER + 48, width)
    drawn = [
        *_trials(trials, across, (top, top + _UPPER)),
        *_layers(trials, across, top + _UPPER + 22),
        *_model(trials, across, (lower, lower + _LOWER)),
        *_after(trials, kept, across, (top - (_GUTTER + _EARLY if tally.early else 0), lower + _LOWER)),
        *signs,
    ]
    return canvas.drawn(drawn, height)


def describe_trace(trials: Sequence[DrawnTrial], tally: TrialCounts | None = None) -> str:
    """The chart in words."""
    tally = tally or TrialCounts.of(trials)
    standing = _standing(trials)
    left_out = tally.trials - len(trials)
    return (
        f"{tally.trials:,} trials: the untouched model, {tally.accepted:,} accepted, {tally.refined:,} refined, "
        f"{tally.rejected:,} rejected ({tally.early:,} early). Loss {standing[0].loss:.4f} → {standing[-1].loss:.4f}"
        + (f". {left_out:,} of the rejected ones are not drawn" if left_out else "")
    )


def _standing(trials: Sequence[DrawnTrial]) -> list[DrawnTrial]:
    """The base and the accepted trials, whose losses the model actually had."""
    return [trial for trial in trials if trial.verdict in (Verdict.BASE, Verdict.ACCEPT)]


def _axes(losses: Sequence[float], base: float, across: Scale, bounds: tuple[float, float]) -> Axes:
    """Axes that cover these losses between a top and a bottom; ``base`` sets the least span."""
    upright = fitted(losses, _LEAST_SPAN * abs(base), _MARGIN, bounds[1], bounds[0])
    return Axes(across, upright, LEFT, across.stop + 8)


def _place(trial: DrawnTrial, axes: Axes) -> tuple[float, float]:
    """The position of a trial, in the band or a gutter if necessary; a NaN loss counts as high."""
    x, up = axes.across.place(trial.seq), axes.upright
    if kind_of(trial) == "bound":
        return x, up.stop - _GUTTER - _EARLY / 2
    if not trial.loss <= up.high:
        return x, up.stop - _GUTTER / 2
    return x, up.start + _GUTTER / 2 if trial.loss < up.low else up.place(trial.loss)


def _trials(trials: Sequence[DrawnTrial], across: Scale, bounds: tuple[float, float]) -> Iterator[str]:
    """The upper plot."""
    base = trials[0].loss
    axes = _axes([trial.loss for trial in trials if trial.verdict != Verdict.REJECT], base, across, bounds)
    up, ended = axes.upright, [trial for trial in trials if kind_of(trial) != "bound"]
    if len(ended) < len(trials):
        top = up.stop - _GUTTER - _EARLY
        yield f'<rect class="band" x="{LEFT}" y="{top:g}" width="{axes.right - LEFT:g}" height="{_EARLY}"/>'
        yield words(LEFT - 6, top + _EARLY / 2 + 4, "early", "faint", "end")
    gutters = []
    if any(not trial.loss <= up.high for trial in ended):
        gutters.append(up.stop)
        yield words(LEFT - 6, up.stop - 4, "higher", "faint", "end")
    if any(trial.loss < up.low for trial in ended):
        gutters.append(up.start)
        yield words(LEFT - 6, up.start + 11, "lower", "faint", "end")
    yield from axes.grid(_MOST_TICKS, unlabelled=gutters)
    yield axes.level(base, title=f"untouched model {base:.4f}")
    least = [
        (one.seq, min(one.loss, one.min_loss) if one.verdict == Verdict.ACCEPT else one.min_loss) for one in trials
    ]
    yield f'<path class="least" d="{_steps(least, axes)}H{across.stop:.1f}"/>'
    yield from line_of(_marks(trials, axes))


def _after(trials: Sequence[DrawnTrial], kept: int | None, across: Scale, bounds: tuple[float, float]) -> Iterator[str]:
    """A line at the trial that was kept, and a veil over what follows it; nothing where no later one was accepted."""
    if kept is None or all(trial.seq <= kept for trial in _standing(trials)):
        return
    x, (top, bottom) = across.place(kept), bounds
    yield f'<rect class="veil" x="{x:.1f}" y="{top:g}" width="{across.stop + 8 - x:.1f}" height="{bottom - top:g}"/>'
    yield f'<path class="kept-line" d="M{x:.1f} {top - 4:g}V{bottom:g}"/>'
    is_right = x < (across.start + across.stop) / 2
    yield words(x + (5 if is_right else -5), top - 6, f"kept: trial {kept}", "ink", "start" if is_right else "end")


def _model(trials: Sequence[DrawnTrial], across: Scale, bounds: tuple[float, float]) -> Iterator[str]:
    """The lower plot."""
    standing, base = _standing(trials), trials[0].loss
    axes = _axes([trial.loss for trial in standing], base, across, bounds)
    yield words(EDGE, bounds[0] - 14, "Loss of the model as it stood", "ink")
    yield from axes.grid(_MOST_TICKS)
    yield axes.level(base, title=f"untouched model {base:.4f}")
    path = _steps([(trial.seq, trial.loss) for trial in standing], axes)
    yield f'<path class="least" d="{path}H{across.stop:.1f}"/>'
    yield from line_of(_marks(standing[1:], axes))
    yield from axes.numbers(are_counts=True)
    yield words(LEFT - 6, bounds[1] + 18, "trial", "faint", "end")


def _steps(points: Sequence[tuple[float, float]], axes: Axes) -> str:
    """The path of a line that stays at a value until the next point; at least one."""
    at_spot = {round(x / _SPOT): (x, y) for x, y in (axes.place(*point) for point in points)}
    (start, height), *others = at_spot.values()
    path = [f"M{start:.1f} {height:.1f}"]
    for x, y in others:
        path.append(f"H{x:.1f}" if y == height else f"H{x:.1f}V{y:.1f}")
        height = y
    return "".join(path)


def _marks(trials: Sequence[DrawnTrial], axes: Axes) -> Iterator[str]:
    """One mark per trial, accepted ones on top."""
    spots: dict[str, dict[tuple[int, int], tuple[DrawnTrial, str]]] = {kind: {} for kind in MARKS}
    for trial in trials:
        kind = kind_of(trial)
        if kind in spots:
            x, y = _place(trial, axes)
            spots[kind][round(x / _SPOT), round(y / _SPOT)] = (trial, f"M{x:.1f} {y:.1f}{MARKS[kind].path}")
    named = len(spots["reject"]) + len(spots["bound"]) <= _MOST_NAMED
    for kind in reversed(MARKS):
        if named or kind in ("accept", "refine"):
            for trial, path in spots[kind].values():
                yield f'<path class="{kind}" d="{path}"><title>{escape(_tooltip(trial))}</title></path>'
        elif spots[kind]:
            yield f'<path class="{kind}" d="{"".join(path for _, path in spots[kind].values())}"/>'


def _tooltip(trial: DrawnTrial) -> str:
    name = label_of(trial.element, "base")
    return f"{trial.seq}: {name} {MARKS[kind_of(trial)].verdict}, {measured(trial)}"


def _layers(trials: Sequence[DrawnTrial], across: Scale, y: float) -> Iterator[str]:
    """A band below the trials that shows their layers."""
    runs = [(subject, next(run).seq) for subject, run in groupby(trials[1:], key=_subject)]
    ends = [first for _, first in runs[1:]] + [trials[-1].seq + 1]
    for count, ((subject, first), end) in enumerate(zip(runs, ends, strict=False)):
        left, right = across.place(first - 0.5), min(across.place(end - 0.5), across.stop + 8)
        if count % 2 == 0 and right - left > _SPOT:
            yield f'<rect class="band" x="{left:.1f}" y="{y:g}" width="{right - left:.1f}" height="18"/>'
        room = right - left - LETTER  # for a gap to the next name
        name = next((name for name in _names(subject) if len(name) * LETTER < room), None)
        if name is not None:
            yield words(round((left + right) / 2, 1), y + 13, name, "faint", "middle")
    yield words(LEFT - 6, y + 13, "layer", "faint", "end")


_WHOLE = -1
"""Placeholder layer for trials of whole plans."""


def _subject(trial: DrawnTrial) -> int | None:
    """The layer of a trial; None for hard attention, which covers all layers."""
    if is_of_encoder(trial.element):
        return _WHOLE
    element = parse(str(trial.element))
    return None if element.kind is ElementKind.HARD_ATTENTION else element.layer


def _names(layer: int | None) -> tuple[str, ...]:
    """Possible labels in the band, the longest first."""
    if layer == _WHOLE:
        return "whole plans", "all"
    return ("hard attention", "hard") if layer is None else (str(layer),)


def _signs() -> Iterator[tuple[str, str]]:
    for kind, mark in MARKS.items():
        yield f'<path class="{kind}" d="M0 0{mark.path}"/>', mark.legend
    for kind, meaning in LINES.items():
        yield f'<path class="{kind}" d="M-11 0h22"/>', meaning
