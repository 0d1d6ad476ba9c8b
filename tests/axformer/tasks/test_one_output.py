"""What one output tells: numbers by the squared error, yes and no or degrees by the binary cross-entropy."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score
from transformers import AutoModelForSequenceClassification

import axformer
from axformer.config import PassConfig
from axformer.data.columns import DataSource
from axformer.data.encoding import TokenLimits
from axformer.data.reading import rows_of
from axformer.errors import CheckpointError, DataError
from axformer.forms.files import write_model
from axformer.intake.checkpoint import load_checkpoint
from axformer.scores.measured import measure
from axformer.tasks.binary import BinaryClassification
from axformer.tasks.class_scores import average_precision
from axformer.tasks.one_output import GradedClassification
from axformer.tasks.registry import task_of
from axformer.tasks.regression import Regression
from axformer.wire.finetuning import FinetuneSettings
from tests.runs import open_run
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_model, tiny_rows, tiny_tokenizer, write_rows

SIGMOID = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid", "version": "4.0.1"}}
BEFORE = {"sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid"}
IDENTITY = {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity", "version": "4.0.1"}}
AS_REGRESSION, AS_CLASSES = {"problem_type": "regression"}, {"problem_type": "single_label_classification"}
AS_LABELS = {"problem_type": "multi_label_classification"}
YES_OR_NO, DEGREES, NUMBERS = [0, 1, "1", 0.0], [0.0, 0.4, 1.0], [0, 2.5, 5]


def config_with(**said: Any) -> Any:
    config = tiny_config(labels=1)
    for key, value in said.items():
        setattr(config, key, value)
    return config


def rows(*labels: Any) -> Any:
    return rows_of([{"text": f"word{index}", "label": label} for index, label in enumerate(labels)])


def task(said: dict[str, Any], labels: list[Any]) -> Any:
    return task_of(AutoModelForSequenceClassification, config_with(**said), rows(*labels))


@pytest.mark.parametrize(
    ("said", "labels", "expected", "why"),
    [
        ({}, YES_OR_NO, BinaryClassification, "0 and 1 and the model has one output: read as yes or no"),
        (SIGMOID, YES_OR_NO, BinaryClassification, "as the checkpoint says .the Sigmoid of a cross-encoder"),
        (BEFORE, YES_OR_NO, BinaryClassification, "as the checkpoint says .the Sigmoid of a cross-encoder"),
        ({"sentence_transformers": {"version": "4.0.1"}}, DEGREES, GradedClassification, "the Sigmoid"),
        (IDENTITY, YES_OR_NO, BinaryClassification, "read as yes or no"),
        (AS_CLASSES, YES_OR_NO, BinaryClassification, "problem_type=single_label_classification"),
        (AS_LABELS, YES_OR_NO, BinaryClassification, "problem_type=multi_label_classification"),
        (AS_REGRESSION, YES_OR_NO, Regression, "read as numbers .*problem_type=regression.* take problem_type out"),
        (AS_REGRESSION | SIGMOID, YES_OR_NO, BinaryClassification, "the Sigmoid of a cross-encoder"),
        ({}, DEGREES, Regression, "between 0 and 1, read as numbers .squared error.; if .* as cross-encoders do, say"),
        (SIGMOID, DEGREES, GradedClassification, "degrees .*the Sigmoid of a cross-encoder"),
        (AS_CLASSES, DEGREES, GradedClassification, "degrees .*problem_type=single_label_classification"),
        (AS_REGRESSION, DEGREES, Regression, None),
        ({}, NUMBERS, Regression, None),
        (IDENTITY, NUMBERS, Regression, None),
        (AS_REGRESSION, NUMBERS, Regression, None),
    ],
)
def test_config_and_labels_settle_the_task_and_it_is_told(
    said: dict[str, Any], labels: list[Any], expected: type, why: str | None
) -> None:
    found = task(said, labels)
    assert type(found) is expected
    encoded = found.encode(rows(*labels), tiny_tokenizer(), config_with(**said), TokenLimits())
    assert (encoded.notes == ()) is (why is None)
    if why is not None:
        (note,) = encoded.notes
        assert re.search(why, note)


@pytest.mark.parametrize(
    ("said", "labels", "message"),
    [
        (SIGMOID, NUMBERS, "row 2: label 2.5 is not between 0 and 1, where the sigmoid .*; divide all labels"),
        ({}, ["yes", "no"], "row 1: label 'yes' is not a number"),
        ({}, [0, "nan"], "row 2: label 'nan' is not a number"),
    ],
)
def test_labels_that_one_output_cannot_tell_are_refused(said: dict[str, Any], labels: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        task(said, labels).encode(rows(*labels), tiny_tokenizer(), config_with(**said), TokenLimits())


@pytest.mark.parametrize(
    ("activation", "labels", "expected"),
    [
        ("torch.nn.modules.activation.Sigmoid", DEGREES, GradedClassification),
        ("torch.nn.modules.linear.Identity", DEGREES, Regression),
    ],
)
def test_the_activation_of_a_cross_encoder_is_read_beside_its_config_and_stays(
    activation: str, labels: list[Any], expected: type, tmp_path: Path
) -> None:
    from sentence_transformers import CrossEncoder

    save_tiny_checkpoint(tmp_path / "bert", tiny_config(labels=1))
    module = torch.nn.Sigmoid() if activation.endswith("Sigmoid") else torch.nn.Identity()
    saved = CrossEncoder(str(tmp_path / "bert"), device="cpu", activation_fn=module)
    saved.save_pretrained(str(tmp_path / "saved"))
    read = load_checkpoint(tmp_path / "saved").for_rows(rows(*labels))
    assert type(read.task) is expected
    write_model(read.model, read.companions, tmp_path / "written")
    assert not (tmp_path / "written" / "modules.json").exists()
    again = CrossEncoder(str(tmp_path / "written"), device="cpu")
    assert type(again.activation_fn) is type(module)
    pairs = [("word1 word2", "word3")]
    np.testing.assert_allclose(again.predict(pairs), saved.predict(pairs), rtol=1e-6)


def test_prompts_of_a_cross_encoder_are_refused(tmp_path: Path) -> None:
    save_tiny_checkpoint(tmp_path, tiny_config(labels=1))
    said = {"model_type": "CrossEncoder", "prompts": {"query": "find: "}, "default_prompt_name": "query"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(said), encoding="utf-8")
    with pytest.raises(
        CheckpointError, match=r"prompts, as 'find: ', .*; put them into the texts, and take prompts out"
    ):
        load_checkpoint(tmp_path)
    for prompts in ([1], {"query": ["find: "]}):
        said = {"model_type": "CrossEncoder", "prompts": prompts}
        (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(said), encoding="utf-8")
        with pytest.raises(CheckpointError, match="are no object of texts; copy it again"):
            load_checkpoint(tmp_path)


def test_other_rows_are_read_as_those_that_decide() -> None:
    with pytest.raises(DataError, match=r"row 2: label 0.5 is neither 0 nor 1, as those of the rows that decide are"):
        BinaryClassification().labels(rows(1, 0.5))
    assert GradedClassification().labels(rows(1, 0.5)) == [1.0, 0.5]
    assert Regression().labels(rows(1, 0), tiny_config(labels=1)) == [[1.0], [0.0]]


def test_several_labels_a_row_stay_what_they_are() -> None:
    several = rows_of([{"text": "word1", "labels": [0]}, {"text": "word2", "labels": []}])
    assert (
        task_of(AutoModelForSequenceClassification, config_with(**AS_LABELS), several).name == AS_LABELS["problem_type"]
    )


def test_the_head_reads_one_position_whatever_the_rows_say() -> None:
    for said in ({}, SIGMOID, AS_REGRESSION, AS_CLASSES, AS_LABELS):
        assert task_of(AutoModelForSequenceClassification, config_with(**said)).pooled


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=30))
def test_binary_metrics_are_those_of_scikit_learn(pairs: list[tuple[bool, int]]) -> None:
    expected, logits = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    found = BinaryClassification().metrics(np.column_stack([expected, logits]))
    with warnings.catch_warnings(action="ignore"):  # it warns where nothing is true
        reference = {
            "accuracy": float(((logits > 0) == (expected == 1)).mean()),
            "f1": f1_score(expected, logits > 0, zero_division=0.0),
            "average_precision": average_precision_score(expected, logits),
        }
    assert found == pytest.approx(reference)
    assert average_precision(expected, logits) == found["average_precision"]


def test_degrees_are_compared_with_probabilities() -> None:
    encoded = GradedClassification().encode(rows(*DEGREES), tiny_tokenizer(), None, TokenLimits())
    logits = torch.logit(torch.tensor([0.1, 0.4, 0.7])).tolist()
    statistics = GradedClassification().statistics(logits, encoded)
    np.testing.assert_allclose(statistics[:, 1], [0.1, 0.4, 0.7], rtol=1e-6)
    assert GradedClassification().metrics(statistics)["spearman"] == pytest.approx(1.0)


def answered_rows(model: Any, count: int) -> list[dict[str, Any]]:
    """Rows whose labels are the model's own answers."""
    records = tiny_rows(count)
    inputs = tiny_tokenizer()([str(row["text"]) for row in records], return_tensors="pt", padding=True)
    with torch.inference_mode():
        logits = model(**inputs).logits[:, 0]
    return [row | {"label": int(logit > logits.median())} for row, logit in zip(records, logits, strict=True)]


