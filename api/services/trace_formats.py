"""The trace in the formats that programs read: NDJSON and CSV, each made piece by piece from the same trials.

A line of NDJSON is, byte for byte, the line of the artifact's ``trace.jsonl``.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from api.errors import NoValidKeyError
from axformer.plan.trial import Trial
from store.repositories.keys import Caller, is_still_valid
from store.repositories.trials import trials_after
from store.session import Sessions, session_scope

JSON = "application/json"
NDJSON = "application/x-ndjson"
JSON_LINES = "application/jsonl"
CSV = "text/csv"

_FIELDS = tuple(Trial.model_fields)
_NESTED = ("plan", "milliseconds", "levels", "figures")


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


WRITERS: dict[str, Callable[[Iterable[Trial]], Iterator[bytes]]] = {
    NDJSON: ndjson,
    JSON_LINES: ndjson,
    CSV: comma_separated,
}
"""The writer of each format other than JSON pages."""

SUFFIXES = {NDJSON: "jsonl", JSON_LINES: "jsonl", CSV: "csv"}
"""The file suffix of each format."""


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
