"""How many labels a certificate takes, and what point estimates hand out in its place.

    python -m benchmarks.certificate_labels

prints the tables of ``docs/certificate.md``, in some minutes. Data sets are simulated with the changed answers of the path of
:mod:`benchmarks.certificate_order`; the labels are asked for and tested by the program's own code.

    python -m benchmarks.certificate_labels RESULT LABELLED.jsonl

plays the person who labels a real result, with the true labels of its rows, for one point and two.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from axformer.data.reading import read_rows
from axformer.labels import read_sheet
from axformer.reporting.table import Table
from axformer.scores.labelling import Labels, forms_of, label_of, most_labels, needed, standing_of
from axformer.wire.answer_sheet import Answer, AnswerSheet, ChangedRow, PathAnswers
from benchmarks.certificate_order import GAINED, LOST, SPEEDS

ASKED = ((400, 2.0), (1_000, 2.0), (1_000, 1.0), (2_000, 2.0), (2_000, 1.0))
"""Rows without labels, and points that may be lost."""
SETS = 60
"""Data sets for each line: a mean of speeds is off by about 0.05 (one standard deviation)."""
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


@dataclass(frozen=True)
class Annotated:
    """What came of labelling a sheet."""

    labels: int
    kept: PathAnswers | None
    before: float
    """Times fewer operations without any label."""

    @property
    def times(self) -> float:
        """Times fewer operations of the model that is certified."""
        return 1.0 if self.kept is None else self.kept.times


def annotated(sheet: AnswerSheet, truth: Labels, form: str = "compact") -> Annotated:
    """Label what is asked for, until nothing is."""
    sheet = sheet.model_copy(update={"models": [model for model in sheet.models if model.form == form]})
    known: dict[str, Answer] = {}
    first = standing_of(sheet, form, known).kept
    most = max([count for _, count in most_labels(sheet, form, {})], default=0)
    while asked := needed(sheet, known):
        known[asked[0].id] = truth[asked[0].id]
    assert len(known) <= most, "no more labels than were told"
    return Annotated(len(known), standing_of(sheet, form, known).kept, 1.0 if first is None else first.times)


def labels_table() -> Table:
    """Labels that are asked for, what is certified before and after, and how often wrongly."""
    table = []
    for rows, points in ASKED:
        chance = np.random.default_rng(0)
        found = [annotated(*sheet_of(chance, rows, points)) for _ in range(SETS)]
        counts = [one.labels for one in found]
        false = sum(one.kept is not None and bool(_FALL[one.kept.seq - 1] >= points / 100) for one in found)
        table.append(
            [
                *(f"{rows:,}", f"{points:g}", f"{np.mean(counts):.0f} ({np.quantile(counts, 0.95):.0f})"),
                *(f"{np.mean([one.times for one in found]):.2f}x", f"{np.mean([one.before for one in found]):.2f}x"),
                f"{false} of {SETS}",
            ]
        )
    return Table(["rows", "points", "labels: mean (95 %)", "certified", "without any label", "false"], table)


def real_table(sheet: AnswerSheet, truth: Mapping[str, str]) -> Table:
    """The same for the answers of a real result.

    Args:
        truth: the label of each text.
    """
    labels = {row.id: label_of(sheet, row, truth[str(row.inputs["text"])]) for row in sheet.changed}
    table = []
    for form in forms_of(sheet):
        for points in (1.0, 2.0):
            found = annotated(sheet.model_copy(update={"points": points}), labels, form)
            cells = (
                f"{sheet.rows:,}",
                form,
                f"{points:g}",
                str(found.labels),
                f"{found.times:.2f}x",
                f"{found.before:.2f}x",
            )
            table.append([*cells, "" if found.kept is None else str(found.kept.seq)])
    return Table(["rows", "form", "points", "labels", "certified", "without any label", "trial"], table)


def nested(sheet: AnswerSheet, form: str) -> list[float]:
    """The share of each model's changed answers that are changed in the next smaller one too."""
    models = [set(model.answers) for model in sheet.models if model.form == form]
    return [len(one & other) / max(1, len(one)) for one, other in pairwise(models)]


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


def _told(result: Path, labelled: Path) -> None:
    sheet, table = read_sheet(result), read_rows(str(labelled)).table
    print(real_table(sheet, dict(zip(table["text"], table["label"], strict=True))).markdown())
    for form in forms_of(sheet):
        print(form, "changed in the next smaller model too:", [f"{share:.0%}" for share in nested(sheet, form)])


if __name__ == "__main__":
    if sys.argv[1:]:
        _told(*map(Path, sys.argv[1:]))
    else:
        print(labels_table().markdown())
        print(estimates_table().markdown())