def test_every_part_of_a_run_has_the_task_that_the_deciding_rows_settle(tmp_path: Path) -> None:
    """Also the held-out part with one class alone, the training, and the result, whose config.json says what it said."""
    checkpoint = save_tiny_checkpoint(tmp_path / "checkpoint", config_with(**SIGMOID))
    records = answered_rows(tiny_model(config_with()), 40)
    data = DataSource(str(write_rows(tmp_path / "data.jsonl", records)))
    ones = DataSource(str(write_rows(tmp_path / "ones.jsonl", [row for row in records if row["label"] == 1])))
    settings = PassConfig(majority_fraction=0.2, confirm=0.25)
    run = open_run(checkpoint, data, test=ones, config=settings, train=ones, finetune=FinetuneSettings(batch_size=8))
    assert [note for note in run.notes if "yes or no" in note]
    list(run.trials())
    measured = run.decisions.measured
    for part in ("test", "confirming"):
        assert set(measured.figures[0][part]) == {"loss", "accuracy", "f1", "average_precision"}
    run.repair()
    assert run._repaired is not None
    before, test = run._repaired.record.before.test, run._others["test"]
    assert before is not None
    assert test is not None
    after = measure(run._repaired.model, run._checkpoint.task, test.samples).figures
    assert after["loss"] < before["loss"], "it learned to say yes"
    result = run._repaired.model.config.to_dict()
    assert (result["problem_type"], result["sentence_transformers"]) == (None, SIGMOID["sentence_transformers"])


