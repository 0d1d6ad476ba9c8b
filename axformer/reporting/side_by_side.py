"""Several results on one picture: what each form changed of the metric, against how many times as fast it is. No PyTorch."""

from collections.abc import Iterable, Sequence

from axformer.drawing.forms import FormMark, FormSeries, forms_chart
from axformer.drawing.svg import WIDTH
from axformer.errors import InputError
from axformer.reporting.deployable import Deployables
from axformer.wire.metrics import LOWER_IS_BETTER, in_words

Named = tuple[str, Deployables]
"""What can be deployed of a result, and the result's name."""
TITLE = "What each result costs, and how fast it is"


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


def _axis(metric: str, data: str) -> str:
    """The name of an axis on which up is better."""
    name = in_words(metric)
    return f"{data} {name}, fall" if metric in LOWER_IS_BETTER else f"{data} {name}, points gained"


def _marks(forms: Deployables) -> Iterable[FormMark]:
    for row in forms.rows[1:]:
        if row.times is not None and row.change is not None:
            low, high = sorted(_gain(forms.metric, end) for end in row.interval or (0.0, 0.0))
            interval = None if row.interval is None else (low, high)
            yield FormMark(row.title, row.times, _gain(forms.metric, row.change), interval)


def _gain(metric: str, change: float) -> float:
    """A change so that more is better: in points, or as it is for a metric that is no share."""
    return (-1.0 if metric in LOWER_IS_BETTER else 100.0) * change + 0.0
