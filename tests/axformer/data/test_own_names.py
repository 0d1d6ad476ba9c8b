"""Integers that a data set names are read by these names, whatever the order of the model's classes."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.data.encoding import TokenLimits
from axformer.data.labels import ClassNames, LabelColumn, Read, Reading
from axformer.data.reading import read_rows, rows_of
from axformer.data.rows import Rows
from axformer.errors import DataError
from axformer.tasks.classification import Classification
from axformer.tasks.token_classification import TokenClassification
from tests.axformer.data.readings import TAGS, classes
from tests.axformer.data.test_records import Dataset
from tests.tiny_models import tiny_tokenizer

MNLI = ("entailment", "neutral", "contradiction")
BACKWARDS = classes(*reversed(MNLI))
NAMES = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True)


def with_features(table: dict[str, list[Any]], features: dict[str, Any]) -> pa.Table:
    """A table as ``datasets`` writes it."""
    about = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    return pa.table(table).replace_schema_metadata(about)


def labelled(*labels: int, names: tuple[str, ...] = MNLI) -> pa.Table:
    return with_features(
        {"text": ["word1"] * len(labels), "label": list(labels)},
        {"text": {"dtype": "string", "_type": "Value"}, "label": {"names": list(names), "_type": "ClassLabel"}},
    )


class Featured(Dataset):
    """A table of ``datasets`` with its features."""

    @property
    def features(self) -> dict[str, Any]:
        return {"text": SimpleNamespace(dtype="string"), "label": SimpleNamespace(names=list(MNLI))}


def read(rows: Rows, model: Any = BACKWARDS) -> Read:
    return Classification().labels(rows, model)


def test_integers_of_a_data_set_mean_its_names(tmp_path: Path) -> None:
    pa.parquet.write_table(labelled(0, 2, 1), tmp_path / "data.parquet")
    table = Featured({"text": ["word1"] * 3, "label": [0, 2, 1]})
    for rows in (read_rows(str(tmp_path / "data.parquet")), rows_of(labelled(0, 2, 1)), rows_of(table)):
        found = read(rows)
        assert (found.indices, found.reading) == ([2, 0, 1], Reading.NAMES)
        assert found.note is not None
        assert "by the names that the file's features give them" in found.note
        assert read(rows, classes(*MNLI)) == Read([0, 2, 1], Reading.INDICES)


@given(NAMES, st.permutations("abcdefgh"), st.data())
def test_names_mean_the_same_as_names_and_as_integers(own: list[str], model: list[str], data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(0, len(own) - 1), min_size=1))
    rows, known = Rows("data", {"label": list(values)}), ClassNames(tuple(model))
    by_name = LabelColumn([own[value] for value in values], rows, range(1, len(values) + 1)).read(known)
    assert LabelColumn(values, rows, range(1, len(values) + 1), own_names=own).read(known).indices == by_name.indices


def test_tags_of_a_data_set_mean_its_names() -> None:
    tags = {"feature": {"names": ["I-PER", "O", "B-PER"], "_type": "ClassLabel"}, "_type": "List"}
    rows = rows_of(with_features({"tokens": [["word1"] * 4], "tags": [[1, 2, 0, -100]]}, {"tags": tags}))
    encoded = TokenClassification.of(TAGS).encode(rows, tiny_tokenizer(), TAGS, TokenLimits())
    assert [tag for tag in encoded.labels[0] if tag != -100] == [0, 1, 2]


@pytest.mark.parametrize("names", [("neg", "neu", "pos"), ("2", "1", "0"), ("entailment", "neutral")])
def test_names_that_say_nothing_of_the_order_leave_indices(names: tuple[str, ...]) -> None:
    model = classes(*MNLI)
    assert read(rows_of(labelled(0, 1, names=names)), model) == Read([0, 1], Reading.INDICES)


def test_a_class_that_the_model_lacks_is_named() -> None:
    rows = rows_of(labelled(0, 1, names=("contradiction", "unknown", "entailment")))
    with pytest.raises(
        DataError, match="row 2: label 1 is 'unknown' in the file's own features, which is unknown to the"
    ):
        read(rows, classes(*MNLI))


@pytest.mark.parametrize(
    "about", [b"no JSON", b"{}", b"[]", b'{"info": {"features": [1]}}', b'{"info": {"features": {"label": 1}}}']
)
def test_damaged_features_name_nothing(about: bytes) -> None:
    table = pa.table({"text": ["word1"], "label": [0]}).replace_schema_metadata({b"huggingface": about})
    assert not rows_of(table).own_names