@pytest.mark.parametrize("labels", [[1, 1, 1], [0.5, 0.5], [3, 3.0]])
def test_rows_that_decide_must_differ(labels: list[Any]) -> None:
    model = tiny_model(config_with())
    with pytest.raises(DataError, match=r"has (only one label|the same label), .* and rows that decide must differ"):
        axformer.prune(model, tiny_tokenizer(), rows(*labels))


def test_numbers_of_several_outputs_are_read_from_either_column() -> None:
    config = tiny_config(labels=2)
    config.problem_type = "regression"
    for name in ("label", "labels"):
        records = [{"text": "word1", name: [1, "2.5"]}, {"text": "word2", name: [0.5, -1]}]
        found = task_of(AutoModelForSequenceClassification, config, rows_of(records))
        assert found.encode(rows_of(records), tiny_tokenizer(), config, TokenLimits()).labels == [
            [1.0, 2.5],
            [0.5, -1.0],
        ]
    with pytest.raises(DataError, match="row 2: it has 1 labels, the model has 2 outputs; give one for each"):
        Regression().labels(rows([1, 2], [1]), config)


def test_metrics_of_several_outputs_are_the_means_of_each() -> None:
    chance = np.random.default_rng(0)
    expected, predicted = chance.normal(size=(2, 20, 3))
    found = Regression().metrics(np.hstack([expected, predicted]))
    each = [Regression().metrics(np.column_stack([expected[:, place], predicted[:, place]])) for place in range(3)]
    for name, value in found.items():
        assert value == pytest.approx(np.mean([one[name] for one in each]))
