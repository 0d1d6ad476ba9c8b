"""A data file as a plain table, read before anybody knows which columns the task wants; the accessors check as they give."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from axformer.data.columns import Columns
from axformer.errors import DataError

Label = str | int | float


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

    def texts(self, name: str) -> list[str]:
        """A column of texts."""
        return self._checked(name, _is_text, "not text")

    def labels(self, name: str) -> list[Label]:
        """A column of names or numbers."""
        return self._checked(name, _is_label, "not a label")

    def text_lists(self, name: str) -> list[list[str]]:
        """A column of lists of texts."""
        return self._checked(name, lambda value: _is_list_of(value, _is_text), "not a list of texts")

    def label_lists(self, name: str) -> list[list[Label]]:
        """A column of lists of names or numbers."""
        return self._checked(name, lambda value: _is_list_of(value, _is_label), "not a list of labels")

    def records(self, name: str) -> list[dict[str, Any]]:
        """A column of objects."""
        return self._checked(name, lambda value: isinstance(value, dict), "not an object")

    def error(self, row: int, message: str) -> DataError:
        """What is wrong with a row, counted from 1."""
        return DataError(f"data file '{self.source}', row {row}: {message}")

    def digest(self) -> str:
        """SHA-256 over the columns that a task may read, in hexadecimal."""
        known = {name: self.table[self._column(name)] for name in Columns.model_fields if self.has(name)}
        return hashlib.sha256(json.dumps(known, ensure_ascii=False, default=str).encode()).hexdigest()

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
                raise self.error(row, f"column '{column}' holds {value!r}, {problem}")
        return self.table[column]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_label(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_list_of(value: Any, fits: Any) -> bool:
    return isinstance(value, list) and all(fits(part) for part in value)
