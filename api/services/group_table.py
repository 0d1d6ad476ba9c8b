"""The table of a group: the results of each setting on each set, as means with spreads and intervals."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axformer.config import changed_knobs
from axformer.scores.spread import spread_of
from axformer.wire.spread import Spread
from store.repositories.groups import CellRow
from store.states import JobState

Changes = dict[str, dict[str, Spread]]
"""Spreads by data set and figure."""


@dataclass(frozen=True)
class Row:
    """The results of one setting on one set; see ``axformer.wire.groups.GroupRow`` for the fields."""

    set: str
    setting: str
    preset: str
    config: Mapping[str, Any]
    jobs: int
    succeeded: int
    changes: Changes
    removed: Spread | None
    encoder_removed: Spread | None
    operations: Spread | None
    latency: Spread | None
    latency_by_pruning: Spread | None
    verdicts: Mapping[str, int]
    missed: int


def table(grid: Mapping[str, Sequence[str]], cells: Sequence[CellRow]) -> list[Row]:
    """A row for each of the grid's ``sets`` and ``settings``, in their order, without those that have no jobs left."""
    rows = []
    for name in grid["sets"]:
        for setting in grid["settings"]:
            same = [cell for cell in cells if (cell.cell["set"], cell.cell["setting"]) == (name, setting)]
            if same:
                rows.append(_row(name, setting, same))
    return rows


def _row(name: str, setting: str, cells: Sequence[CellRow]) -> Row:
    figures = [cell.figures for cell in cells if cell.figures is not None]
    return Row(
        set=name,
        setting=setting,
        preset=cells[0].preset,
        config=_changed(cells[0]),
        jobs=len(cells),
        succeeded=sum(cell.state is JobState.SUCCEEDED for cell in cells),
        changes=_changes([figure.comparison for figure in figures]),
        removed=_spread([1 - after / before for before, after in (figure.parameters for figure in figures)]),
        encoder_removed=_spread(
            [1 - figure.encoder[1] / figure.encoder[0] for figure in figures if figure.encoder is not None]
        ),
        operations=_spread([figure.estimated_speedup for figure in figures]),
        latency=_spread([before / after for before, after in (figure.latency_ms for figure in figures)]),
        latency_by_pruning=_spread(
            [figure.one_position_ms / figure.latency_ms[1] for figure in figures if figure.one_position_ms is not None]
        ),
        missed=sum(figure.is_target_reached is False for figure in figures),
        verdicts=Counter(figure.verdict for figure in figures if figure.verdict is not None),
    )


def _changed(cell: CellRow) -> dict[str, Any]:
    """The knobs of a cell that differ from its preset, without the seed if the grid varies it."""
    changed = changed_knobs(cell.preset, cell.config)
    if cell.cell["seed"] is not None:
        changed.pop("seed", None)
    return changed


def _changes(comparisons: Sequence[Mapping[str, Any]]) -> Changes:
    values: dict[str, dict[str, list[float]]] = {}
    for comparison in comparisons:
        for data, measured in comparison.items():
            for figure, difference in measured["differences"].items() if measured else ():
                values.setdefault(data, {}).setdefault(figure, []).append(difference["value"])
    return {data: {name: spread_of(each) for name, each in figures.items()} for data, figures in values.items()}


def _spread(values: Sequence[float]) -> Spread | None:
    return spread_of(values) if values else None
