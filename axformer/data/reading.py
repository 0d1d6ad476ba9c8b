"""Read a data file into plain columns: JSON Lines, CSV or Parquet, from a path, a URL or a hub."""

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import IO, Any

import fsspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from axformer.data.columns import Columns
from axformer.data.limits import BYTES, COLUMNS, RATIO, ROWS, SMALL_BYTES
from axformer.data.records import Records, table_of
from axformer.data.rows import Rows
from axformer.errors import DataError, first_line

_IN_MEMORY = "in memory"


def read_rows(path: str, columns: Columns | None = None) -> Rows:
    """Read a table; what its values must be is checked when a task asks for them.

    Args:
        path: a local path or a URL that fsspec opens (``https://``, ``s3://``, ``hf://datasets/...``). The ending tells the
            format: ``.jsonl``, ``.json`` (one object a line), ``.csv``, ``.parquet``; ``.gz`` may follow.
        columns: how the columns are called.

    Raises:
        DataError: the file is missing, damaged, empty, or larger than any data set that is read.
    """
    columns = columns or Columns()
    read = _reader_of(path)
    try:
        with fsspec.open(path, "rb") as file:
            content = _whole(file, path, is_packed=path.partition("?")[0].endswith(".gz"))
        table = read(content, path)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"data file '{path}' does not exist") from None
    except Exception as error:  # noqa: BLE001 - each kind of source has errors of its own, and all are about this file
        raise DataError(f"data file '{path}' cannot be read: {first_line(error)}") from None
    return _rows(path, table, columns)


def rows_of(data: Records, columns: Columns | None = None) -> Rows:
    """Records, columns or a table in memory; see :mod:`axformer.data.records`.

    Raises:
        WrongTypeError: it is of no kind that is known.
        DataError: it has no rows, or its columns are not equally long.
    """
    return _rows(_IN_MEMORY, table_of(data), columns or Columns())


def _reader_of(path: str) -> Any:
    name = PurePosixPath(path.partition("?")[0])
    ending = name.with_suffix("").suffix if name.suffix == ".gz" else name.suffix
    if ending not in _READERS:
        raise DataError(f"data file '{path}' has no known ending; use one of {', '.join(_READERS)}, or one with .gz")
    return _READERS[ending]


def _whole(file: IO[bytes], path: str, *, is_packed: bool) -> bytes:
    """All bytes of an open file, unpacked, where there are not too many."""
    content = file.read(BYTES + 1)
    if is_packed:
        limit = min(BYTES, max(SMALL_BYTES, RATIO * len(content)))
        with gzip.open(io.BytesIO(content), "rb") as unpacked:
            content = unpacked.read(limit + 1)
    else:
        limit = BYTES
    if len(content) > limit:
        raise DataError(f"data file '{path}' holds more than {limit} bytes; give a part of it")
    return content


def _read_json_lines(content: bytes, path: str) -> dict[str, list[Any]]:
    _check_counts(path, content.count(b"\n"), 0)
    rows = []
    for number, line in enumerate(_text(content, path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"data file '{path}', line {number} is not JSON: {_why(error)}") from None
        if not isinstance(row, dict):
            raise DataError(f"data file '{path}', line {number} is not a JSON object but {line.strip()[:40]}")
        rows.append(row)
    return _columns_of(rows, path)


def _why(error: ValueError | RecursionError) -> str:
    match error:
        case json.JSONDecodeError():
            return error.msg
        case RecursionError():
            return "its objects are nested too deep"
        case _:
            return "it holds a number that is too long"


def _columns_of(rows: Sequence[Mapping[str, Any]], path: str) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    _check_counts(path, len(rows), len(names))
    return {name: [row.get(name) for row in rows] for name in names}


def _read_csv(content: bytes, path: str) -> dict[str, list[Any]]:
    if not content.strip():
        return {}
    _text(content, path)
    quoted = pyarrow.csv.ParseOptions(newlines_in_values=True)
    read = pyarrow.csv.read_csv(pa.BufferReader(content), parse_options=quoted)
    _check_counts(path, read.num_rows, read.num_columns)
    table: dict[str, list[Any]] = read.to_pydict()
    return table


def _read_parquet(content: bytes, path: str) -> dict[str, list[Any]]:
    """Row by row where cells may be large: a file can name one large cell in all its rows and stay small."""
    file = pyarrow.parquet.ParquetFile(pa.BufferReader(content))
    known = file.metadata
    _check_counts(path, known.num_rows, known.num_columns)
    groups = [known.row_group(group) for group in range(known.num_row_groups)]
    parts = [group.column(place) for group in groups for place in range(group.num_columns)]
    cell = max((part.total_uncompressed_size for part in parts), default=1)
    batches, held = [], 0
    for batch in file.iter_batches(batch_size=max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(cell, 1)))):
        batches.append(batch)
        held += batch.nbytes
        if held > BYTES:
            raise DataError(f"data file '{path}' holds more than {BYTES} bytes; give a part of it")
    table: dict[str, list[Any]] = pa.Table.from_batches(batches, file.schema_arrow).to_pydict()
    return table


def _check_counts(path: str, rows: int, columns: int) -> None:
    if rows > ROWS or columns > COLUMNS:
        raise DataError(
            f"data file '{path}' has {rows} rows and {columns} columns, at most {ROWS} and {COLUMNS} are read; "
            "give a part of it"
        )


_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 256 << 20
"""Rows and bytes of a Parquet file that are unpacked at a time."""
_READERS = {".jsonl": _read_json_lines, ".json": _read_json_lines, ".csv": _read_csv, ".parquet": _read_parquet}


def _text(content: bytes, path: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"data file '{path}' is not UTF-8 (byte {error.start}); save it as UTF-8 and try again"
        ) from None


def _rows(path: str, table: dict[str, list[Any]], columns: Columns) -> Rows:
    if not table or not next(iter(table.values())):
        raise DataError(f"data file '{path}' has no rows")
    _check_counts(path, len(next(iter(table.values()))), len(table))
    return Rows(source=path, table=table, columns=columns)
