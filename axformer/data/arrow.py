"""Read tables of Apache Arrow: Parquet, and the IPC formats, which are Feather's and those of ``datasets``."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from axformer.data.formats import PARQUET

_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 256 << 20
"""Bytes of a Parquet file that are unpacked at a time."""
_FILE = b"ARROW1"
"""How the IPC format with random access begins; the other is a stream."""


def read_arrow(content: bytes, check_counts: Callable[[int, int], None], most_bytes: int) -> pa.Table | None:
    """A table; None if its rows take more than ``most_bytes``.

    Args:
        check_counts: refuses numbers of rows and columns.

    Raises:
        DataError: from ``check_counts``.
        ArrowException: the content is damaged.
    """
    source = pa.BufferReader(content)
    if content.startswith(PARQUET):
        file = pyarrow.parquet.ParquetFile(source)
        check_counts(file.metadata.num_rows, file.metadata.num_columns)
        schema, batches = file.schema_arrow, _of_parquet(file)
    else:
        reader = pa.ipc.open_file(source) if content.startswith(_FILE) else pa.ipc.open_stream(source)
        schema, batches = reader.schema, _of_ipc(reader)
    check_counts(0, len(schema.names))
    kept, held, rows = [], 0, 0
    for batch in batches:
        batch.validate(full=True)  # the IPC format trusts the offsets that it finds
        kept.append(batch)
        held, rows = held + sum(map(_bytes, batch.columns)), rows + len(batch)
        check_counts(rows, len(schema.names))
        if held > most_bytes:
            return None
    return pa.Table.from_batches(kept, schema)


def _of_parquet(file: Any) -> Iterator[Any]:
    """Batches that are small if cells may be large, since a small file can name one large cell in all its rows."""
    groups = [file.metadata.row_group(group) for group in range(file.metadata.num_row_groups)]
    parts = [group.column(place) for group in groups for place in range(group.num_columns)]
    cell = max((part.total_uncompressed_size for part in parts), default=1)
    return iter(file.iter_batches(batch_size=max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(cell, 1)))))


def _of_ipc(reader: Any) -> Iterator[Any]:
    count = getattr(reader, "num_record_batches", None)
    return iter(reader) if count is None else (reader.get_batch(place) for place in range(count))


def _bytes(column: Any) -> int:
    """Bytes of a column, those of words that several rows share as often as they occur."""
    if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
        views = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)  # each begins with the length of its text
        return int(views[column.offset : column.offset + len(column), 0].sum(dtype=np.int64))
    if pa.types.is_dictionary(column.type) and not pa.types.is_nested(column.type.value_type):
        words = column.dictionary.cast(pa.large_string()) if len(column.dictionary) else pa.array([], pa.large_string())
        return int(pyarrow.compute.sum(pyarrow.compute.binary_length(words).take(column.indices)).as_py() or 0)
    return int(column.nbytes)
