"""Guess the columns of an uploaded data file and their roles from its first rows.

Only JSON and CSV-like files are read: they are text, so a few rows can be read without a parser that untrusted bytes could
attack. For a Parquet file, people type the names themselves.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from axformer.data.columns import USUAL_NAMES
from axformer.data.delimited import DelimitedError, head_of
from axformer.data.formats import ARROW_ENDINGS, JSON_ENDINGS, TAB_ENDINGS, ending_of, is_packed

HEAD_BYTES = 64 * 1024
"""Bytes of a file that are read; some hundred rows of sentences."""
ROWS_READ = 50
"""Enough to see how many values a column takes."""
ROWS_SHOWN = 3
VALUE_SHOWN = 120
"""Most characters of a value that are shown."""
_OPENING = re.compile(r'\s*(?:\{\s*"data"\s*:\s*)?\[')
"""The text before the objects of a list."""
_BETWEEN = ", \t\r\n"


@dataclass(frozen=True)
class Preview:
    """The beginning of a data file."""

    columns: Sequence[str]
    guess: dict[str, str]
    """The column for each role, as far as one was found."""
    rows: Sequence[Sequence[str]]
    """A few rows, in the order of the columns."""


def preview(filename: str, head: bytes) -> Preview | None:
    """Preview the first bytes of a file; None if it has another format or cannot be read."""
    ending, text = ending_of(filename), head.decode("utf-8", errors="replace").removeprefix("\ufeff")
    if is_packed(head) or ending is None or ending in ARROW_ENDINGS:
        return None
    records = _json_records(text) if ending in JSON_ENDINGS else _records(text, tabs=ending in TAB_ENDINGS)
    if not records:
        return None
    columns = [str(name) for name in records[0] if name is not None]
    if not columns:
        return None
    rows = [[_shown(record.get(name)) for name in columns] for record in records[:ROWS_SHOWN]]
    return Preview(columns, _guess(columns, records), rows)


def _records(text: str, *, tabs: bool) -> list[dict[str, Any]]:
    try:
        table = head_of(text, tabs=tabs)
    except DelimitedError:
        return []
    return [dict(zip(table.names, row, strict=True)) for row in table.rows[:ROWS_READ]]


def _json_records(text: str) -> list[dict[str, Any]]:
    """The first objects of a text, one per line or in a list; the text may be cut off."""
    records: list[dict[str, Any]] = []
    opening = _OPENING.match(text)
    position, decoder = opening.end() if opening else 0, json.JSONDecoder()
    while len(records) < ROWS_READ:
        position += len(text[position:]) - len(text[position:].lstrip(_BETWEEN))
        try:
            record, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if not isinstance(record, dict):
            break
        records.append({name.encode(errors="replace").decode(): value for name, value in record.items()})
    return records


def _guess(columns: Sequence[str], records: Sequence[dict[str, Any]]) -> dict[str, str]:
    lower = {name.lower(): name for name in columns}
    found = {role: lower[role] for role in USUAL_NAMES if role in lower}
    for role, names in USUAL_NAMES.items():
        if role in found:
            continue
        name = next((lower[name] for name in names if name in lower and lower[name] not in found.values()), None)
        if name is not None:
            found[role] = name
    if not found:
        texts = {name: sum(len(str(record.get(name, ""))) for record in records) for name in columns}
        found["text"] = max(texts, key=lambda name: texts[name])
        others = [name for name in columns if name != found["text"]]
        if others:
            found["label"] = min(others, key=lambda name: len({str(record.get(name)) for record in records}))
    return found


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    shown = text if len(text) <= VALUE_SHOWN else f"{text[:VALUE_SHOWN]}…"
    return shown.encode(errors="replace").decode()  # JSON may name halves of characters, which cannot be sent
