"""The classes that a model knows, by name and by index."""

from dataclasses import dataclass
from typing import Any

from axformer.data.rows import Label, Rows


@dataclass(frozen=True)
class ClassNames:
    """How the labels of a data file become indices of a model's classes."""

    indices: dict[str, int]
    count: int

    @classmethod
    def of(cls, config: Any) -> "ClassNames":
        """The classes of a model's configuration."""
        return cls({str(name): int(index) for name, index in (config.label2id or {}).items()}, config.num_labels)

    def index(self, value: Label, rows: Rows, row: int, what: str = "label") -> int:
        """The index of a class given by name, by index, or by index as text.

        Raises:
            DataError: the model has no such class; the message names the row, counted from 1.
        """
        if str(value) in self.indices:
            return self.indices[str(value)]
        number = int(value) if isinstance(value, int) or (str(value).isascii() and str(value).isdigit()) else -1
        if not 0 <= number < self.count:
            known = ", ".join(f"{index} ({name})" for name, index in self.indices.items())
            raise rows.error(row, f"{what} {value!r} is unknown to the model; it knows {known}")
        return number
