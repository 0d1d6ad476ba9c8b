"""How many labels a certificate takes, and what point estimates hand out in its place.

    python -m benchmarks.certificate_labels

prints the tables of ``docs/certificate.md``, in some minutes. Data sets are simulated with the changed answers of the path of
:mod:`benchmarks.certificate_order`; the labels are asked for and tested by the program's own code.
"""

import numpy as np

from axformer.reporting.table import Table
from axformer.scores.labelling import most_labels, needed, standing_of
from axformer.wire.answer_sheet import AnswerSheet, ChangedRow, PathAnswers
from benchmarks.certificate_order import GAINED, LOST, SPEEDS

ASKED = ((400, 2.0), (1_000, 2.0), (1_000, 1.0), (2_000, 2.0), (2_000, 1.0), (5_000, 1.0))
"""Rows without labels, and points that may be lost."""
SETS = 200
"""Data sets for each line: a mean of speeds is off by about 0.03, a share by 3 points of a hundred (one standard deviation)."""
ESTIMATED = 4_000
"""The same for point estimates: shares are off by 0.8."""
_FALL = np.array(LOST) - np.array(GAINED)


def sheet_of(chance: np.random.Generator, rows: int, points: float) -> tuple[AnswerSheet, dict[str, int]]:
    """The answers of every model on simulated rows, and the labels of those that changed: 0 is the untouched model's answer,
    1 the other one. An answer that changes in one model has changed in the smaller ones too."""
    gains, losses = chance.random(rows), chance.random(rows)
    gained, lost = gains < np.array(GAINED)[:, None], losses < np.array(LOST)[:, None]
    changed = gained | lost
    places = np.flatnonzero(changed.any(axis=0)).tolist()
    sheet = AnswerSheet(
        task="classification",
        metric="accuracy",
        test="exact",
        classes=["0", "1"],
        points=points,
        rows=rows,
        unlabelled=rows,
        changed=[ChangedRow(id=str(place), place=place, inputs={}, before=0) for place in places],
        models=[
            PathAnswers(seq=seq, form="compact", times=times, answers=dict.fromkeys(np.flatnonzero(own).tolist(), 1))
            for seq, (times, own) in enumerate(zip(SPEEDS, changed, strict=True), 1)
        ],
    )
    return sheet, {str(place): int(gained[-1, place]) for place in places}


def labels_table() -> Table:
    """Labels that are asked for, what is certified before and after, and how often wrongly."""
    table = []
    for rows, points in ASKED:
        chance, counts, speeds, before, false = np.random.default_rng(0), [], [], [], 0
        for _ in range(SETS):
            sheet, truth = sheet_of(chance, rows, points)
            known: dict[str, int] = {}
            before.append(_kept(sheet, known))
            while asked := needed(sheet, known):
                known[asked[0].id] = truth[asked[0].id]
            assert len(known) <= max([count for _, count in most_labels(sheet, "compact", {})], default=0)
            kept = standing_of(sheet, "compact", known).kept
            false += kept is not None and bool(_FALL[kept.seq - 1] >= points / 100)
            counts.append(len(known))
            speeds.append(_kept(sheet, known))
        table.append(
            [
                *(f"{rows:,}", f"{points:g}", f"{np.mean(counts):.0f} ({np.quantile(counts, 0.95):.0f})"),
                *(f"{np.mean(speeds):.2f}x", f"{np.mean(before):.2f}x", f"{100 * false / SETS:.1f} %"),
            ]
        )
    return Table(["rows", "points", "labels: mean (95 %)", "certified", "without any label", "false"], table)


def _kept(sheet: AnswerSheet, labels: dict[str, int]) -> float:
    kept = standing_of(sheet, "compact", labels).kept
    return 1.0 if kept is None else kept.times


def estimates_table() -> Table:
    """How often the smallest model whose measured fall is within the limit truly fell further, on so many labelled rows."""
    table = []
    for rows in (200, 400, 1_000):
        cells = []
        for points in (2.0, 1.0, 0.5):
            chance, wrong = np.random.default_rng(0), 0
            for _ in range(ESTIMATED):
                gained = (chance.random(rows) < np.array(GAINED)[:, None]).sum(axis=1)
                lost = (chance.random(rows) < np.array(LOST)[:, None]).sum(axis=1)
                within = np.flatnonzero((lost - gained) / rows <= points / 100)
                wrong += bool(len(within) and _FALL[within[-1]] > points / 100)
            cells.append(f"{100 * wrong / ESTIMATED:.0f} %")
        table.append([f"{rows:,}", *cells])
    return Table(["labelled rows", "2 points", "1 point", "0.5 points"], table)


if __name__ == "__main__":
    print(labels_table().markdown())
    print(estimates_table().markdown())
