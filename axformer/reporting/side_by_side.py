"""Several results on one picture: what each form changed of the metric, against how many times as fast it is. No PyTorch."""

from collections.abc import Iterable, Sequence

from axformer.drawing.forms import FormMark, FormSeries, forms_chart
from axformer.drawing.svg import WIDTH
from axformer.errors import InputError
from axformer.reporting.deploy_table import Deployable, Deployables
from axformer.wire.groups import GroupRow
from axformer.wire.metrics import LOWER_IS_BETTER, first_metric

Named = tuple[str, Deployables]
"""What can be deployed of a result, and the result's name."""
TITLE = "What each result costs, and how fast it is"
DATA = {"test": "held-out", "confirming": "confirming", "validation": "validation"}
"""Kinds of rows that changes are shown for, the least biased first, and their names for people."""


def side_by_side(results: Sequence[Named], width: int = WIDTH) -> str:
    """The SVG text of the forms of several results, each compared with its own untouched model.

    Args:
        results: the results; they may be of different checkpoints.
        width: units of the picture.

    Raises:
        InputError: the results are of different metrics or kinds of rows, no form has both a metric and a speed, or there are
            too many results.
    """
    kinds = {(forms.metric, forms.data) for _, forms in results}
    if len(kinds) > 1:
        told = ", ".join(f"{data} {metric}" for metric, data in sorted(kinds))
        raise InputError(f"the results cannot be drawn on one axis: they were measured by {told}")
    series = [FormSeries(name, list(_marks(forms))) for name, forms in results]
    if not any(one.marks for one in series):
        raise InputError("no form of these results has both a metric and a speed")
    ((metric, data),) = kinds
    return forms_chart(TITLE, _axis(metric, data), 0.0, series, width)


def side_by_side_in_group(name: str, rows: Sequence[GroupRow], width: int = WIDTH) -> str:
    """The SVG text of the settings of a group on one of its sets: means over checkpoints and seeds, PyTorch's speed.

    Args:
        name: prefix of the picture's ids.
        rows: the group's rows of one set.
        width: units of the picture.

    Raises:
        InputError: no setting has both a change and a speed yet, or there are too many settings.
    """
    data = next((data for data in DATA if any(data in row.changes for row in rows)), "")
    metric = first_metric(name for row in rows for name in row.changes.get(data, {}))
    marks = [
        FormMark(row.setting, row.latency.mean, _gain(metric, change.mean), _gains(metric, change.interval))
        for row in rows
        if row.latency is not None and (change := row.changes.get(data, {}).get(metric)) is not None
    ]
    if not marks:
        raise InputError("no job of this set has succeeded with a measured speed yet")
    series = [FormSeries(one.name, [one]) for one in marks]
    return forms_chart(TITLE, _axis(metric, DATA[data]), 0.0, series, width, name=name)


def _axis(metric: str, data: str) -> str:
    """The name of an axis on which up is better."""
    name = metric.replace("_", " ")
    return f"{data} {name}, fall" if metric in LOWER_IS_BETTER else f"{data} {name}, points gained"


def _marks(forms: Deployables) -> Iterable[FormMark]:
    for row in forms.rows[1:]:
        if row.times is not None and row.change is not None:
            yield _mark(row, row.times, row.change, forms.metric)


def _mark(row: Deployable, times: float, change: float, metric: str) -> FormMark:
    return FormMark(row.title, times, _gain(metric, change), _gains(metric, row.interval))


def _gains(metric: str, ends: tuple[float, float] | None) -> tuple[float, float] | None:
    if ends is None:
        return None
    one, other = (_gain(metric, end) for end in ends)
    return min(one, other), max(one, other)


def _gain(metric: str, change: float) -> float:
    """A change so that more is better: in points, or as it is for a metric that is no share."""
    return (-1.0 if metric in LOWER_IS_BETTER else 100.0) * change + 0.0
