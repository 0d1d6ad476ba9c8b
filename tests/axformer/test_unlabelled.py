"""Rows without labels calibrate and confirm: they certify what labels would, and labels of changed answers do the rest."""

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnxruntime import InferenceSession
from transformers import AutoTokenizer, BertForTokenClassification
from typer.testing import CliRunner

import axformer
from axformer.cli.characters import Terminal
from axformer.cli.label import UNDO, _Labelling
from axformer.cli.main import app
from axformer.config import make_config
from axformer.data.columns import OWN_ANSWERS
from axformer.data.reading import rows_of
from axformer.data.written import compared
from axformer.errors import ConfigError, DataError, InputError
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.labels import given_labels, put_labels, read_sheet, records_of, write_labels
from axformer.opening import open_inputs
from axformer.plan.trial import Trial
from axformer.run import PruningRun
from axformer.scores.answer_sheets import AnsweringModel, ConfirmingRows, sheet_of
from axformer.scores.labelling import NONE_OF_THESE, asked_words, choices_of, needed, p_value_of, standing_of
from axformer.scores.measured import measure
from axformer.scores.own_answers import split, with_own_answers, without_those_of
from axformer.scores.task_tests import paired_test, takes_unlabelled
from axformer.tasks.question_answering import SpanReading
from axformer.wire.answer_sheet import AnswerSheet
from axformer.wire.run import Run, read_run
from tests.family_cases import SETTINGS, Case, checkpoint_of
from tests.tiny_models import (
    choice_rows,
    multi_label_rows,
    question_rows,
    save_tiny_checkpoint,
    tagged_rows,
    tiny_config,
    tiny_model,
    tiny_rows,
    tiny_tokenizer,
    write_rows,
)

ROWS = 200
MANY: dict[str, list[dict[str, object]]] = {
    "classification": tiny_rows(ROWS, labels=3),
    "multi_label_classification": multi_label_rows(ROWS, labels=3),
    "multiple_choice": choice_rows(ROWS),
    "token_classification": tagged_rows(ROWS, ["LABEL_0", "LABEL_1", "LABEL_2"]),
    "regression": tiny_rows(ROWS, labels=1, pairs=True),
    "question_answering": question_rows(20),
}
FAMILIES = {"classification": "bert", "multi_label_classification": "distilbert", "multiple_choice": "mpnet"}
CONFIG = make_config("smallest", {"max_length": 24, "calibrate_rows": 50})


