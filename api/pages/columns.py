"""Guess the columns of an uploaded data file and their roles from its first rows.

It is read as a worker reads it, where that is short. For Parquet, whose parser is no match for untrusted bytes here, and for
longer files, people type the names themselves.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from api.services.inputs.contents import ReferencedFile
from api.services.inputs.data import LOOK_BYTES
from axformer.data.columns import USUAL_NAMES
from axformer.data.formats import ARROW_ENDINGS, ending_of
from axformer.data.reading import rows_in
from axformer.errors import DataError

ROWS_READ = 50
"""Enough to see how many values a column takes."""
ROWS_SHOWN = 3
VALUE_SHOWN = 120
"""Most characters of a value that are shown."""


@dataclass(frozen=True)
class Preview:
    """The beginning of a data file."""

    columns: Sequence[str]
    guess: dict[str, str]
    """The column for each role, as far as one was found."""
    rows: Sequence[Sequence[str]]
    """A few rows, in the order of the columns."""


def preview(content: ReferencedFile) -> Preview | None:
    """Preview a file; None if it is too long, has another format or cannot be read."""
    if content.size > LOOK_BYTES or ending_of(content.name) in (None, *ARROW_ENDINGS):
        return None
    try:
        table = rows_in(content.file, content.name, most_bytes=LOOK_BYTES).table
    except DataError:
        return None
    names = {name: name.encode(errors="replace").decode() for name in table}
    records = [
        dict(zip(names.values(), row, strict=True)) for row in islice(zip(*table.values(), strict=True), ROWS_READ)
    ]
    columns = list(names.values())
    rows = [[_shown(record[name]) for name in columns] for record in records[:ROWS_SHOWN]]
    return Preview(columns, _guess(columns, records), rows)


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
