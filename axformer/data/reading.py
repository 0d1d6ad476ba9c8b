"""Read a data file into plain columns: JSON, CSV or Parquet, from a path, a URL or a hub."""

import codecs
import gzip
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import fsspec
import pyarrow as pa
import pyarrow.parquet

from axformer.data.columns import Columns
from axformer.data.delimited import DelimitedError, read_delimited
from axformer.data.formats import (
    CSV_ENDING,
    JSON_ENDINGS,
    PARQUET_ENDING,
    TAB_ENDINGS,
    ending_of,
    foreign,
    is_packed,
    why_not_data,
)
from axformer.data.json_rows import JsonRowsError, read_json_rows
from axformer.data.limits import BYTES, COLUMNS, RATIO, ROWS, SMALL_BYTES
from axformer.data.records import OwnNames, Records, check_names, own_names_in, table_of
from axformer.data.rows import Rows
from axformer.errors import DataError, first_line

_IN_MEMORY = "in memory"
_Table: TypeAlias = tuple[dict[str, list[Any]], OwnNames]


def read_rows(path: str, columns: Columns | None = None) -> Rows:
    """Read a table; its values are checked when a task reads them.

    Args:
        path: a local path or a URL that fsspec opens (``https://``, ``s3://``, ``hf://datasets/...``). The ending tells the
            format: ``.jsonl``, ``.ndjson`` or ``.json`` (see :mod:`axformer.data.json_rows`), ``.csv``, ``.tsv`` or ``.tab``
            (see :mod:`axformer.data.delimited`), ``.parquet``, in small or capital letters; ``.gz`` may follow, and whether
            the file is packed its first bytes say. Behind ``#`` an address may have the name that it lacks.

    Raises:
        DataError: the file is missing, damaged, empty, or larger than any data set that is read, or a column that was named
            is not there.
    """
    if ending_of(path) is None:
        raise _unknown_ending(path)
    try:
        with fsspec.open(path, "rb") as file:
            return rows_in(file, path, columns)
    except DataError:
        raise
    except FileNotFoundError:
        gone = "is a link whose target is gone" if Path(path).is_symlink() else "does not exist"
        raise DataError(f"data file '{path}' {gone}") from None
    except Exception as error:  # noqa: BLE001 - each kind of source has errors of its own, and all are about this file
        raise _unreadable(path, error) from None


def rows_in(file: IO[bytes], name: str, columns: Columns | None = None, *, most_bytes: int = BYTES) -> Rows:
    """Read a table from an open file, as :func:`read_rows` does.

    Args:
        name: its name, whose ending tells the format.
        most_bytes: most bytes, unpacked.

    Raises:
        DataError: as for :func:`read_rows`.
    """
    ending = ending_of(name)
    if ending is None:
        raise _unknown_ending(name)
    try:
        table, own_names = _READERS[ending](_whole(file, name, ending, most=most_bytes), name)
    except DataError:
        raise
    except Exception as error:  # noqa: BLE001 - each format has errors of its own, and all are about this file
        raise _unreadable(name, error) from None
    return _rows(name, table, columns or Columns(), own_names, texts_only=ending in _TEXTS_ONLY)


def rows_of(data: Records, columns: Columns | None = None) -> Rows:
    """Make rows from records, columns or a table in memory; see :mod:`axformer.data.records`.

    Raises:
        WrongTypeError: its type is not known.
        DataError: it has no rows, or its columns are not equally long.
    """
    own_names = own_names_in(data)
    return _rows(_IN_MEMORY, table_of(data), columns or Columns(), own_names)


def _unknown_ending(path: str) -> DataError:
    return DataError(f"data file '{path}' {why_not_data(path)}")


def _unreadable(path: str, error: Exception) -> DataError:
    return DataError(f"data file '{path}' cannot be read: {first_line(error)}")


