"""A data file as a plain table, read before anybody knows which columns the task wants; the accessors check as they give."""

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from axformer.data.columns import Columns
from axformer.data.limits import CELL_CHARACTERS, LIST_LENGTH
from axformer.errors import DataError

Label = str | int | float
_HALF = re.compile(r"[\ud800-\udfff]")
"""Halves of characters, which JSON can escape and no text holds."""
_LABEL_CHARACTERS = 1000
_LABEL_MAGNITUDE = 1e15
"""Numbers from here on are no labels: the squares of their sums are too large for float32."""
_NOT_TEXT = f"not text of at most {CELL_CHARACTERS} characters"
_SHOWN = 80
"""Characters of a value that a message shows."""


@dataclass(frozen=True)
class Rows:
    """Columns of values, row by row in the order of the file.

    The accessors take a field of :class:`axformer.data.columns.Columns`, and raise a DataError that names file, row and column
    where the column is missing or holds something else.
    """

    source: str
    table: dict[str, list[Any]]
    """The columns by the names that the file gives them."""
    columns: Columns = field(default_factory=Columns)

    def __len__(self) -> int:
        return len(next(iter(self.table.values())))

    def has(self, name: str) -> bool:
        """Whether the file has the column of this field."""
        return self._column(name) in self.table

    def at(self, places: Sequence[int]) -> "Rows":
        """The rows at some places, in that order."""
        return replace(self, table={name: [values[place] for place in places] for name, values in self.table.items()})

    def texts(self, name: str) -> list[str]:
        """A column of texts."""
        return self._checked(name, _is_text, _NOT_TEXT)

    def labels(self, name: str) -> list[Label]:
        """A column of names or numbers."""
        return self._checked(name, _is_label, "not a label")

    def text_lists(self, name: str) -> list[list[str]]:
        """A column of lists of texts."""
        return self._checked(
            name, lambda value: _is_list_of(value, _is_text), f"not a list of texts, {LIST_LENGTH} at most"
        )

    def label_lists(self, name: str) -> list[list[Label]]:
        """A column of lists of names or numbers."""
        return self._checked(
            name, lambda value: _is_list_of(value, _is_label), f"not a list of labels, {LIST_LENGTH} at most"
        )

    def records(self, name: str) -> list[dict[str, Any]]:
        """A column of objects."""
        return self._checked(name, lambda value: isinstance(value, dict), "not an object")

    def error(self, row: int, message: str) -> DataError:
        """What is wrong with a row, counted from 1."""
        return DataError(f"data file '{self.source}', row {row}: {message}")

    def digest(self) -> str:
        """SHA-256 over the columns that a task may read, in hexadecimal."""
        known = {name: self.table[self._column(name)] for name in Columns.model_fields if self.has(name)}
        return hashlib.sha256(
            json.dumps(known, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
        ).hexdigest()

    def _column(self, name: str) -> str:
        column: str = getattr(self.columns, name)
        return column

    def _checked(self, name: str, fits: Any, problem: str) -> list[Any]:
        column = self._column(name)
        if column not in self.table:
            raise DataError(
                f"data file '{self.source}' has no column '{column}', it has {', '.join(sorted(self.table))}; "
                f"name the columns, for example --columns {name}={next(iter(self.table))}"
            )
        for row, value in enumerate(self.table[column], start=1):
            if not fits(value):
                raise self.error(row, f"column '{column}' holds {_shown(value)}, {problem}")
        return self.table[column]


def _shown(value: Any) -> str:
    """The beginning of a value, as messages show it."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= CELL_CHARACTERS and (value.isascii() or not _HALF.search(value))


def _is_label(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LABEL_CHARACTERS and _is_text(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and not _LABEL_MAGNITUDE < abs(value) < math.inf


def _is_list_of(value: Any, fits: Any) -> bool:
    return isinstance(value, list) and len(value) <= LIST_LENGTH and all(fits(part) for part in value)
