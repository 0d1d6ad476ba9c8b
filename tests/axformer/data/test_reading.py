import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.data.columns import Columns
from axformer.data.reading import read_rows, rows_of
from axformer.data.rows import Label
from axformer.data.written import seen
from axformer.errors import DataError
from tests.loopback import Answer, Loopback

ROWS = [{"text": 'a "quoted", text', "label": "good"}, {"text": "line\nbreak ü", "label": "bad"}]


def read_texts_and_labels(source: str) -> tuple[list[str], list[Label]]:
    rows = read_rows(source)
    return rows.texts("text"), rows.labels("label")


texts = st.text(st.characters(codec="utf-8"), max_size=20).filter(seen) | st.just("a\u2028b\x85c")
records = st.lists(st.fixed_dictionaries({"text": texts, "label": st.integers(0, 3)}), min_size=1, max_size=5)


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def json_lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def test_every_format_gives_the_same_rows(tmp_path: Path) -> None:
    lines = json_lines([dict(row) for row in ROWS])
    csv = 'text,label\n"a ""quoted"", text",good\n"line\nbreak ü",bad\n'
    pa.parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "data.parquet")
    sources = [
        write(tmp_path / "data.jsonl", lines),
        write(tmp_path / "data.json", lines),
        write(tmp_path / "data.jsonl.gz", gzip.compress(lines.encode())),
        write(tmp_path / "data.csv", csv),
        str(tmp_path / "data.parquet"),
        f"file://{tmp_path}/data.jsonl",
    ]
    for source in sources:
        rows = read_rows(source)
        assert rows.texts("text") == [row["text"] for row in ROWS]
        assert rows.labels("label") == [row["label"] for row in ROWS]
        assert not rows.has("text_pair")