def _whole(file: IO[bytes], path: str, ending: str, *, most: int) -> bytes:
    """Read and unpack an open file, up to the size limit."""
    content, limit = file.read(most + 1), most
    for _ in range(_PACKED_TIMES):
        if is_packed(content):
            limit = min(most, max(SMALL_BYTES, RATIO * len(content)))
            with gzip.open(io.BytesIO(content), "rb") as unpacked:
                content = unpacked.read(limit + 1)
    if len(content) > limit:
        raise DataError(f"data file '{path}' holds more than {limit} bytes; give a part of it")
    if why := foreign(content, ending):
        raise DataError(f"data file '{path}' {why}")
    return content


def _read_json(content: bytes, path: str) -> _Table:
    _check_counts(path, content.count(b"\n"), 0)
    try:
        return _columns_of(read_json_rows(_text(content, path)), path), {}
    except JsonRowsError as error:
        raise DataError(f"data file '{path}', {error}") from None


def _columns_of(rows: Sequence[Mapping[str, Any]], path: str) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    _check_counts(path, len(rows), len(names))
    return {name: [row.get(name) for row in rows] for name in names}


def _read_delimited(content: bytes, path: str) -> _Table:
    if not content.strip():
        return {}, {}
    _check_counts(path, content.count(b"\n"), 0)
    try:
        read = read_delimited(_text(content, path), tabs=ending_of(path) in TAB_ENDINGS)
    except DelimitedError as error:
        raise DataError(f"data file '{path}', {error}") from None
    _check_counts(path, len(read.rows), len(read.names))
    columns = zip(*read.rows, strict=True) if read.rows else [()] * len(read.names)
    return {name: list(values) for name, values in zip(read.names, columns, strict=True)}, {}


def _read_parquet(content: bytes, path: str) -> _Table:
    """Read in batches if cells may be large, since a small file can reference one large cell in all its rows."""
    file = pyarrow.parquet.ParquetFile(pa.BufferReader(content))
    known = file.metadata
    _check_counts(path, known.num_rows, known.num_columns)
    try:
        check_names(file.schema_arrow.names)
    except DataError as error:
        raise DataError(f"data file '{path}': {error}") from None
    groups = [known.row_group(group) for group in range(known.num_row_groups)]
    parts = [group.column(place) for group in groups for place in range(group.num_columns)]
    cell = max((part.total_uncompressed_size for part in parts), default=1)
    batches, held = [], 0
    for batch in file.iter_batches(batch_size=max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(cell, 1)))):
        batches.append(batch)
        held += batch.nbytes
        if held > BYTES:
            raise DataError(f"data file '{path}' holds more than {BYTES} bytes; give a part of it")
    schema = file.schema_arrow
    return pa.Table.from_batches(batches, schema).to_pydict(), own_names_in(schema)


def _check_counts(path: str, rows: int, columns: int) -> None:
    if rows > ROWS or columns > COLUMNS:
        raise DataError(
            f"data file '{path}' has {rows} rows and {columns} columns, at most {ROWS} and {COLUMNS} are read; "
            "give a part of it"
        )


_PACKED_TIMES = 2
"""By who made the file, and by the server that sent it."""
_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 256 << 20
"""Bytes of a Parquet file that are unpacked at a time."""
_READERS: Mapping[str, Callable[[bytes, str], _Table]] = {
    **dict.fromkeys(JSON_ENDINGS, _read_json),
    **dict.fromkeys((CSV_ENDING, *TAB_ENDINGS), _read_delimited),
    PARQUET_ENDING: _read_parquet,
}
_TEXTS_ONLY = (CSV_ENDING, *TAB_ENDINGS)


def _text(content: bytes, path: str) -> str:
    """Decode UTF-8, or UTF-16 with a byte order mark."""
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(
            f"data file '{path}' is not UTF-8 (byte {error.start}); save it as UTF-8, from a spreadsheet as \"CSV UTF-8\", or "
            f"convert it: iconv -f WINDOWS-1252 -t UTF-8"
        ) from None


def _rows(
    path: str, table: dict[str, list[Any]], columns: Columns, own_names: OwnNames, *, texts_only: bool = False
) -> Rows:
    if not table or not next(iter(table.values())):
        raise DataError(f"data file '{path}' has no rows")
    _check_counts(path, len(next(iter(table.values()))), len(table))
    rows = Rows(source=path, table=table, columns=columns, texts_only=texts_only, own_names=own_names)
    rows.check_named()
    return rows
