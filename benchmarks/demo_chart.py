"""The demo's results in one picture, and which file to deploy."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axformer.drawing.forms import FormMark, FormSeries, forms_chart
from axformer.reporting.deploy_table import Deployable, Deployables, deployables
from benchmarks.demo_result import ResultError


@dataclass(frozen=True)
class Delivered:
    """A downloaded result."""

    goal: str
    directory: Path
    report: Mapping[str, Any]

    @property
    def forms(self) -> Deployables:
        """What can be deployed of it.

        Raises:
            ResultError: its report has no forms.
        """
        found = deployables(self.report)
        if found is None:
            raise ResultError(f"the report in {self.directory} has no forms")
        return found


def chart_of(results: list[Delivered]) -> str:
    """The SVG text of all forms of all results: held-out metric against speed."""
    before = results[0].forms
    untouched = 100 * (before.rows[0].metric or 0.0)
    series = [FormSeries(one.goal, [_mark(row, untouched) for row in one.forms.rows[1:]]) for one in results]
    return forms_chart("What can be deployed", f"{before.data} {before.metric.replace('_', ' ')}, %", untouched, series)


def _mark(row: Deployable, untouched: float) -> FormMark:
    if row.times is None or row.metric is None:
        raise ResultError(f"the form {row.name} was not measured")
    ends = None if row.interval is None else (untouched + 100 * row.interval[0], untouched + 100 * row.interval[1])
    return FormMark(row.title, row.times, 100 * row.metric, ends)


def advice(results: list[Delivered]) -> str:
    """One sentence: which of all files to deploy."""
    best = [(row, one) for one in results if (row := one.forms.best) is not None]
    if not best:
        return "No form of any result is both faster and as good: keep your model."
    row, one = max(best, key=lambda found: found[0].times or 0.0)
    return one.forms.sentence.replace(f"Deploy {row.directory}/", f"Deploy {one.directory / str(row.directory)}/", 1)
