"""What labels buy: a model is compressed without a label, and the true labels of its changed answers play a person who labels.

Each set is cut anew: a checkpoint learns one part, which also calibrates; the second comes without labels, as it would to a
model at work, and confirms; on the third, which nothing has seen, the certified models are measured. One seed of every set
comes first, then more seeds.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from axformer.apply import apply_plan
from axformer.config import reading_config
from axformer.data.columns import DataSource
from axformer.data.reading import read_rows
from axformer.forms.form import Form
from axformer.forms.kinds import COMPACT, ONNX_INT8
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.labels import read_sheet
from axformer.plan.path import Stop
from axformer.plan.plan import read_plan_file
from axformer.plan.trial import Trial
from axformer.reporting.form_reports import one_by_one
from axformer.scores.labelling import Labels, forms_of, label_of, most_labels, needed, standing_of
from axformer.scores.measured import compare, measure
from axformer.wire.answer_sheet import Answer, AnswerSheet, ChangedRow, PathAnswers
from benchmarks.checkpoints import Checkpoint
from benchmarks.finetune import BASE
from benchmarks.harness import Arm, Cell, Content, Grid, Place
from benchmarks.prune import pruned, rows_of
from benchmarks.sets.catalog import POOLED
from benchmarks.tables import POINT, grouped, table

POINTS = (1.0, 2.0)
FEW = 200
BUDGETS = (0, 50, FEW, None)
"""Labels that the person gives at most; None for as many as are asked for."""
CALIBRATED, HALF = "calibrated", "unlabelled"
FORMS = {COMPACT: "model in PyTorch", ONNX_INT8: "ONNX int8"}
ARMS: Mapping[str, Arm] = {
    CALIBRATED: Arm(
        {"within_points": max(POINTS)},
        preset="smallest",
        parts=("unlabelled", "calibrate"),
        usual_parts=(),
        rows={"calibrate": 1250},
        forms=tuple(FORMS),
    ),
    HALF: Arm(title="half of the unlabelled rows decided", is_measured=False),
}
_ROUNDING = 1e-9
_CHECKED = 64
"""Rows on which a form is compared with the model in memory."""
_EPOCHS = {"ud-upos": 2, "rte": 5, "stsb": 4}
_TASKS = {"ud-upos": "tagging", "stsb": "regression"}
_NUMBERS = "stsb-pooled"
_SEEDS = (0, 1, 2)


def checkpoint_of(name: str) -> Checkpoint:
    """What is trained on a pooled set."""
    metrics = ("pearson",) if name == "stsb" else ("accuracy",)
    return Checkpoint(name, BASE, _TASKS.get(name, "classification"), f"{name}-pooled", metrics, _EPOCHS.get(name, 3))


def measured(cell: Cell, arm: Arm, place: Place) -> Content:
    """Compress, label, and measure on held-out rows what was certified at each step."""
    checkpoint = cell.checkpoint
    with pruned(cell, arm, place) as result:
        sheet = read_sheet(result)
        labels = true_labels(sheet, rows_of(checkpoint, "unlabelled", arm, place))
        choices = [choice for form in forms_of(sheet) for choice in _choices(sheet, labels, form)]
        chosen = {(choice["seq"], choice["form"]) for choice in choices if choice["seq"]}
        falls = falls_of(result, place.trained(checkpoint), chosen, checkpoint, arm, place)
    changes = {form: nested(sheet, form) for form in forms_of(sheet)}
    told = [choice | falls.get((choice["seq"], choice["form"]), {}) for choice in choices]
    return {"unlabelled": sheet.rows, "changed": len(sheet.changed), "nested": changes, "choices": told}


def true_labels(sheet: AnswerSheet, labelled: Path) -> Labels:
    """The labels of a sheet's rows, from the file that they are of."""
    records = [json.loads(line) for line in labelled.read_text(encoding="utf-8").splitlines()]
    columns = list(sheet.changed[0].inputs)
    if "tokens" in columns:  # of a row that is cut the sheet has the words that are left
        return {row.id: label_of(sheet, row, _tags(row, records)) for row in sheet.changed}
    truth = {_key(record, columns): record["label"] for record in records}
    return {row.id: label_of(sheet, row, truth[_key(row.inputs, columns)]) for row in sheet.changed}


