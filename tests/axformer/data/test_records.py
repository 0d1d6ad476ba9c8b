"""Whatever holds rows in memory gives the same table, in Python's own values."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from axformer.data.reading import read_rows, rows_of
from axformer.data.records import plain, table_of
from axformer.errors import DataError, InputError, WrongTypeError

COLUMNS = {"text": ["a", "b", "c"], "label": [0, 1, 1], "tokens": [["a"], ["b", "c"], []]}
RECORDS = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)]


@dataclass(frozen=True)
class Frame:
    """A table as pandas and polars have it: its length is that of its rows, and to go over it is to go over its columns."""

    table: Mapping[str, list[Any]]

    @property
    def columns(self) -> Iterable[str]:
        return self.table.keys()

    def __iter__(self) -> Any:
        return iter(self.table)

    def __len__(self) -> int:
        return len(next(iter(self.table.values())))

    def __getitem__(self, name: str) -> Any:
        return self.table[name]


class Dataset(Frame):
    """A table as ``datasets`` has it, which gives columns by name and rows by number."""

    @property
    def column_names(self) -> list[str]:
        return list(self.table)

    @property
    def columns(self) -> Any:
        raise AttributeError("there is no such attribute")


class Columns(dict[str, Any]):
    """Columns in a dict of its own kind."""


@pytest.mark.parametrize(
    "make",
    [
        lambda: RECORDS,
        lambda: tuple(RECORDS),
        lambda: (record for record in RECORDS),
        lambda: COLUMNS,
        lambda: Columns(COLUMNS),
        lambda: COLUMNS | {"label": np.array([0, 1, 1])},
        lambda: COLUMNS | {"label": torch.tensor([0, 1, 1])},
        lambda: [record | {"label": np.int64(record["label"])} for record in RECORDS],
        lambda: [record | {"label": torch.tensor(record["label"])} for record in RECORDS],
        lambda: [record | {"tokens": np.array(record["tokens"], dtype=object)} for record in RECORDS],
        lambda: [record | {"text": np.str_(record["text"])} for record in RECORDS],
        lambda: pa.table(COLUMNS),
        lambda: pa.RecordBatch.from_pylist(RECORDS),
        lambda: Frame(COLUMNS),
        lambda: Dataset(COLUMNS),
    ],
)
def test_every_kind_of_table_gives_the_same_plain_columns(make: Callable[[], Any]) -> None:
    table = rows_of(make()).table
    assert table == COLUMNS
    assert {type(value) for value in table["label"]} == {int}
    assert {type(value) for value in table["text"]} == {str}


def test_a_column_that_a_record_lacks_holds_nothing_there() -> None:
    assert table_of([{"text": "a"}, {"label": 1}]) == {"text": ["a", None], "label": [None, 1]}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists))
def test_plain_values_stay_what_they_are(value: Any) -> None:
    assert plain(value) == value


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_arrays_and_tensors_become_lists(values: list[int]) -> None:
    arrays = (np.array(values, dtype=np.int64), torch.tensor(values, dtype=torch.int64), pa.array(values, pa.int64()))
    for array in arrays:
        assert plain({"answer_start": array}) == {"answer_start": values}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "the data is of type NoneType; give a path, a list of records"),
        (7, "the data is of type int"),
        (b"text", "the data is of type bytes"),
        ([1, 2], "row 1 of the data is of type int, not a dict"),
        (np.zeros((2, 2)), "row 1 of the data is of type numpy.ndarray"),
        ({"text": "a", "label": 1}, "column 'text' of the data is of type str, not a list"),
        ({"text": {"a": "b"}, "label": {"a": 1}}, "column 'text' of the data is of type dict, not a list"),
        ({"text": {"a", "b"}}, "column 'text' of the data is of type set, not a list"),
        ({"train": Dataset(COLUMNS), "test": Dataset(COLUMNS)}, "the data has the splits train, test; give one"),
    ],
)
def test_other_objects_are_refused_by_name(data: Any, words: str) -> None:
    with pytest.raises(WrongTypeError, match=words) as caught:
        rows_of(data)
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, TypeError)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="not equally long: 'text' has 2, 'label' has 1 rows"):
        rows_of({"text": ["a", "b"], "label": [1]})


class Twice(Frame):
    """A table with two columns of one name, as pandas has it."""

    @property
    def columns(self) -> Iterable[str]:
        return ["text", "text", "label"]


@pytest.mark.parametrize(
    "table", [Twice({"text": ["a"], "label": [1]}), pa.table([["a"], ["b"]], ["text", "text"])], ids=["frame", "arrow"]
)
def test_two_columns_of_one_name_are_refused(table: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="two columns of the data are called 'text'; rename one"):
        rows_of(table)
    if isinstance(table, pa.Table):
        pa.parquet.write_table(table, tmp_path / "data.parquet")
        with pytest.raises(DataError, match=r"data\.parquet': two columns of the data are called 'text'"):
            read_rows(str(tmp_path / "data.parquet"))


@pytest.mark.parametrize("nothing", [[], {}, {"text": []}, iter(())])
def test_no_rows_are_refused(nothing: Any) -> None:
    with pytest.raises(DataError, match="has no rows"):
        rows_of(nothing)


def test_rows_whose_labels_differ_have_another_digest() -> None:
    texts = {"text": ["a", "b"]}
    tables: list[dict[str, list[Any]]] = [
        texts | {"label": [0, 1]},
        texts | {"label": [1, 0]},
        texts | {"labels": [[0], [1]]},
        texts | {"toxic": [1, 0], "hate": [0, 1]},
        texts | {"toxic": [0, 1], "hate": [1, 0]},
        texts | {"toxic": ["true", "false"], "hate": ["false", "true"]},
    ]
    digests = {rows_of(table).digest() for table in tables}
    assert len(digests) == len(tables)
    assert rows_of(tables[0] | {"note": ["x", "y"]}).digest() == rows_of(tables[0]).digest()
    named = replace(rows_of(tables[0]), own_names={"label": ("no", "yes"), "note": ("x",)})
    assert named.digest() not in digests
