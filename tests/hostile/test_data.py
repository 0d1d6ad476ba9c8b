"""Data files that unpack to too much, lie about what they hold, or hold what is no text."""

import gzip
import json
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axformer.data.labels import ClassNames, LabelColumn
from axformer.data.reading import read_rows
from axformer.errors import DataError


class Known:
    """A model's classes."""

    id2label = {0: "bad", 1: "good"}  # noqa: RUF012 - as configurations have it
    num_labels = 2


def read(path: Path) -> None:
    """Read what a classifier reads."""
    rows = read_rows(str(path))
    rows.texts("text")
    LabelColumn(rows.labels("label"), rows, range(1, len(rows) + 1)).read(ClassNames.of(Known))
    rows.digest()


def line(**row: Any) -> bytes:
    """A row, with whatever JSON can escape."""
    return json.dumps({"text": "a", "label": 0} | row).encode() + b"\n"


def arrow() -> bytes:
    """The stream format of three texts and labels."""
    sink = pa.BufferOutputStream()
    table = pa.table({"text": ["abc", "de", "fghi"], "label": [0, 1, 0]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


ARROW = arrow()
OFFSETS = struct.pack("<4i", 0, 3, 5, 9)
"""Where the texts begin and end."""
GOOD = line()
MANY = ",".join(map(str, range(1001))).encode()
CASES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("a.jsonl", b"", "has no rows"),
    "spaces": ("a.jsonl", b" \n \n", "has no rows"),
    "no JSON": ("a.jsonl", GOOD + b"text,label\n", "line 2 is not JSON"),
    "cut": ("a.jsonl", GOOD + GOOD[:-5], "line 2 is not JSON"),
    "a list of numbers": ("a.jsonl", b"[1]", "item 1 is not a JSON object"),
    "a list, cut": ("a.jsonl", b"[" + GOOD.strip(), "its list is not JSON"),
    "a list in a list": ("a.json", b"[[" + GOOD.strip() + b"]]", "item 1 is not a JSON object"),
    "nested lists": ("a.json", b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
    "data of numbers": ("a.json", b'{"data": [1]}', "item 1 is not a JSON object"),
    "articles of nothing": ("a.json", b'{"data": [{"paragraphs": [1, {"qas": 2}]}]}', "has no rows"),
    "nested": ("a.jsonl", b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deep"),
    "a long number": ("a.jsonl", b'{"text": "a", "label": ' + b"9" * 5000 + b"}", "a number that is too long"),
    "a large number": ("a.jsonl", line(label=10**1000), "not a label"),
    "a number beyond all": ("a.jsonl", b'{"text": "a", "label": 1e999}', "is unknown to the model"),
    "no number": ("a.jsonl", b'{"text": "a", "label": NaN}', "column 'label' is empty"),
    "a fraction": ("a.jsonl", line(label=0.5), "label 0.5 is unknown"),
    "a class beyond": ("a.jsonl", line(label=2), "label 2 is unknown"),
    "a class below": ("a.jsonl", line(label=-1), "label -1 is unknown"),
    "a class of digits": ("a.jsonl", line(label="9" * 5000), "not a label"),
    "a class of other digits": ("a.jsonl", line(label="\u0662"), "is unknown"),
    "a truth among numbers": ("a.jsonl", line(label=True) + GOOD, "True is unknown to the model"),
    "an object": ("a.jsonl", line(label={"a": 1}), "not a label"),
    "nothing": ("a.jsonl", line(label=None), "column 'label' is empty"),
    "half a character": ("a.jsonl", b'{"text": "a\\ud83d", "label": 0}', "not text"),
    "half a label": ("a.jsonl", b'{"text": "a", "label": "\\udc00"}', "not a label"),
    "a text too long": ("a.jsonl", line(text="a" * 1_000_001), "not text of at most 1000000 characters"),
    "a text a number": ("a.jsonl", line(text=7), "not text"),
    "a text a list": ("a.jsonl", line(text=["a", "b"]), "not text"),
    "no UTF-8": ("a.jsonl", b'{"text": "\xff"}', "is not UTF-8"),
    "another encoding": ("a.jsonl", '{"text": "ü"}'.encode("cp1252"), "is not UTF-8"),
    "another encoding, cut": ("a.jsonl", '{"text": "a"}'.encode("utf-16")[:-1], "is not UTF-8"),
    "many columns": ("a.jsonl", json.dumps({str(n): 0 for n in range(1001)}).encode(), "1001 columns, at most 1000"),
    "many rows": ("a.jsonl", b"\n" * 10_000_001, "10000001 rows .* at most 10000000"),
    "a binary": ("a.jsonl", bytes(range(256)), "is not UTF-8"),
    "a program": ("a.jsonl", b"#!/bin/sh\nrm -rf /\n", "line 1 is not JSON"),
    "CSV of other lengths": ("a.csv", b"text,label\na,0\nb,1,2\n", "line 3 has 3 cells"),
    "CSV with an open quote": ("a.csv", b'text,label\n"a,0\n', "line 2: unexpected end of data"),
    "CSV without columns": ("a.csv", b"a\nb\n", "has no column 'text'"),
    "CSV with many columns": ("a.csv", MANY + b"\n" + b"0," * 1000 + b"0\n", "1001 columns"),
    "CSV of zero bytes": ("a.csv", b"\0" * 100, "cannot be read|has no rows|no column"),
    "CSV no UTF-8": ("a.csv", b"text,label\n\xff,0\n", "is not UTF-8"),
    "Parquet of nothing": ("a.parquet", b"", "cannot be read"),
    "Parquet without an end": ("a.parquet", b"PAR1" + bytes(100), "cannot be read"),
    "Parquet with a wild end": ("a.parquet", b"PAR1" + bytes(20) + b"\xff\xff\xff\x7fPAR1", "cannot be read"),
    "gzip of nothing": ("a.jsonl.gz", b"", "cannot be read|has no rows"),
    "gzip cut": ("a.jsonl.gz", gzip.compress(GOOD * 9)[:-6], "cannot be read"),
    "gzip damaged": ("a.jsonl.gz", gzip.compress(GOOD)[:12] + b"\xff" * 20, "cannot be read"),
    "gzip of gzip of gzip": ("a.jsonl.gz", gzip.compress(gzip.compress(gzip.compress(GOOD))), "is not UTF-8"),
    "a bomb": ("a.jsonl.gz", gzip.compress(b" " * (80 << 20), 1), "holds more than .* bytes"),
    "Arrow of nothing": ("a.arrow", b"ARROW1", "cannot be read"),
    "Arrow, cut": ("a.arrow", ARROW[:-40], "cannot be read"),
    "Arrow with wild offsets": ("a.arrow", ARROW.replace(OFFSETS, b"\x7f" * len(OFFSETS)), "cannot be read"),
    "Feather of others": ("a.feather", b"FEA1" + bytes(40), "cannot be read"),
    "a key twice": ("a.jsonl", GOOD + b'{"text": "a", "label": 0, "label": 1}', "line 2 holds the key 'label' twice"),
    "a text of nothing": ("a.jsonl", line(text=" \u200b\u00a0"), "column 'text' is empty"),
    "a sentence of one column": ("a.conll", b"a\n", "line 1 has one column, not two"),
    "a pickle": ("a.pkl", b"cos\nsystem\n(S'false'\ntR.", "is not read; write the rows as JSON Lines"),
    "an archive of NumPy": ("a.npy", b"\x93NUMPY", "is not read; write the rows as JSON Lines"),
    "an archive": ("a.jsonl.zip", b"PK", "ZIP archive"),
    "packed by another": ("a.jsonl.xz", b"\xfd7zXZ", "packed with xz; unpack it"),
}  # fmt: skip


def test_hostile_data_is_refused(tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests) -> None:
    for name, (file, content, message) in CASES.items():
        with subtests.test(name):
            place = tmp_path_factory.mktemp("case")
            (place / file).write_bytes(content)
            with pytest.raises(DataError, match=message) as caught:
                read(place / file)
            assert file in str(caught.value)
            assert len(str(caught.value)) < 4000
            assert [path.name for path in place.iterdir()] == [file]


def test_a_parquet_file_that_repeats_one_large_cell_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is small: the cell is written once, and every row names it."""
    monkeypatch.setattr("axformer.data.reading._MOST_BYTES", 8 << 20)
    rows = 8000
    cells = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * 10_000]))
    pa.parquet.write_table(pa.table({"text": cells, "label": [0] * rows}), tmp_path / "a.parquet", store_schema=False)
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 20
    with pytest.raises(DataError, match="holds more than 8388608 bytes"):
        read(tmp_path / "a.parquet")


def test_a_message_about_data_can_be_stored(tmp_path: Path) -> None:
    """Names of columns may hold what no database takes; the service replaces it where messages are stored."""
    (tmp_path / "a.jsonl").write_bytes(b'{"a\\u0000\\ud800": 1}')
    with pytest.raises(DataError) as caught:
        read(tmp_path / "a.jsonl")
    from worker.job.failure import Failure

    stored = Failure("invalid_data", str(caught.value)).as_dict()["message"]
    assert "\0" not in stored
    assert stored.encode()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ending=st.sampled_from(["jsonl", "json", "csv", "parquet", "arrow", "conll", "jsonl.gz"]),
    content=st.binary(max_size=80)
    | st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5))),
)
def test_any_file_is_read_or_refused(tmp_path: Path, ending: str, content: object) -> None:
    body = content if isinstance(content, bytes) else "\n".join(map(json.dumps, content)).encode()  # type: ignore[arg-type]
    (tmp_path / f"a.{ending}").write_bytes(gzip.compress(body) if ending.endswith("gz") else body)
    with suppress(DataError):
        read(tmp_path / f"a.{ending}")


@pytest.mark.parametrize(
    "form", [pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.binary())]
)
def test_an_arrow_file_that_repeats_one_large_cell_is_refused(
    form: pa.DataType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("axformer.data.reading._MOST_BYTES", 8 << 20)
    rows = 8000
    if pa.types.is_dictionary(form):
        cells = pa.DictionaryArray.from_arrays(
            pa.array([0] * rows, form.index_type), pa.array(["x" * 10_000], form.value_type)
        )
    else:
        one = pa.array(["x" * 10_000], form)
        cells = pa.Array.from_buffers(
            form, rows, [None, pa.py_buffer(bytes(one.buffers()[1]) * rows), one.buffers()[2]]
        )
    table = pa.table({"text": cells, "label": [0] * rows})
    with pa.ipc.new_stream(str(tmp_path / "a.arrow"), table.schema) as writer:
        writer.write_table(table)
    assert (tmp_path / "a.arrow").stat().st_size < 1 << 20
    with pytest.raises(DataError, match="holds more than 8388608 bytes"):
        read(tmp_path / "a.arrow")


@pytest.mark.parametrize(
    "row",
    [
        b'{"text": "a", "label": "[' + b"1 " * 400_000 + b'"}',
        b'{"text": "a", "label": "[' + b"] " * 400_000 + b'"}',
        b'{"text": "a", "label": "[' + b"'a' " * 200_000 + b']"}',
        b"{" + b", ".join(b'"%d": 0' % number for number in range(100_000)) + b', "99999": 1}',
        json.dumps({"a": {str(n): 0 for n in range(100_000)}} | {f"b{n}": {"0": 0} for n in range(50_000)}).encode(),
        json.dumps({"a": [{str(n): 0 for n in range(200_000)}]}).encode(),
    ],
    ids=["open", "brackets", "list", "keys", "columns", "parts"],
)
def test_wide_rows_take_no_longer_than_they_are_long(row: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(row + b"\n")
    begun = time.process_time()
    with pytest.raises(DataError):
        read(tmp_path / "a.jsonl")
    assert time.process_time() - begun < 20