def _key(record: Mapping[str, Any], columns: Iterable[str]) -> str:
    return json.dumps([record.get(name) for name in columns])


def _tags(row: ChangedRow, records: Iterable[Mapping[str, Any]]) -> list[Any]:
    words = row.inputs["tokens"]
    return next(record["tags"][: len(words)] for record in records if record["tokens"][: len(words)] == words)


def annotated(sheet: AnswerSheet, truth: Labels, form: str, most: int | None) -> tuple[int, PathAnswers | None]:
    """Label what is asked for, until nothing is, or as many as ``most``: how many labels, and what they certify."""
    sheet = sheet.model_copy(update={"models": [model for model in sheet.models if model.form == form]})
    known: dict[str, Answer] = {}
    told = max([count for _, count in most_labels(sheet, form, {})], default=0)
    while (most is None or len(known) < most) and (asked := needed(sheet, known)):
        known[asked[0].id] = truth[asked[0].id]
    assert len(known) <= told, "no more labels than were told"
    return len(known), standing_of(sheet, form, known).kept


def nested(sheet: AnswerSheet, form: str) -> list[float]:
    """The share of each model's changed answers that are changed in the next smaller one too."""
    models = [set(model.answers) for model in sheet.models if model.form == form]
    return [len(one & other) / max(1, len(one)) for one, other in pairwise(models)]


def _choices(sheet: AnswerSheet, labels: Labels, form: str) -> list[dict[str, Any]]:
    """What is certified with so many labels, for each number of points."""
    found = []
    for points in POINTS:
        asked = sheet.model_copy(update={"points": points})
        for most in BUDGETS:
            given, kept = annotated(asked, labels, form, most)
            told = {"form": form, "points": points, "most": most, "labels": given}
            found.append(told | ({"seq": 0, "times": 1.0} if kept is None else {"seq": kept.seq, "times": kept.times}))
    return found


def falls_of(
    result: Path, home: Path, chosen: Iterable[tuple[int, str]], checkpoint: Checkpoint, arm: Arm, place: Place
) -> dict[tuple[int, str], dict[str, Any]]:
    """By how many points models of a path fall on held-out rows, with the 95 % interval; each by its trial and form."""
    file, fitted = read_plan_file(result), rows_of(checkpoint, "calibrate", arm, place)
    checking = result / "checking.jsonl"
    checking.write_text("".join(fitted.read_text("utf-8").splitlines(keepends=True)[:_CHECKED]), encoding="utf-8")
    trace = [Trial.model_validate_json(line) for line in (result / "trace.jsonl").read_text("utf-8").splitlines()]
    rows = read_rows(str(rows_of(checkpoint, "test", arm, place)))
    loaded = load_checkpoint(home).for_rows(rows)
    data = prepare(rows, loaded, reading_config(file.config))
    single, before = one_by_one(data, loaded), measure(loaded.model, loaded.task, data.samples)
    forms: dict[int, list[str]] = {}
    for seq, form in sorted(chosen):
        forms.setdefault(seq, []).append(form)
    is_number, found = checkpoint.data == _NUMBERS, {}
    point = 1 / POINT * (np.var(np.array(before.answers)) if is_number else -1.0)
    for seq, names in forms.items():
        output = result / f"made-{seq}"
        given = DataSource(str(checking)), output
        made = apply_plan(file, home, *given, forms=names, stop=Stop(trace, seq), calibrate=DataSource(str(fitted)))
        for one in made:
            assert isinstance(one, Form), f"it was made in the run: {one}"
            asked = single if one.name == ONNX_INT8 else data
            differences = compare(before, measure(one.model, loaded.task, asked.samples)).differences
            change = differences["loss" if is_number else "accuracy"]
            interval = sorted(float(end / point) for end in change.interval)
            found[seq, one.name] = {"fall": float(change.value / point), "interval": interval}
    return found


