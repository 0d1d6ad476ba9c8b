"""The table of a group: what came of each setting on each set, as means with spreads and intervals."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axformer.config import changed_knobs
from axformer.scores.spread import Spread, spread_of
from store.repositories.groups import CellRow
from store.states import JobState

Changes = dict[str, dict[str, Spread]]
"""By the data and the figure."""


@dataclass(frozen=True)
class Row:
    """What came of one setting on one set; see ``api.schemas.groups.GroupRow`` for the fields."""

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


def table(grid: Mapping[str, Sequence[str]], cells: Sequence[CellRow]) -> list[Row]:
    """A row for each of the grid's ``sets`` and ``settings``, in their order, without those that have no jobs left."""
    rows = []
    for name in grid["sets"]:
        for setting in grid["settings"]:
            same = [one for one in cells if (one.cell["set"], one.cell["setting"]) == (name, setting)]
            if same:
                rows.append(_row(name, setting, same))
    return rows


def _row(name: str, setting: str, cells: Sequence[CellRow]) -> Row:
    found = [one.figures for one in cells if one.figures is not None]
    return Row(
        set=name,
        setting=setting,
        preset=cells[0].preset,
        config=_changed(cells[0]),
        jobs=len(cells),
        succeeded=sum(one.state is JobState.SUCCEEDED for one in cells),
        changes=_changes([one.comparison for one in found]),
        removed=_spread([1 - after / before for before, after in (one.parameters for one in found)]),
        encoder_removed=_spread([1 - one.encoder[1] / one.encoder[0] for one in found if one.encoder is not None]),
        operations=_spread([one.estimated_speedup for one in found]),
        latency=_spread([before / after for before, after in (one.latency_ms for one in found)]),
        latency_by_pruning=_spread(
            [one.one_position_ms / one.latency_ms[1] for one in found if one.one_position_ms is not None]
        ),
        verdicts=Counter(one.verdict for one in found if one.verdict is not None),
    )


def _changed(cell: CellRow) -> dict[str, Any]:
    """The knobs of a cell that differ from its preset, but for the seed where that is a side of the grid."""
    changed = changed_knobs(cell.preset, cell.config)
    if cell.cell["seed"] is not None:
        changed.pop("seed", None)
    return changed


def _changes(comparisons: Sequence[Mapping[str, Any]]) -> Changes:
    values: dict[str, dict[str, list[float]]] = {}
    for comparison in comparisons:
        for data, told in comparison.items():
            for figure, difference in told["differences"].items() if told else ():
                values.setdefault(data, {}).setdefault(figure, []).append(difference["value"])
    return {data: {name: spread_of(each) for name, each in figures.items()} for data, figures in values.items()}


def _spread(values: Sequence[float]) -> Spread | None:
    return spread_of(values) if values else None