@given(records)
def test_json_lines_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, object]]
) -> None:
    path = tmp_path_factory.mktemp("rows") / "data.jsonl"
    rows = read_rows(write(path, json_lines(records)))
    assert rows.texts("text") == [record["text"] for record in records]
    assert rows.labels("label") == [record["label"] for record in records]


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    source = write(tmp_path / "data.jsonl", json_lines([{"q": "why?", "a": "because", "y": 1, "text": "no"}]))
    rows = read_rows(source, Columns(text="q", text_pair="a", label="y"))
    assert (rows.texts("text"), rows.texts("text_pair"), rows.labels("label")) == (["why?"], ["because"], [1])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("data.bin", "a", "has no known ending; use one of .jsonl, .ndjson, .json, .csv, .tsv, .tab, .parquet"),
        ("data.jsonl", "", "has no rows"),
        ("data.jsonl", "\n\n", "has no rows"),
        ("data.csv", "", "has no rows"),
        ("data.csv", "text,label\n", "has no rows"),
        ("data.jsonl", b'{"text": "\xff"}', r"is not UTF-8 \(byte 10\)"),
        ("data.csv", b"text,label\n\xff,1\n", r"is not UTF-8 \(byte 11\)"),
        ("data.jsonl", '{"text": "a", "label": 0}\n{"text"', "line 2 is not JSON"),
        ("data.jsonl", '{"text": "a"}, {"text": "b"}\n{"text": [{"a": 1}\n{"b": 2}]}', "line 1 is not JSON"),
        ("data.jsonl", "[1]\n", "item 1 is not a JSON object but 1; write one object a line"),
        (
            "data.jsonl",
            '{"sentence": "a", "label": 0}',
            "has no column 'text', it has label, sentence; name the columns",
        ),
        ("data.jsonl", '{"text": "a"}', "has no column 'label', it has text"),
        (
            "data.jsonl",
            '{"query": "a", "passage": "b", "label": 0}',
            "has no column 'text', it has label, passage, query; name the columns, for example --columns "
            "text=query,text_pair=passage",
        ),
        (
            "data.csv",
            "sentence1,sentence2,label\na,b,0\n",
            "name the columns, for example --columns text=sentence1,text_pair=sentence2",
        ),
        (
            "data.jsonl",
            '{"text": "a", "label": 0}\n{"label": 0}',
            "row 2: column 'text' is empty; fill it in, or leave the row out",
        ),
        ("data.jsonl", '{"text": "a", "label": [0, 1]}', r"row 1: column 'label' holds \[0, 1\], not a label"),
        ("data.parquet", "no parquet", "cannot be read"),
        (
            "data.jsonl.gz",
            gzip.compress(b'{"text": "a", "label": 0}', mtime=0)[:-12],
            "cannot be read: Compressed file ended",
        ),
        ("data.jsonl", b"BZh9", "is packed with bzip2; unpack it, or pack it with gzip"),
        ("data.csv.bz2", b"BZh9", "is packed with bzip2; unpack it, or pack it with gzip"),
        ("data.csv", b"\xfd7zXZ\x00", "is packed with xz; unpack it"),
        ("data.jsonl.zst", b"\x28\xb5\x2f\xfd", "is packed with Zstandard; unpack it"),
        ("data.csv", b"PK\x03\x04", "is a ZIP archive or a spreadsheet; give one file of the archive, or save it as"),
        ("data.xlsx", b"PK\x03\x04", 'is a spreadsheet; save it as "CSV UTF-8"'),
        ("data.csv", b"\xd0\xcf\x11\xe0", 'is a spreadsheet; save it as "CSV UTF-8"'),
        ("data.csv", b"PAR1", r"is a Parquet file under another name; let its name end in \.parquet"),
        ("data.csv", "version https://git-lfs.github.com/spec/v1\noid", "bring the file with git lfs pull"),
        ("data.jsonl", "\ufeff\n<!DOCTYPE html><html>", "is a page of HTML; check the address: it may ask to sign in"),
        ("data.csv", "<HTML lang=en>", "is a page of HTML"),
        ("data.csv.gz", gzip.compress(b"<html>", mtime=0), "is a page of HTML"),
        ("data.csv", "text,label\na,1,2\n", "line 2 has 3 cells and the first line names 2, with a comma"),
    ],
)
def test_a_bad_file_is_refused_with_the_place(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    source = write(tmp_path / name, content)
    with pytest.raises(DataError, match=message):
        read_texts_and_labels(source)


@pytest.mark.parametrize("name", ["data.jsonl", "data.jsonl.gz", "DATA.JSON.GZ", "d?ta #1.jsonl"])
@pytest.mark.parametrize("times", [0, 1, 2])
@given(records)
@settings(max_examples=5)
def test_whether_a_file_is_packed_its_first_bytes_say(
    tmp_path_factory: pytest.TempPathFactory, name: str, times: int, records: list[dict[str, object]]
) -> None:
    content = json_lines(records).encode()
    for _ in range(times):
        content = gzip.compress(content)
    rows = read_rows(write(tmp_path_factory.mktemp("rows") / name, content))
    assert rows.texts("text") == [record["text"] for record in records]


@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "gzip"}])
def test_an_address_may_be_given_the_name_that_it_lacks(headers: dict[str, str]) -> None:
    content = gzip.compress(json_lines([dict(row) for row in ROWS]).encode())
    with Loopback(lambda *_: Answer(200, headers, content)) as server:
        with pytest.raises(DataError, match=r"or write the name behind the address: \.\.\.#dev\.jsonl"):
            read_rows(f"{server.url}/download?id=5")
        assert len(read_rows(f"{server.url}/download?id=5#dev.jsonl")) == len(ROWS)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(DataError, match=r"data file '/nowhere/data\.jsonl' does not exist"):
        read_rows("/nowhere/data.jsonl")


def test_records_in_memory_are_rows() -> None:
    assert rows_of([{"text": "a", "label": 0}, {"text": "b", "label": 1}]).texts("text") == ["a", "b"]