def _latest(cells: Sequence[Content]) -> list[Content]:
    """Of each set the cells where all unlabelled rows confirm; where there are none, those where half of them decided."""
    again = {cell["data"] for cell in cells if cell["arm"] == CALIBRATED}
    return [cell for cell in cells if cell["arm"] == CALIBRATED or cell["data"] not in again]


def by_set(cells: Sequence[Content]) -> str:
    """What is certified within a point without a label, and with at most 200 of the labels that are asked for; means over the
    seeds."""
    rows = []
    for (data,), group in grouped(_latest(cells), "data").items():
        told = [data.removesuffix("-pooled"), str(len(group)), f"{mean(one['unlabelled'] for one in group):,.0f}"]
        rows.append([*told, *(_steps(group, form, POINTS[0]) for form in FORMS)])
    return table(["set", "seeds", "rows", *FORMS.values()], rows)


def _steps(cells: Sequence[Content], form: str, points: float) -> str:
    before, after = (_times(cells, form, points, most) for most in (0, FEW))
    labels = mean(one["labels"] for cell in cells for one in _chosen(cell, form, points, FEW))
    return f"{before:.2f}x, {after:.2f}x ({labels:.0f})"


def _times(cells: Iterable[Content], form: str, points: float, most: int | None) -> float:
    """How many times fewer operations the certified model has, mean over cells."""
    return mean(float(one["times"]) for cell in cells for one in _chosen(cell, form, points, most))


def _chosen(cell: Content, form: str, points: float, most: int | None) -> list[Content]:
    wanted = (form, points, most)
    return [one for one in cell["choices"] if (one["form"], one["points"], one["most"]) == wanted]


def held(cells: Sequence[Content]) -> str:
    """How many of the certified models truly fell short on held-out rows; each model of a run counts once for each limit."""
    found = [
        (choice, points)
        for cell in cells
        for form in FORMS
        for points in POINTS
        for choice in {one["seq"]: one for most in BUDGETS for one in _chosen(cell, form, points, most)}.values()
        if choice["seq"]
    ]
    short = sum(one["fall"] >= points - _ROUNDING for one, points in found)
    beyond = sum(one["interval"][0] >= points - _ROUNDING for one, points in found)
    return f"Of {len(found)} certified models {short} fell by the points or more on held-out rows, {beyond} beyond their noise"


def targets(cells: Sequence[Content]) -> str:
    """On how many sets what was wanted came about, by the mean over the seeds."""
    wanted = (
        ("half of the operations, with at most 200 labels", COMPACT, FEW, 2.0),
        ("0.8 of the operations, without a label", COMPACT, 0, 1.25),
        ("ONNX int8 of a smaller model, with at most 200 labels", ONNX_INT8, FEW, 1.01),
    )
    groups = grouped([cell for cell in _latest(cells) if cell["data"] != _NUMBERS], "data").values()
    rows = []
    for title, form, most, least in wanted:
        met = [
            f"{sum(_times(group, form, points, most) >= least - _ROUNDING for group in groups)} of {len(groups)}"
            for points in POINTS
        ]
        rows.append([title, *met])
    return table(["certified", *(f"within {points:g}" for points in POINTS)], rows)


def nested_shares(cells: Sequence[Content]) -> str:
    """The middle half of the shares of a model's changed answers that are changed in the next smaller model too."""
    answers = [cell for cell in cells if cell["data"] != _NUMBERS]
    shares = sorted(share for cell in answers for share in cell["nested"][COMPACT])
    return f"{shares[len(shares) // 4]:.0%} to {shares[3 * len(shares) // 4]:.0%}"


GRID = Grid(
    "labels",
    ARMS,
    [Cell(checkpoint_of(name).seeded(seed), CALIBRATED) for seed in _SEEDS for name in POOLED],
    measured,
)
