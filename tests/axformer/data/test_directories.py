"""Directories and binary tables as Spark, Dask, databases and ``datasets`` leave them."""

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from axformer.data.columns import Columns
from axformer.data.reading import read_rows
from axformer.errors import DataError

TEXTS, LABELS = ["a b", "c", "d e"], [0, 2, 1]
TABLE = pa.table({"text": TEXTS, "label": LABELS})
FEATURES = {"label": {"names": ["bad", "fair", "good"], "_type": "ClassLabel"}}


def stream(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


def random_access(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def compressed(path: Path, table: pa.Table) -> None:
    pa.feather.write_feather(table, path, compression="zstd")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.parquet", lambda path, table: pa.parquet.write_table(table, path)),
        ("a.pq", lambda path, table: pa.parquet.write_table(table, path, row_group_size=1)),
        ("a.PARQ", lambda path, table: pa.parquet.write_table(table, path, compression="zstd")),
        ("a.feather", lambda path, table: pa.feather.write_feather(table, path)),
        ("a.feather", compressed),
        ("a.arrow", stream),
        ("a.arrow", random_access),
    ],
)
def test_a_binary_table_is_read(name: str, write: Any, tmp_path: Path) -> None:
    write(tmp_path / name, TABLE)
    check(str(tmp_path / name))


def check(source: str, **columns: str) -> None:
    rows = read_rows(source, Columns(**columns))
    assert (rows.texts("text"), rows.labels("label")) == (TEXTS, LABELS)


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"text": pa.array([text.encode() for text in TEXTS]), "label": LABELS}, {}),
        ({"text": TEXTS, "label": pa.array(map(Decimal, LABELS), pa.decimal128(30, 0))}, {}),
        ({"text": TEXTS, "label": [[label] for label in LABELS]}, {}),
        ({"text": [[text] for text in TEXTS], "label": LABELS}, {}),
        ({"input": [{"text": text, "id": 1} for text in TEXTS], "label": LABELS}, {"text": "input.text"}),
        ({"text": pa.array(TEXTS).dictionary_encode(), "label": pa.array(LABELS, pa.uint8())}, {}),
        (
            {
                **{"text": TEXTS, "label": LABELS, "raw": [b"\xff"] * 3, "half": pa.array([1, 2, 3], pa.float16())},
                "when": pa.array([1, 2, 3], pa.timestamp("ns")),
                "day": pa.array([datetime.date(1, 1, 1)] * 3),
                "map": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int32())),
            },
            {},
        ),
    ],
    ids=["binary", "decimal", "labels in lists", "texts in lists", "struct", "dictionary", "other columns"],
)
def test_columns_of_other_types_are_read(columns: dict[str, Any], named: dict[str, str], tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    check(str(tmp_path / "a.parquet"), **named)


def test_part_files_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for part, row in enumerate([None] * 8 + [0, 1, 2]):  # parts 8, 9 and 10 have rows
        table = TABLE.slice(0, 0) if row is None else TABLE.slice(row, 1)
        pa.parquet.write_table(table, tmp_path / f"part-{part}-x.snappy.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-0.crc").touch()
    for source in (str(tmp_path), f"{tmp_path}/", f"file://{tmp_path}", f"{tmp_path}/part-*.parquet"):
        check(source)


def test_parts_of_other_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "part-0.csv").write_text("text,label\na,1\n", encoding="utf-8")
    (tmp_path / "part-1.csv").write_text("text,class\na,1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"part-1\.csv has other columns"):
        read_rows(str(tmp_path))


def test_files_that_are_no_parts_are_never_joined(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a directory without data files"):
        read_rows(str(tmp_path))
    for name in ("train.csv", "dev.csv"):
        (tmp_path / name).write_text("text,label\na,1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"name one file in it: dev\.csv, train\.csv"):
        read_rows(str(tmp_path))
    with pytest.raises(DataError, match="no file has such a name"):
        read_rows(f"{tmp_path}/*.jsonl")


def saved(path: Path, **state: Any) -> None:
    """What ``save_to_disk`` writes of one split."""
    path.mkdir(parents=True)
    stream(path / "data-00000-of-00002.arrow", TABLE.slice(0, 1))
    stream(path / "data-00001-of-00002.arrow", TABLE.slice(1))
    files = [{"filename": f"data-0000{part}-of-00002.arrow"} for part in range(2)]
    (path / "state.json").write_text(json.dumps({"_data_files": files, **state}), encoding="utf-8")
    (path / "dataset_info.json").write_text(json.dumps({"features": FEATURES}), encoding="utf-8")


def test_what_datasets_saved_is_read_with_the_names_of_its_integers(tmp_path: Path) -> None:
    saved(tmp_path / "one" / "dev")
    (tmp_path / "one" / "dataset_dict.json").write_text('{"splits": ["dev"]}', encoding="utf-8")
    for source in (tmp_path / "one" / "dev", tmp_path / "one"):
        check(str(source))
        assert read_rows(str(source)).names_of("label") == ("bad", "fair", "good")


def test_a_split_of_several_is_named(tmp_path: Path) -> None:
    saved(tmp_path / "dev")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "dev"]}', encoding="utf-8")
    with pytest.raises(DataError, match=r"holds the splits train, dev; give .*/NAME"):
        read_rows(str(tmp_path))


def test_rows_in_an_order_of_their_own_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "dev", _indices_data_files=[{"filename": "indices.arrow"}])
    with pytest.raises(DataError, match=r"call flatten_indices\(\)"):
        read_rows(str(tmp_path / "dev"))


def test_a_state_names_files_of_its_own_directory_alone(tmp_path: Path) -> None:
    stream(tmp_path / "other.arrow", TABLE)
    saved(tmp_path / "dev", _data_files=[{"filename": "../other.arrow"}])
    with pytest.raises(DataError, match="cannot be read"):
        read_rows(str(tmp_path / "dev"))
