"""The int8 file that is advised is the one that was certified, by its own answers, one input at a time."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

import axformer
from axformer.config import make_config
from axformer.data.reading import rows_of
from axformer.forms.kinds import KINDS, ONNX_INT8
from axformer.intake.checkpoint import from_memory
from axformer.labels import read_sheet
from axformer.methods.base import targets_of
from axformer.plan.elements import parse
from axformer.plan.path import Point
from axformer.plan.plan import Plan
from axformer.reporting.form_path import MOST_TESTED, thinned
from axformer.reporting.form_reports import one_by_one
from axformer.scores.decisions import decisions_of
from axformer.scores.labelling import standing_of
from axformer.scores.measured import measure
from axformer.scores.own_answers import with_own_answers
from axformer.wire.report import Report
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer

ROWS = [{"text": row["text"]} for row in tiny_rows(500)]


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [0, 300])
def test_what_is_certified_is_what_is_delivered(labelled: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported, export = list[Any](), torch.onnx.export
    monkeypatch.setattr(torch.onnx, "export", lambda *model, **how: exported.append(model) or export(*model, **how))
    data = tiny_rows(labelled, seed=1) if labelled else None
    axformer.prune(
        *(tiny_model(), tiny_tokenizer(), data, {"budgets": [0.85, 0.7, 0.5]}),
        unlabelled=ROWS,
        goal="within-points=15",
        accept_poor_model=True,
        forms=["compact", ONNX_INT8],
        output=tmp_path / "result",
    )
    report = Report.model_validate_json((tmp_path / "result" / "report.json").read_bytes())
    sheet = read_sheet(tmp_path / "result")
    (form,) = (form for form in report.forms if form.name == ONNX_INT8)
    assert form.made
    assert form.certificate is not None
    standing = standing_of(sheet, ONNX_INT8, {})
    assert (0 if standing.kept is None else standing.kept.seq) == form.certificate.kept > 0
    assert form.p_value is not None
    assert form.p_value <= 0.05
    kept = next(point.seq for point in report.path if point.kept)
    assert form.seq == (None if form.certificate.kept == kept else form.certificate.kept)
    checkpoint = from_memory(tiny_model(), tiny_tokenizer())
    own = with_own_answers(rows_of(ROWS), None, checkpoint, make_config("smallest"))
    loaded = KINDS[ONNX_INT8].load(tmp_path / "result" / "hub", "cpu")
    samples = one_by_one(own, checkpoint).samples
    answers = decisions_of(measure(loaded, checkpoint.task, samples))
    untouched = decisions_of(measure(checkpoint.model, checkpoint.task, samples))
    assert answers is not None
    assert untouched is not None
    by_id = {key.hex(): pair for key, *pair in zip(own.samples.encoded.keys, answers, untouched, strict=True)}
    (model,) = (one for one in sheet.models if one.form == ONNX_INT8 and one.seq == form.certificate.kept)
    found = {
        row.place: by_id[row.id][0] for row in sheet.changed if row.id in by_id and by_id[row.id][0] != by_id[row.id][1]
    }
    known = {row.place for row in sheet.changed if row.id in by_id}
    assert found == {place: answer for place, answer in model.answers.items() if place in known}
    assert found, "int8 changes some answer of this model"
    deployed = {point.seq: point.deployed for point in report.path}
    tested = [one for one in sheet.models if one.form == ONNX_INT8]
    assert len(exported) == 1 + len(tested), "the untouched model and each that was tested, and none of them twice"
    assert {seq for seq, one in deployed.items() if one is not None} == {0, *(one.seq for one in tested)}
    rows = report.data["confirming" if labelled else "unlabelled"]
    assert rows is not None
    for model in tested if not labelled else ():
        point = deployed[model.seq]
        assert point is not None
        assert point.changed == pytest.approx(len(model.answers) / sheet.rows)
        assert point.change[1] == pytest.approx(-point.changed, abs=0.02)  # what was answered before; copies count here
        assert 0 < point.times[0] <= point.times[1] <= point.times[2]


def test_a_long_path_is_thinned_by_operations_alone() -> None:
    checkpoint = from_memory(tiny_model(), tiny_tokenizer())
    data = with_own_answers(rows_of(ROWS[:40]), None, checkpoint, make_config("smallest"))
    targets = targets_of(checkpoint, make_config("paper"), data.samples)
    plan, points = Plan.full(checkpoint.dimensions), [Point(0, None, 1.0, Plan.full(checkpoint.dimensions))]
    for layer in range(3):
        for start in range(0, 48, 8):
            plan = plan.apply(parse(f"layer.{layer}.ffn.neurons.{start}:{start + 8}"), top_k=None)
            points.append(Point(len(points), "x", 1.0, plan))
    chosen = thinned(points, targets)
    assert len(chosen) <= MOST_TESTED + 1
    assert chosen[0] is points[0]
    assert chosen[-1] is points[-1]
    shares = [1 / targets.speedup(point.plan) for point in chosen]
    assert shares == sorted(shares, reverse=True)
    steps = [one - other for one, other in itertools.pairwise(shares)]
    assert max(steps) < 3 * (shares[0] - shares[-1]) / MOST_TESTED
    assert thinned(points[:5], targets) == points[:5]