def without_answers(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The same rows without what a model should answer."""
    return [
        {name: value for name, value in row.items() if name not in ("label", "labels", "tags", "answers")}
        for row in rows
    ]


@pytest.mark.parametrize("task", MANY)
def test_own_answers_are_labels_that_the_untouched_model_always_gets_right(task: str) -> None:
    checkpoint = checkpoint_of(Case(FAMILIES.get(task, "bert"), task))
    data = with_own_answers(rows_of(without_answers(MANY[task])), None, checkpoint, CONFIG)
    assert data.samples.encoded.labels_as == OWN_ANSWERS
    own = measure(checkpoint.model, checkpoint.task, data.samples)
    if task == "regression":
        assert own.figures["loss"] == pytest.approx(0.0, abs=1e-10)
    else:
        assert own.right is not None
        assert own.right.all()


@pytest.mark.parametrize("calibrate_rows", [10, 50, 5000])
def test_copies_stay_on_one_side_and_half_at_most_calibrate(calibrate_rows: int) -> None:
    checkpoint = checkpoint_of(Case("bert", "classification"))
    rows = rows_of(without_answers(MANY["classification"]) * 2)
    config = make_config("smallest", {"max_length": 24, "calibrate_rows": calibrate_rows})
    calibrating, confirming = split(rows, None, checkpoint, config, calibrates=True)
    assert calibrating is not None
    texts = set(calibrating.rows.table["text"]), set(confirming.table["text"])
    assert not texts[0] & texts[1]
    assert len(texts[0]) == min(calibrate_rows, len(set(rows.table["text"])) // 2)
    assert len(calibrating.rows) + len(confirming) == len(rows)
    assert split(rows, None, checkpoint, config, calibrates=False) == (None, rows)
    kept, note = without_those_of(rows, None, {"the training rows": calibrating.samples.encoded}, checkpoint, config)
    assert set(kept.table["text"]) == texts[1]
    assert note is not None
    assert "are also among the training rows, and are left out" in note


@pytest.mark.parametrize("task", MANY)
def test_with_all_labels_a_sheet_is_the_paired_test_and_without_any_never_kinder(task: str) -> None:
    case = Case(FAMILIES.get(task, "bert"), task)
    checkpoint = checkpoint_of(case)
    assert takes_unlabelled(checkpoint.task, checkpoint.model.config)
    labelled = prepare(rows_of(MANY[task]), checkpoint, CONFIG)
    own = with_own_answers(rows_of(without_answers(MANY[task])), None, checkpoint, CONFIG)
    other = tiny_other(case)
    models = {}
    for name, data in (("labelled", labelled), ("own", own)):
        models[name] = [measure(model, checkpoint.task, data.samples) for model in (checkpoint.model, other)]
    rows = ConfirmingRows(None, own)
    sheet = sheet_of(
        rows, models["own"][:1], [AnsweringModel(1, "compact", 2.0, models["own"][1:])], checkpoint.model.config, 20
    )
    truth = truth_of(sheet, labelled, checkpoint)
    assert len(truth) == len(sheet.changed) > 0
    test = paired_test(models["labelled"][0].votes, checkpoint.task, 20)
    full = p_value_of(sheet, sheet.models[0], truth, 0.2)
    if sheet.test == "exact":
        assert full == test.p_value(models["labelled"][1].votes)
    assert p_value_of(sheet, sheet.models[0], {}, 0.2) >= full


def test_a_regression_that_diverged_is_never_certified() -> None:
    checkpoint = checkpoint_of(Case("bert", "regression"))
    own = with_own_answers(rows_of(without_answers(MANY["regression"])), None, checkpoint, CONFIG)
    broken = copy.deepcopy(checkpoint.model)
    with torch.no_grad():
        next(iter(broken.classifier.parameters()))[0, 0] = float("nan")
    before, after = (measure(model, checkpoint.task, own.samples) for model in (checkpoint.model, broken))
    models = [AnsweringModel(1, "compact", 2.0, [after])]
    sheet = sheet_of(ConfirmingRows(None, own), [before], models, checkpoint.model.config, 20)
    truth = {row.id: row.before for row in sheet.changed}
    assert len(truth) == sheet.rows
    assert p_value_of(sheet, sheet.models[0], truth, 0.2) == 1.0


def tiny_other(case: Case) -> Any:
    """A model near that of a case."""
    return shaken(checkpoint_of(case).model)


def shaken(model: Any) -> Any:
    """A model near another."""
    other = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter += 0.02 * torch.randn(parameter.shape, generator=generator)
    return other


def truth_of(sheet: AnswerSheet, labelled: Any, checkpoint: Any) -> dict[str, Any]:
    """The labels of the changed rows, by their ids."""
    keys = [key.hex() for key in labelled.samples.encoded.keys]
    votes, encoded = labelled.samples.voters.tolist(), labelled.samples.encoded
    is_of_texts = isinstance(encoded.reading, SpanReading)
    given = [texts[0] for texts in encoded.reading.answers] if is_of_texts else encoded.labels
    labels = {key: label for key, label, votes_here in zip(keys, given, votes, strict=True) if votes_here}

    def plain(label: Any) -> Any:
        if isinstance(label, str):
            return compared(label)
        if checkpoint.task.name == "regression":
            return float(*label)
        return [int(one) for one in label if one != -100] if isinstance(label, list) else int(label)

    return {row.id: plain(labels[row.id]) for row in sheet.changed}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result of unlabelled rows alone, whose next models wait for labels."""
    home = tmp_path_factory.mktemp("unlabelled")
    save_tiny_checkpoint(home / "model")
    write_rows(home / "free.jsonl", without_answers(tiny_rows(500)))
    done = axformer_of(
        *("prune", home / "model", "--unlabelled", home / "free.jsonl", "--goal", "within-points=5"),
        *("--set", "budgets=[0.9, 0.8, 0.6]"),
        *("--forms", "compact,onnx_int8", "--output", home / "small"),
    )
    assert done.exit_code == 0, done.output
    return home / "small"


def axformer_of(*arguments: object, typed: str | None = None) -> Any:
    return CliRunner().invoke(app, [str(one) for one in arguments], input=typed)


def test_where_other_texts_calibrate_all_unlabelled_rows_confirm(tmp_path: Path) -> None:
    save_tiny_checkpoint(tmp_path / "model")
    every = without_answers(tiny_rows(300))
    run = {"checkpoint": str(tmp_path / "model"), "goal": "within-points=5", "config": {"calibrate_rows": 40}}
    files = {"unlabelled": every[:200], "calibrate": every[190:]}
    given = {part: str(write_rows(tmp_path / f"{part}.jsonl", rows)) for part, rows in files.items()}
    texts = {part: {str(row["text"]) for row in rows} for part, rows in files.items()}
    shared = open_inputs(read_run(run | {"unlabelled": given["unlabelled"]}).settled(), "cpu")
    assert shared.unlabelled is not None
    assert len(shared.unlabelled.rows) + len(shared.validation.rows) == 200
    assert "with --calibrate, which takes the texts that the model was trained on" in " ".join(shared.notes)
    inputs = open_inputs(read_run(run | given).settled(), "cpu")
    deciding, confirming = (set(data.rows.table["text"]) for data in (inputs.validation, inputs.unlabelled))
    assert len(inputs.validation.samples) == 40
    assert deciding <= texts["calibrate"]
    assert confirming == texts["unlabelled"] - deciding
    assert ("among the rows that calibrate and decide, and are left out" in " ".join(inputs.notes)) == bool(
        texts["unlabelled"] & deciding
    )
    assert "--calibrate" not in " ".join(inputs.notes)


def test_texts_that_calibrate_are_pairs_where_the_unlabelled_rows_are(tmp_path: Path) -> None:
    save_tiny_checkpoint(tmp_path / "model")
    files = {"unlabelled": tiny_rows(60, pairs=True), "calibrate": tiny_rows(60)}
    given = {part: str(write_rows(tmp_path / f"{part}.jsonl", rows)) for part, rows in files.items()}
    run = read_run({"checkpoint": str(tmp_path / "model"), "goal": "within-points=5", **given}).settled()
    with pytest.raises(DataError, match="no column 'text_pair'"):
        open_inputs(run, "cpu")


@pytest.mark.slow
def test_each_form_of_a_result_answers_for_a_gate(result: Path, tmp_path: Path) -> None:
    sheet = read_sheet(result)
    rows = write_rows(tmp_path / "changed.jsonl", [row.inputs for row in sheet.changed])
    told = {}
    for form in ("compact", "onnx_int8"):
        file = tmp_path / f"{form}.jsonl"
        done = axformer_of("answers", result, "--data", rows, "--form", form, "--output", file)
        assert done.exit_code == 0, done.output
        told[form] = [sheet.classes.index(json.loads(line)["answer"]) for line in file.read_text("utf-8").splitlines()]
    path = [model.answers for model in sheet.models if model.form == "compact"]
    assert told["compact"] in [[one.get(row.place, row.before) for row in sheet.changed] for one in ({}, *path)]
    session = InferenceSession(result / "hub" / "onnx" / "model_quantized.onnx")
    tokenizer = AutoTokenizer.from_pretrained(result / "hub")
    logits = []
    for row in sheet.changed:
        inputs = tokenizer(row.inputs["text"], return_tensors="np")
        logits.append(session.run(["logits"], {one.name: inputs[one.name] for one in session.get_inputs()})[0][0])
    assert told["onnx_int8"] == np.argmax(logits, axis=1).tolist()
    wrong = axformer_of("answers", result, "--data", rows, "--form", "onnx", "--output", tmp_path / "onnx.jsonl")
    assert wrong.exit_code == 2
    assert "has no form 'onnx'; it has compact, onnx_int8" in " ".join(wrong.output.split())


@pytest.mark.slow
def test_labels_of_changed_answers_certify_a_smaller_model_and_make_it(result: Path) -> None:
    sheet = read_sheet(result)
    report = json.loads((result / "report.json").read_text(encoding="utf-8"))
    assert report["data"]["validation"]["labels_as"] == OWN_ANSWERS
    assert sheet.rows == sheet.unlabelled == report["certificate"]["unlabelled"] <= report["data"]["unlabelled"]["rows"]
    assert {model.form for model in sheet.models} == {"compact", "onnx_int8"}
    lines = [json.loads(line) for line in (result / "needed.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in lines] == [row.id for row in needed(sheet, {})]
    assert all(set(line) == {"id", "text"} for line in lines)
    favoured = {row.id: other for row in sheet.changed for other in [_first_other(sheet, row.place)]}
    kept = standing_of(sheet, "compact", favoured).kept
    assert kept is not None
    labels = result.parent / "labels.csv"
    labels.write_text(
        "id,label\n" + "".join(f"{id},LABEL_{label}\n" for id, label in favoured.items()), encoding="utf-8"
    )
    done = axformer_of("certify", result, "--labels", labels, "--output", result.parent / "better")
    assert done.exit_code == 0, done.output
    again = json.loads((result.parent / "better" / "report.json").read_text(encoding="utf-8"))
    assert again["certificate"]["kept"] == kept.seq
    assert sheet.rows - len(favoured) <= again["certificate"]["unlabelled"] < sheet.rows
    compact = next(form for form in again["forms"] if form["name"] == "compact")
    assert compact["p_value"] == again["certificate"]["p_value"] <= 0.05
    assert next(point for point in again["path"] if point["kept"])["seq"] == kept.seq
    assert [model.answers for model in read_sheet(result.parent / "better").models] == [
        model.answers for model in sheet.models
    ], "the models are made again as they were"
    made = axformer.load(result.parent / "better")
    assert sum(one.numel() for one in made.parameters()) == again["pruned"]["parameters"]


@pytest.mark.slow
def test_labels_certify_a_model_that_is_handed_out_and_choose_no_other(result: Path) -> None:
    asked = Run.model_validate_json((result / "run.json").read_bytes())
    trace = [Trial.model_validate_json(line) for line in (result / "trace.jsonl").read_text("utf-8").splitlines()]
    sheet = read_sheet(result)
    last = sheet.models[2]
    assert (last.form, trace[-1].seq) == ("compact", last.seq)
    favoured = {row.id: last.answers.get(row.place, row.before) for row in sheet.changed}
    for labels, is_certified in ((favoured, True), ({row.id: row.before for row in sheet.changed}, False)):
        run = PruningRun.open(asked)
        run.labels = labels
        for _ in run.trials(trace, upto=last.seq):
            pass
        assert run.decisions.measured is not None
        assert run.decisions.measured.point.seq == last.seq
        told = run.decisions.certificate
        assert (told is not None) == is_certified
        assert told is None or told.kept == last.seq
        chosen = PruningRun.open(asked)
        chosen.labels = labels
        for _ in chosen.trials(trace, upto=last.seq, chooses=True):
            pass
        kept = standing_of(sheet, "compact", labels).kept
        assert chosen.decisions.measured is not None
        assert chosen.decisions.measured.point.seq == (0 if kept is None else kept.seq), "only a certified one is made"


def _first_other(sheet: AnswerSheet, place: int) -> Any:
    return next(model.answers[place] for model in sheet.models if place in model.answers)


@pytest.mark.slow
def test_a_person_labels_undoes_skips_and_stops(result: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("answers.json", "report.json"):
        (copy / name).write_bytes((result / name).read_bytes())
    done = axformer_of("label", copy, "--by", "Ann", typed="1\n2\nu\ns\n1\nq\n")
    assert "at most" in done.output
    records = [json.loads(line) for line in (copy / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(records) == 2
    assert all(record["by"] == "Ann" for record in records)
    earlier = [{"id": record["id"], "label": "LABEL_1", "by": "Bob"} for record in records[:1]]
    (copy / "labels.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in (*records, *earlier)), encoding="utf-8"
    )
    axformer_of("label", copy, "--by", "Eve", typed="u\n1\nq\n")
    after = [json.loads(line) for line in (copy / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
    assert after[:3] == [*records, *earlier], "what others said stays as they said it"
    assert [record["by"] for record in after[3:]] == ["Eve"]
    rows = {row.id for row in read_sheet(copy).changed}
    assert {record["id"] for record in records} <= rows


@pytest.mark.slow
def test_people_who_label_at_once_lose_nothing(result: Path, tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_bytes((result / "answers.json").read_bytes())
    sheet, file = read_sheet(tmp_path), tmp_path / "labels.jsonl"
    people = [_Labelling(sheet, file, by, Terminal()) for by in ("Ann", "Bob")]
    rows = sheet.changed[:6]
    for row in rows:
        for person in people:
            person._take(row, row.before)
    people[0]._take(rows[0], UNDO)
    file.write_text(file.read_text("utf-8").rstrip("\n"), encoding="utf-8")  # as some editors leave it
    people[1]._take(rows[0], rows[0].before)
    people[1]._take(rows[0], UNDO)
    records = records_of(file)
    assert [(one["id"], one["by"]) for one in records] == [
        (row.id, by) for row in rows for by in ("Ann", "Bob") if (row, by) != (rows[-1], "Ann")
    ]


@pytest.mark.slow
def test_a_correction_takes_the_place_of_what_the_same_person_said(result: Path, tmp_path: Path) -> None:
    sheet, file = read_sheet(result), tmp_path / "labels.jsonl"
    id = sheet.changed[0].id
    put_labels(file, [{"id": id, "label": 0}])
    put_labels(file, [{"id": id, "label": 0, "by": "Ann"}])
    every = put_labels(file, [{"id": id, "label": 1}])
    assert every == records_of(file) == [{"id": id, "label": 0, "by": "Ann"}, {"id": id, "label": 1}]
    assert given_labels(sheet, every, "labels").labels == {}, "two people"
    every += [{"id": id, "label": 1, "by": "Ann"}]
    assert given_labels(sheet, every, "labels").labels == {id: 1}


@pytest.mark.slow
def test_a_certificate_of_another_model_than_the_result_has_does_not_pass(result: Path, tmp_path: Path) -> None:
    large = tmp_path / "large"
    shutil.copytree(result, large)
    report = json.loads((large / "report.json").read_text(encoding="utf-8"))
    last = max(point["seq"] for point in report["path"])
    for point in report["path"]:  # as if the smallest model had been asked for
        point["kept"] = point["seq"] == last
    for form in report["forms"]:
        form["seq"] = None
    (large / "report.json").write_text(json.dumps(report), encoding="utf-8")
    sheet = read_sheet(large)
    first = next(model for model in sheet.models if model.form == "compact")
    labels = {row.id: first.answers.get(row.place, row.before) for row in sheet.changed}
    write_labels(large / "labels.jsonl", [{"id": id, "label": label} for id, label in labels.items()])
    done = axformer_of("certify", large, "--json")
    told = json.loads(done.stdout)
    assert 0 < told["kept"] < last
    assert (done.exit_code, told["is_certified"]) == (1, False)
    assert f"the result has that of trial {last}, which is not certified" in told["sentence"]
    assert not (tmp_path / "large-certified").exists()
    sheet = sheet.model_copy(update={"before_training": True})
    (result.parent / "trained").mkdir()
    for name in ("report.json", "labels.jsonl"):
        (result.parent / "trained" / name).write_bytes((large / name).read_bytes())
    (result.parent / "trained" / "answers.json").write_text(sheet.model_dump_json(), encoding="utf-8")
    done = axformer_of("certify", result.parent / "trained")
    assert (done.exit_code, "says nothing of the trained model" in " ".join(done.output.split())) == (1, True)


@pytest.mark.slow
def test_labels_that_do_not_belong_are_told_or_refused(result: Path) -> None:
    sheet = read_sheet(result)
    id = sheet.changed[0].id
    read = given_labels(sheet, [{"id": id, "label": 1}, {"id": id, "label": 0}, {"id": "gone", "label": 1}], "labels")
    assert read.labels == {}
    assert "people disagree on 1 rows" in " ".join(read.notes)
    assert "1 labels are of rows whose answers did not change" in " ".join(read.notes)
    for records, reason in (
        ([{"id": "gone", "label": 1}], "none of its 1 ids"),
        ([{"id": id, "label": "maybe"}], "the labels are LABEL_0, LABEL_1"),
        ([{"text": "x", "label": 1}], "give every row its id and its label"),
    ):
        with pytest.raises(InputError, match=reason):
            given_labels(sheet, records, "labels")


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({}, "validation", "needs validation data, or unlabelled rows"),
        ({"unlabelled": "u.jsonl"}, "validation", "method=axformer decides by labels"),
        ({"unlabelled": "u.jsonl", "goal": "fewer-layers=1", "train": "t.jsonl"}, "validation", "decides by labels"),
        ({"validation": "v.jsonl", "goal": "same-answers=98"}, "goal", "counts answers that stay"),
        (
            {"validation": "v.jsonl", "unlabelled": "u.jsonl", "goal": "same-answers=98"},
            "goal",
            "leave validation data out",
        ),
    ],
)
def test_runs_that_lack_labels_are_refused_at_once(fields: dict[str, str], field: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        read_run({"checkpoint": "model", **fields}).settled()
    assert refused.value.field == field


def chunk_tagger(count: int) -> tuple[Any, Any, list[dict[str, object]]]:
    """A tagger of chunks with its tokenizer and rows."""
    tags = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG"]
    config = tiny_config(labels=len(tags))
    config.id2label = dict(enumerate(tags))
    torch.manual_seed(0)
    model = BertForTokenClassification(config).eval()
    return model, tiny_tokenizer(), tagged_rows(count, tags)


def test_a_sheet_of_chunks_knows_those_of_labelled_rows_and_labels_are_its_tags() -> None:
    model, tokenizer, rows = chunk_tagger(ROWS)
    checkpoint = from_memory(model, tokenizer)
    labelled = prepare(rows_of(rows[:80]), checkpoint, CONFIG)
    own = with_own_answers(rows_of(without_answers(rows[80:])), labelled.rows, checkpoint, CONFIG)
    sets = (labelled, own)
    answers = [[measure(one, checkpoint.task, data.samples) for data in sets] for one in (model, shaken(model))]
    made = AnsweringModel(1, "compact", 2.0, answers[1])
    sheet = sheet_of(ConfirmingRows(labelled, own), answers[0], [made], model.config, 20)
    assert (sheet.test, sheet.metric, len(sheet.chunks)) == ("worst_case", "f1", sheet.rows)
    free = sheet_of(
        ConfirmingRows(None, own), answers[0][1:], [AnsweringModel(1, "compact", 2.0, answers[1][1:])], model.config, 20
    )
    assert sheet.chunks[-free.rows :] == free.chunks, "an unlabelled row has those that the untouched model finds"
    assert sum(sheet.chunks) > sum(free.chunks)
    assert any(row.label is not None for row in sheet.changed)
    assert p_value_of(sheet, sheet.models[0], {}, 0.2, is_worst=False) <= p_value_of(sheet, sheet.models[0], {}, 0.2)
    assert AnswerSheet.model_validate_json(sheet.model_dump_json()) == sheet


def test_words_that_the_model_does_not_read_are_not_asked_for() -> None:
    model, tokenizer, rows = chunk_tagger(ROWS)
    for row in rows:  # a word without a token, and words beyond the longest input
        row["tokens"], row["tags"] = ["\u200b", *row["tokens"], *["word1"] * 9], ["O", *row["tags"], *["O"] * 9]
    checkpoint = from_memory(model, tokenizer)
    config = make_config("robust", {"max_length": 9})
    sets = (
        prepare(rows_of(rows[::2]), checkpoint, config),
        with_own_answers(rows_of(without_answers(rows[1::2])), None, checkpoint, config),
    )
    answers = [[measure(one, checkpoint.task, data.samples) for data in sets] for one in (model, shaken(model))]
    made = AnsweringModel(1, "compact", 2.0, answers[1])
    sheet = sheet_of(ConfirmingRows(*sets), answers[0], [made], model.config, 20)
    assert all(len(row.inputs["tokens"]) == len(row.before) == 7 for row in sheet.changed), (
        "nine without [CLS] and [SEP]"
    )
    told = {tuple(row["tokens"][1:8]) for row in rows}
    assert all(tuple(row.inputs["tokens"]) in told for row in sheet.changed)


@pytest.mark.slow
def test_a_person_chooses_among_the_answers_to_a_question(tmp_path: Path) -> None:
    model = checkpoint_of(Case("bert", "question_answering"))
    model.model.save_pretrained(tmp_path / "model")
    model.tokenizer.save_pretrained(tmp_path / "model")
    write_rows(tmp_path / "free.jsonl", without_answers(question_rows(300)))
    done = axformer_of(
        *("prune", tmp_path / "model", "--unlabelled", tmp_path / "free.jsonl", "--goal", "within-points=10"),
        *("--set", "budgets=[0.95, 0.8]", "--forms", "compact", "--output", tmp_path / "small"),
    )
    assert done.exit_code == 0, done.output
    assert "every question is taken to have an answer" in " ".join(done.output.split())
    sheet = read_sheet(tmp_path / "small")
    assert (sheet.test, sheet.metric) == ("exact", "exact match")
    row = needed(sheet, {})[0]
    assert {"question", "context"} == set(row.inputs)
    choices = choices_of(sheet, row)
    assert row.before in choices
    assert choices[-1] == NONE_OF_THESE
    assert choices[:-1] == sorted(choices[:-1]), "the order does not say which model answered what"
    shown = axformer_of("label", tmp_path / "small", "--by", "ann", typed="1\nq\n")
    assert shown.exit_code in (0, 1), shown.output
    assert all(choice in shown.output for choice in choices)
    (given,) = map(json.loads, (tmp_path / "small" / "labels.jsonl").read_text(encoding="utf-8").splitlines())
    assert given["label"] in choices[:-1]
    favoured = {row.id: _first_other(sheet, row.place) for row in sheet.changed}
    lost = {row.id: row.before for row in sheet.changed}
    margins = [p_value_of(sheet, sheet.models[0], labels, 0.1) for labels in (favoured, {}, lost)]
    assert margins[0] < margins[1] == pytest.approx(margins[2], abs=1e-3)


@pytest.mark.slow
def test_labels_of_changed_chunks_certify_the_f1_of_a_tagger(tmp_path: Path) -> None:
    model, tokenizer, rows = chunk_tagger(400)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    write_rows(tmp_path / "free.jsonl", without_answers(rows))
    done = axformer_of(
        *("prune", tmp_path / "model", "--unlabelled", tmp_path / "free.jsonl", "--goal", "within-points=20"),
        *("--set", "budgets=[0.95, 0.9]", "--forms", "compact", "--output", tmp_path / "small"),
    )
    assert done.exit_code == 0, done.output
    sheet = read_sheet(tmp_path / "small")
    assert (sheet.test, sheet.metric) == ("worst_case", "f1")
    asked = needed(sheet, {})
    assert asked, "answers that changed wait for labels"
    words = len(asked_words(sheet, asked[0]))
    shown = axformer_of("label", tmp_path / "small", "--by", "ann", typed="1\n" * words + "q\n")
    assert shown.exit_code in (0, 1), shown.output
    (given,) = map(json.loads, (tmp_path / "small" / "labels.jsonl").read_text(encoding="utf-8").splitlines())
    assert given["id"] in {row.id for row in asked}
    assert len(given["label"]) == len(next(row for row in asked if row.id == given["id"]).inputs["tokens"])
    favoured = {row.id: _first_other(sheet, row.place) for row in sheet.changed}
    assert standing_of(sheet, "compact", favoured).passed > standing_of(sheet, "compact", {}).passed


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["same-answers=90", "operations=1.3", "within-points=10"])
def test_goals_work_without_any_label(goal: str) -> None:
    free = without_answers(tiny_rows(300))
    found = axformer.prune(tiny_model(), tiny_tokenizer(), unlabelled=free, goal=goal)
    same = np.mean([trial.figures.metrics["accuracy"] for trial in found.trace if trial.figures is not None][:1])
    assert same == 1.0, "the untouched model answers as itself"


@pytest.mark.slow
def test_labels_certify_a_smaller_model_in_python_too(tmp_path: Path) -> None:
    free = without_answers(tiny_rows(500))
    found = axformer.prune(
        *(tiny_model(), tiny_tokenizer(), None, {"budgets": [0.9, 0.8, 0.6]}),
        **{"unlabelled": free, "goal": "within-points=5"},
    )
    with pytest.raises(DataError, match="call save"):
        found.certify([], tmp_path / "none")
    found.save(tmp_path / "small", ["compact"])
    sheet = read_sheet(tmp_path / "small")
    assert f"{len(needed(sheet, {})):,} changed answers" in repr(found)
    favoured = {row.id: _first_other(sheet, row.place) for row in sheet.changed}
    labels = [{"id": id, "label": f"LABEL_{label}"} for id, label in favoured.items()]
    write_labels(tmp_path / "answered.jsonl", labels)
    told = axformer_of("certify", tmp_path / "small", "--labels", tmp_path / "answered.jsonl")
    assert told.exit_code == 0, told.output
    assert "given in memory" in told.output
    assert {one.name for one in tmp_path.iterdir()} == {"small", "answered.jsonl"}
    better = found.certify(tmp_path / "answered.jsonl", tmp_path / "better", ["compact"])
    kept = standing_of(sheet, "compact", favoured).kept
    assert kept is not None
    assert better.report is not None
    assert found.report is not None
    assert better.report["certificate"]["kept"] == kept.seq > found.report["certificate"]["kept"]
    assert better.report["path"][1:] != found.report["path"][1:], "another point is kept"
    assert "changed answers" not in repr(better), "all are labelled"
    assert (tmp_path / "better/labels.jsonl").read_bytes() == (tmp_path / "answered.jsonl").read_bytes()
    again = axformer.load(tmp_path / "better")
    assert sum(one.numel() for one in again.parameters()) == better.report["pruned"]["parameters"]


def test_a_task_whose_answers_are_no_labels_needs_data() -> None:
    checkpoint = checkpoint_of(Case("gpt2", "causal_lm"))
    rows = without_answers(SETTINGS["causal_lm"][2])
    with pytest.raises(ConfigError, match="too little for a model for causal lm"):
        axformer.prune(checkpoint.model, checkpoint.tokenizer, unlabelled=rows, goal="operations=1.5", max_length=24)


def test_a_model_of_one_output_needs_no_label_column() -> None:
    checkpoint = from_memory(tiny_model(), tiny_tokenizer())
    assert checkpoint.for_rows(rows_of(without_answers(tiny_rows(5))), is_labelled=False).task.name == "classification"


@pytest.mark.slow
def test_numbers_that_a_person_types_certify_a_smaller_regression(tmp_path: Path) -> None:
    save_tiny_checkpoint(tmp_path / "model", tiny_config(labels=1))
    write_rows(tmp_path / "free.jsonl", without_answers(tiny_rows(500, labels=1)))
    done = axformer_of(
        *("prune", tmp_path / "model", "--unlabelled", tmp_path / "free.jsonl", "--goal", "within-points=10"),
        *("--set", "budgets=[0.9, 0.8, 0.6]", "--output", tmp_path / "small"),
    )
    assert done.exit_code == 0, done.output
    told = " ".join(done.output.split())
    assert "30 to 300 labels decide about a model" in told
    assert "Pearson's correlation of its answers to the unlabelled rows with those of before is" in told
    assert "answered as before" not in told, "numbers are nearer or farther"
    sheet = read_sheet(tmp_path / "small")
    assert (sheet.test, sheet.metric, len(sheet.changed)) == ("sampled", "explained variance", sheet.rows)
    right = {row.id: row.before for row in sheet.changed}
    known: dict[str, Any] = {}
    typed = ["much"]
    while rows := needed(sheet, known):
        known[rows[0].id] = right[rows[0].id]
        typed.append(str(right[rows[0].id]))
    done = axformer_of("label", tmp_path / "small", "--output", tmp_path / "better", typed="\n".join([*typed, "q", ""]))
    assert done.exit_code == 0, done.output
    assert "label 'much' of row" in done.output
    assert "is no number" in done.output
    records = [json.loads(line) for line in (tmp_path / "small" / "labels.jsonl").read_text("utf-8").splitlines()]
    assert {one["id"]: one["label"] for one in records} == known
    kept = standing_of(sheet, "compact", known).kept
    assert kept is not None
    again = json.loads((tmp_path / "better" / "report.json").read_text(encoding="utf-8"))
    certificate = again["certificate"]
    assert (certificate["kept"], certificate["test"], certificate["asymptotic"]) == (kept.seq, "sampled", True)
    assert "less than 10 points of explained variance lost" in certificate["sentence"]
