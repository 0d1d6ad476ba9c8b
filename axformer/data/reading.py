"""Read a data file into plain columns: JSON Lines, CSV or Parquet, from a path, a URL or a hub."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from axformer.data.columns import Columns
from axformer.data.rows import Rows
from axformer.errors import DataError, first_line


def read_rows(path: str, columns: Columns | None = None) -> Rows:
    """Read a table; what its values must be is checked when a task asks for them.

    Args:
        path: a local path or a URL that fsspec opens (``https://``, ``s3://``, ``hf://datasets/...``). The ending tells the
            format: ``.jsonl``, ``.json`` (one object a line), ``.csv``, ``.parquet``; ``.gz`` may follow.
        columns: how the columns are called.

    Raises:
        DataError: the file is missing, damaged or empty.
    """
    columns = columns or Columns()
    read = _reader_of(path)
    try:
        with fsspec.open(path, "rb", compression="infer") as file:
            table = read(file.read(), path)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"data file '{path}' does not exist") from None
    except Exception as error:  # noqa: BLE001 - each kind of source has errors of its own, and all are about this file
        raise DataError(f"data file '{path}' cannot be read: {first_line(error)}") from None
    return _rows(path, table, columns)


def rows_of(records: Iterable[Mapping[str, Any]], columns: Columns | None = None) -> Rows:
    """A table of records in memory.

    Raises:
        DataError: there are none.
    """
    return _rows("in memory", _columns_of(list(records)), columns or Columns())


def _reader_of(path: str) -> Any:
    name = PurePosixPath(path.partition("?")[0])
    ending = name.with_suffix("").suffix if name.suffix == ".gz" else name.suffix
    if ending not in _READERS:
        raise DataError(f"data file '{path}' has no known ending; use one of {', '.join(_READERS)}, or one with .gz")
    return _READERS[ending]


def _read_json_lines(content: bytes, path: str) -> dict[str, list[Any]]:
    rows = []
    for number, line in enumerate(_text(content, path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"data file '{path}', line {number} is not JSON: {error.msg}") from None
        if not isinstance(row, dict):
            raise DataError(f"data file '{path}', line {number} is not a JSON object but {line.strip()[:40]}")
        rows.append(row)
    return _columns_of(rows)


def _columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _read_csv(content: bytes, path: str) -> dict[str, list[Any]]:
    if not content.strip():
        return {}
    _text(content, path)
    quoted = pyarrow.csv.ParseOptions(newlines_in_values=True)
    table: dict[str, list[Any]] = pyarrow.csv.read_csv(pa.BufferReader(content), parse_options=quoted).to_pydict()
    return table


def _read_parquet(content: bytes, _: str) -> dict[str, list[Any]]:
    table: dict[str, list[Any]] = pyarrow.parquet.read_table(pa.BufferReader(content)).to_pydict()
    return table


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
    return Rows(source=path, table=table, columns=columns)
