"""Read a data file into plain columns: JSON, CSV or Parquet, from a path, a URL or a hub."""

import codecs
import gzip
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias

from axformer.data.columns import MOST_COLUMNS, Columns
from axformer.data.conll import ConllError, read_conll
from axformer.data.delimited import DelimitedError, read_delimited
from axformer.data.derived import with_derived
from axformer.data.directories import files_of
from axformer.data.formats import (
    ARROW_ENDINGS,
    CONLL_ENDINGS,
    CSV_ENDING,
    JSON_ENDINGS,
    TAB_ENDINGS,
    ending_of,
    foreign,
    is_packed,
    why_not_data,
)
from axformer.data.json_rows import JsonRowsError, read_json_rows
from axformer.data.records import OwnNames, Records, own_names_in, own_names_of, table_of
from axformer.data.rows import Rows
from axformer.errors import DataError, first_line

_MOST_BYTES = 4 << 30
"""Bytes of an unpacked file. These limits are above any validation set, and small enough for the memory of a small worker."""
_RATIO = 200
"""Largest compression ratio; text shrinks to a fifth, the most repetitive text to a hundredth."""
_SMALL_BYTES = 64 << 20
"""Any file may unpack to this size, whatever its ratio."""
_MOST_ROWS = 10_000_000
"""Rows of a file; the largest public validation sets have some hundred thousand."""
_IN_MEMORY = "in memory"
_Table: TypeAlias = tuple[dict[str, list[Any]], OwnNames]


def read_rows(path: str, columns: Columns | None = None) -> Rows:
    """Read a table; its values are checked when a task reads them.

    Args:
        path: a local path or a URL that fsspec opens (``https://``, ``s3://``, ``hf://datasets/...``). The ending tells the
            format: ``.jsonl``, ``.ndjson`` or ``.json`` (see :mod:`axformer.data.json_rows`), ``.csv``, ``.tsv`` or ``.tab``
            (see :mod:`axformer.data.delimited`), ``.parquet``, ``.pq`` or ``.parq``, ``.arrow`` or ``.feather``, ``.conll``,
            ``.conllu`` or ``.txt`` (see :mod:`axformer.data.conll`), in small or capital letters; ``.gz`` may follow, and
            whether the file is packed its first bytes say. Behind ``#`` an address may have the name that it lacks. Or a
            directory, or a pattern with ``*`` (see :mod:`axformer.data.directories`).

    Raises:
        DataError: the file is missing, damaged, empty, or larger than any data set that is read, or a column that was named
            is not there.
    """
    try:
        found = None if Path(path).is_file() else files_of(path)
        if found is None and ending_of(path) is None:
            raise _unknown_ending(path)
        files, features = found or ([path], None)
        tables, left = [], _MOST_BYTES
        for file in files:
            with _opened(file) as opened:
                tables.append(_table_in(opened, file, left))
                left -= opened.tell()
    except DataError:
        raise
    except FileNotFoundError:
        gone = "is a link whose target is gone" if Path(path).is_symlink() else "does not exist"
        raise DataError(f"data file '{path}' {gone}") from None
    except Exception as error:  # noqa: BLE001 - each kind of source has errors of its own, and all are about this file
        raise _unreadable(path, error) from None
    table, own_names = tables[0] if len(tables) == 1 else _joined(path, files, tables)
    return _rows(path, table, columns or Columns(), own_names or own_names_of(features))


def _opened(file: str) -> AbstractContextManager[IO[bytes]]:
    if Path(file).is_file():
        return Path(file).open("rb")
    import fsspec  # takes as long as 10,000 rows

    opened: AbstractContextManager[IO[bytes]] = fsspec.open(file, "rb")
    return opened


def rows_in(file: IO[bytes], name: str, columns: Columns | None = None, *, most_bytes: int = _MOST_BYTES) -> Rows:
    """Read a table from an open file, as :func:`read_rows` does.

    Args:
        name: its name, whose ending tells the format.
        most_bytes: most bytes, unpacked.

    Raises:
        DataError: as for :func:`read_rows`.
    """
    table, own_names = _table_in(file, name, most_bytes)
    return _rows(name, table, columns or Columns(), own_names)


