import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from transformers import BertConfig

from axformer.config import PassConfig
from axformer.data.reading import rows_of
from axformer.data.rows import Rows
from axformer.errors import ConfigError, DataError
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.tasks.class_scores import class_scores
from axformer.tasks.classification import Classification
from axformer.tasks.regression import Regression
from tests.tiny_models import MAX_TOKENS, tiny_config, tiny_model, tiny_tokenizer


def rows(*labels: object) -> Rows:
    return rows_of([{"text": "word1", "label": label} for label in labels])


NAMED = BertConfig(label2id={"good": 0, "bad": 1}, id2label={0: "good", 1: "bad"})


@pytest.mark.parametrize(
    "labels", [("good", "bad", "bad"), (0, 1, 1), ("0", "1", "1"), (0.0, 1.0, 1.0), (False, True, True)]
)
def test_labels_are_names_or_indices_of_classes(labels: tuple[object, ...]) -> None:
    assert Classification().labels(rows(*labels), NAMED).indices == [0, 1, 1]


@pytest.mark.parametrize("label", ["ugly", 2, -1, 0.5, "-1", "²"])
def test_an_unknown_label_is_named_with_its_row_and_the_known_ones(label: object) -> None:
    with pytest.raises(DataError, match=r"row 2: label .* is unknown to the model; it knows 0 \(good\), 1 \(bad\)"):
        Classification().labels(rows(0, label), NAMED)


@pytest.mark.parametrize("label", ["good", "nan", "inf", 1e16, "1e16", 10**400])
def test_a_regression_wants_numbers(label: object) -> None:
    with pytest.raises(DataError, match=r"row 2: label .* is not a number"):
        Regression().labels(rows(1.5, label), tiny_config(labels=1))


def test_a_regression_reads_numbers_written_as_text() -> None:
    assert Regression().labels(rows(1, "2.5"), tiny_config(labels=1)) == [[1.0], [2.5]]


def statistics(*columns: list[float]) -> np.ndarray:
    return np.column_stack(columns).astype(float)


def test_metrics_have_known_values() -> None:
    found = Classification().metrics(statistics([0, 0, 1, 0], [0, 0, 1, 1]))
    assert found == pytest.approx({"accuracy": 0.75, "matthews_correlation": 0.577350, "f1_macro": 0.733333}, abs=1e-5)
    straight = Regression().metrics(statistics([2, 4, 6], [1, 2, 3]))
    assert straight == pytest.approx({"pearson": 1.0, "spearman": 1.0})
    assert Regression().metrics(statistics([1, 2], [1, 1])) == {"pearson": 0.0, "spearman": 0.0}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_class_scores_are_those_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    expected, predicted = np.array(pairs).T
    with warnings.catch_warnings(action="ignore"):  # it warns of classes that are on one side only
        reference = {
            "accuracy": accuracy_score(expected, predicted),
            "matthews_correlation": matthews_corrcoef(expected, predicted),
            "f1_macro": f1_score(expected, predicted, average="macro", zero_division=0.0),
        }
    assert class_scores(expected, predicted) == pytest.approx(reference)


LONG = rows_of([{"text": "word1", "label": 0}, {"text": "word2 " * 150, "label": 1}])


def test_a_row_longer_than_the_model_takes_is_refused_until_it_is_told_to_cut() -> None:
    checkpoint = from_memory(tiny_model(), tiny_tokenizer())
    with pytest.raises(
        DataError, match="row 2: it has 152 tokens, the model takes 128; shorten it, or set max_length=128"
    ):
        prepare(LONG, checkpoint, PassConfig())
    cut = prepare(LONG, checkpoint, PassConfig(max_length=MAX_TOKENS))
    assert cut.samples.cut == 1
    assert cut.samples.lengths.tolist() == [3, MAX_TOKENS]


def test_max_length_is_one_that_the_model_takes() -> None:
    checkpoint = from_memory(tiny_model(), tiny_tokenizer())
    with pytest.raises(ConfigError, match="max_length=129: the model takes at most 128 tokens"):
        prepare(LONG, checkpoint, PassConfig(max_length=129))
