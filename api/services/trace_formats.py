"""The trace in the formats that programs read: NDJSON, CSV and Parquet, each made piece by piece from the same trials.

A line of NDJSON is, byte for byte, the line of the artifact's ``trace.jsonl``.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from api.errors import NoValidKeyError
from axformer.plan.trial import Trial
from store.repositories.keys import Caller, is_still_valid
from store.repositories.trials import trials_after
from store.session import Sessions, session_scope

JSON = "application/json"
NDJSON = "application/x-ndjson"
JSON_LINES = "application/jsonl"
CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"

_FIELDS = tuple(Trial.model_fields)
_ROW_GROUP = 1000  # trials held at a time while Parquet is written; more compresses no better
_NESTED = ("plan", "milliseconds", "levels", "figures")
_ARROW_SCHEMA = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("phase", pa.string(), nullable=False),
        pa.field("element", pa.string()),
        pa.field("loss", pa.float64(), nullable=False),
        pa.field("loss_is_bound", pa.bool_(), nullable=False),
        pa.field("helped", pa.int64()),
        pa.field("samples", pa.int64(), nullable=False),
        pa.field("total", pa.int64(), nullable=False),
        pa.field("min_loss", pa.float64(), nullable=False),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("precision", pa.string(), nullable=False),
        pa.field("parameters", pa.int64(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("plan", pa.string()),
        pa.field("milliseconds", pa.string()),
        pa.field("levels", pa.string()),
        pa.field("figures", pa.string()),
    ]
)


def ndjson(trials: Iterable[Trial]) -> Iterator[bytes]:
    """One JSON object a line."""
    for trial in trials:
        yield trial.model_dump_json().encode() + b"\n"


def comma_separated(trials: Iterable[Trial]) -> Iterator[bytes]:
    """A header, then one line per trial; None is an empty cell, and booleans and numbers are as in JSON."""
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    writer.writerow(_FIELDS)
    yield _taken(line)
    for trial in trials:
        writer.writerow([_cell(value) for value in _flat(trial).values()])
        yield _taken(line)


def parquet(trials: Iterable[Trial]) -> Iterator[bytes]:
    """One Parquet file, sent as its row groups are completed."""
    sink = _Drain()
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), _ARROW_SCHEMA) as writer:
        remaining = iter(trials)
        while rows := [_flat(trial) for trial in islice(remaining, _ROW_GROUP)]:
            writer.write_table(pa.Table.from_pylist(rows, schema=_ARROW_SCHEMA))
            yield sink.taken()
    yield sink.taken()


WRITERS: dict[str, Callable[[Iterable[Trial]], Iterator[bytes]]] = {
    NDJSON: ndjson,
    JSON_LINES: ndjson,
    CSV: comma_separated,
    PARQUET: parquet,
}
"""The writer of each format other than JSON pages."""

SUFFIXES = {NDJSON: "jsonl", JSON_LINES: "jsonl", CSV: "csv", PARQUET: "parquet"}
"""The file suffix of each format."""


class _Drain(io.RawIOBase):
    """A write-only buffer that is drained from the front."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: "bytes | memoryview") -> int:  # type: ignore[override]
        piece = bytes(data)
        self._pieces.append(piece)
        self._position += len(piece)
        return len(piece)

    def taken(self) -> bytes:
        """What was written since the last time."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _flat(trial: Trial) -> dict[str, Any]:
    """A trial with what is nested as JSON text."""
    values = trial.model_dump(mode="json")
    return values | {name: None if values[name] is None else json.dumps(values[name]) for name in _NESTED}


def _taken(line: io.StringIO) -> bytes:
    text = line.getvalue()
    line.seek(0)
    line.truncate()
    return text.encode()


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else value


def stream(
    sessions: Sessions, caller: Caller, job_id: str, *, after: int, limit: int | None, chunk: int
) -> Iterator[Trial]:
    """The trials of the job with numbers above ``after``, in order, at most ``limit`` of them.

    Raises:
        NoValidKeyError: the caller's key has become invalid on the way. The answer is cut off, so that nobody mistakes it
            for the whole trace.
    """
    left = limit
    while left is None or left > 0:
        with session_scope(sessions) as session:
            if not is_still_valid(session, caller.key_id):
                raise NoValidKeyError(f"key {caller.key_id} is no longer valid; the trace breaks off here")
            most = chunk if left is None else min(chunk, left)
            page = trials_after(session, job_id, after=after, limit=most)
        yield from page.items
        if not page.has_more:
            return
        after = page.items[-1].seq
        left = None if left is None else left - len(page.items)
