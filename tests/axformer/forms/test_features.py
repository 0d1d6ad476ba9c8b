"""A feature model answers the same in memory, loaded and as ONNX, in every family, and as its hidden states say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import axformer
from axformer.analysis.advice import Given
from axformer.analysis.features import ranked, select
from axformer.analysis.inputs import AnalysisInputs
from axformer.analysis.making import study_of
from axformer.analysis.probing import scores_of
from axformer.cli.main import app
from axformer.config import reading_config
from axformer.data.reading import rows_of
from axformer.errors import AxFormerError
from axformer.featuring import make_features
from axformer.forms.features import DIMENSIONS_FILE, load_features
from axformer.intake.checkpoint import Checkpoint, from_memory
from axformer.intake.dataset import prepare
from axformer.surroundings import Surroundings
from tests.family_cases import SETTINGS, Case, all_cases, checkpoint_of
from tests.tiny_models import answered_rows, answering_model, tiny_tokenizer

PROBED = ("classification", "multi_label_classification", "regression", "token_classification")
CASES = [
    case
    for case in all_cases()
    if case.task == "classification" or (case.family in ("bert", "xlnet", "llama") and case.task in PROBED)
]
TOLERANCE = 2e-2
"""Hidden states that probes learn from are stored in 16 bits."""


def inputs_of(checkpoint: Checkpoint, records: Any) -> AnalysisInputs:
    config = reading_config({})
    data = prepare(rows_of(records), checkpoint, config)
    return AnalysisInputs(checkpoint, data, data, None, config, Given("my model", "dev.jsonl", "train.jsonl"))


def texts_of(records: Any) -> list[Any]:
    keys = [key for key in ("tokens", "text", "text_pair") if key in records[0]]
    return [tuple(row[key] for key in keys) if len(keys) > 1 else row[keys[0]] for row in records]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_loaded_answers_are_those_of_the_whole_models_hidden_states(case: Case, tmp_path: Path) -> None:
    records, checkpoint = SETTINGS[case.task][2], checkpoint_of(case)
    inputs = inputs_of(checkpoint, records)
    made = make_features(inputs, tmp_path / "features")
    loaded = load_features(tmp_path / "features")
    assert loaded.facts == made
    assert made.layers <= made.whole_layers
    (tmp_path / "states").mkdir()
    study = study_of(inputs, *_bounds(), tmp_path / "states", Surroundings())
    selection = select(study)
    expected = scores_of(selection.measured.probe.linear, study.data.states, selection.dimensions)
    rows: list[Any] = [None] * len(records)
    with torch.inference_mode():
        for batch in inputs.data.samples.batches:
            logits = loaded.model(**batch.inputs).logits
            scores = logits if made.reads == "position" else study.data.positions.read(batch, logits)
            for row, part in zip(batch.rows.tolist(), scores.split(study.data.positions.counts(batch)), strict=True):
                rows[row] = part.numpy()
    assert np.abs(np.concatenate(rows) - expected).max() <= TOLERANCE * max(1.0, float(np.abs(expected).max()))
    answers = loaded.predict(texts_of(records))
    assert len(answers) == len(records)
    if made.kind == "class" and made.reads == "position":
        assert answers == [made.labels[int(row.argmax())] for row in rows]
    if made.reads == "words":
        assert [len(row) for row in answers] == [len(row["tokens"]) for row in records]


def _bounds() -> tuple[Any, int]:
    from axformer.analysis.study import ReportBounds

    return ReportBounds(), 0


@pytest.mark.parametrize(
    "case",
    [Case("bert", "classification"), Case("albert", "classification"), Case("gpt2", "token_classification")],
    ids=str,
)
@pytest.mark.slow
def test_onnx_answers_the_same(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    records = SETTINGS[case.task][2]
    make_features(inputs_of(checkpoint_of(case), records), tmp_path / "features", onnx=True)
    texts = texts_of(records)
    assert load_features(tmp_path / "features").predict(texts) == load_features(
        tmp_path / "features", onnx=True
    ).predict(texts)


def test_a_good_model_needs_few_dimensions_and_keeps_its_answers(tmp_path: Path) -> None:
    model = answering_model(2)
    rows = answered_rows(model, 160, [0, 1])
    checkpoint = from_memory(model, tiny_tokenizer())
    config = reading_config({})
    parts = [prepare(rows_of(part), checkpoint, config) for part in (rows[:80], rows[80:])]
    inputs = AnalysisInputs(checkpoint, parts[0], parts[1], None, config, Given("m", "d", "t"))
    made = make_features(inputs, tmp_path / "features")
    assert made.value > 0.7
    assert made.whole_value == 1.0
    answers = axformer.load_features(tmp_path / "features").predict([row["text"] for row in rows[:80]])
    names = list(made.labels)
    right = [names.index(answer) == row["label"] for answer, row in zip(answers, rows[:80], strict=True)]
    assert np.mean(right) == pytest.approx(made.value)


def test_dimensions_are_ranked_by_the_class_that_needs_them_soonest() -> None:
    sizes = np.array([[8.0, 1.0, 1.0, 0.0], [0.0, 0.0, 3.0, 7.0]])
    assert ranked(sizes) == [0, 3, 2, 1]
    assert ranked(np.array([[1.0, 1.0, 1.0]])) == [0, 1, 2]


def test_a_damaged_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AxFormerError, match="holds no feature model"):
        load_features(tmp_path)
    (tmp_path / DIMENSIONS_FILE).write_text("{}", encoding="utf-8")
    with pytest.raises(AxFormerError, match="does not describe the feature model"):
        load_features(tmp_path)


def test_the_command(checkpoint: Path, data: Path, tmp_path: Path) -> None:
    asked = ["features", checkpoint, "--data", data, "--train", data, "--output", tmp_path / "out"]
    ran = CliRunner().invoke(app, [str(word) for word in asked])
    assert ran.exit_code == 0, ran.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "encoder",
        "classifier.safetensors",
        "dimensions.json",
        "analysis.json",
        "analysis.html",
    }
    assert "load_features" in ran.output