def _table_in(file: IO[bytes], name: str, most_bytes: int) -> _Table:
    ending = ending_of(name)
    if ending is None:
        raise _unknown_ending(name)
    try:
        return _READERS[ending](_whole(file, name, ending, most=most_bytes), name)
    except DataError:
        raise
    except (JsonRowsError, DelimitedError, ConllError) as error:
        raise DataError(f"data file '{name}', {error}") from None
    except Exception as error:  # noqa: BLE001 - each format has errors of its own, and all are about this file
        raise _unreadable(name, error) from None


def _joined(path: str, files: Sequence[str], tables: Sequence[_Table]) -> _Table:
    """The rows of several files, of which those without rows may have no columns."""
    filled = {file: table for file, table in zip(files, tables, strict=True) if any(table[0].values())}
    first = next(iter(filled.values()), tables[0])
    for file, (table, own_names) in filled.items():
        if table.keys() != first[0].keys() or own_names != first[1]:
            raise DataError(f"data file '{path}': {file} has other columns or classes than the files before it")
    return {name: [value for table, _ in filled.values() for value in table[name]] for name in first[0]}, first[1]


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
            limit = min(most, max(_SMALL_BYTES, _RATIO * len(content)))
            with gzip.open(io.BytesIO(content), "rb") as unpacked:
                content = unpacked.read(limit + 1)
    if len(content) > limit:
        raise DataError(f"data file '{path}' holds more than {limit} bytes; give a part of it")
    if why := foreign(content, ending):
        raise DataError(f"data file '{path}' {why}")
    return content


def _read_json(content: bytes, path: str) -> _Table:
    _check_counts(path, content.count(b"\n"), 0)
    rows, features = read_json_rows(_text(content, path), by_lines=ending_of(path) != JSON_ENDINGS[-1])
    names = dict.fromkeys(name for row in rows for name in row)
    _check_counts(path, len(rows), len(names))
    return {name: [row.get(name) for row in rows] for name in names}, own_names_of(features)


def _read_delimited(content: bytes, path: str) -> _Table:
    if not content.strip():
        return {}, {}
    _check_counts(path, content.count(b"\n"), 0)
    read = read_delimited(_text(content, path), tabs=ending_of(path) in TAB_ENDINGS)
    _check_counts(path, len(read.rows), len(read.names))
    columns = zip(*read.rows, strict=True) if read.rows else [()] * len(read.names)
    return {name: list(values) for name, values in zip(read.names, columns, strict=True)}, {}


def _read_arrow(content: bytes, path: str) -> _Table:
    from axformer.data.arrow import read_arrow  # imports pyarrow

    table = read_arrow(content, partial(_check_counts, path), _MOST_BYTES)
    if table is None:
        raise DataError(f"data file '{path}' holds more than {_MOST_BYTES} bytes; give a part of it")
    try:
        return table_of(table), own_names_in(table)
    except DataError as error:
        raise DataError(f"data file '{path}': {error}") from None


def _read_conll(content: bytes, path: str) -> _Table:
    _check_counts(path, content.count(b"\n"), 0)
    return read_conll(_text(content, path)), {}


def _check_counts(path: str, rows: int, columns: int) -> None:
    if rows > _MOST_ROWS or columns > MOST_COLUMNS:
        raise DataError(
            f"data file '{path}' has {rows} rows and {columns} columns, at most {_MOST_ROWS} and {MOST_COLUMNS} are read; "
            "give a part of it"
        )


_PACKED_TIMES = 2
"""By who made the file, and by the server that sent it."""
_READERS: Mapping[str, Callable[[bytes, str], _Table]] = {
    **dict.fromkeys(JSON_ENDINGS, _read_json),
    **dict.fromkeys((CSV_ENDING, *TAB_ENDINGS), _read_delimited),
    **dict.fromkeys(ARROW_ENDINGS, _read_arrow),
    **dict.fromkeys(CONLL_ENDINGS, _read_conll),
}


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


def _rows(path: str, table: dict[str, list[Any]], columns: Columns, own_names: OwnNames) -> Rows:
    if not table or not next(iter(table.values())):
        raise DataError(f"data file '{path}' has no rows")
    _check_counts(path, len(next(iter(table.values()))), len(table))
    rows = Rows(source=path, table=with_derived(table, columns), columns=columns, own_names=own_names)
    rows.check_named()
    return rows
