"""A data file as a plain table, read before the task is known; the accessors check the values."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from axformer.data.columns import JOINT, USUAL_NAMES, USUAL_PAIRS, Columns
from axformer.data.delimited import CELL_CHARACTERS, looks_like_a_row
from axformer.data.derived import parts_in
from axformer.data.records import OwnNames
from axformer.data.written import is_blank, is_bracketed, seen, written_out
from axformer.errors import DataError

Label = str | int | float | bool
_HALF = re.compile(r"[\ud800-\udfff]")
"""Lone surrogates, which JSON can escape but no text contains."""
_NUMBERED = re.compile(r"(.*?)\d+")
"""One of several numbered columns, such as ``ending0``."""
_FLAGS = {"0", "1", "0.0", "1.0", "false", "true"}
"""The values of a column for one of several classes."""
_LIST_LENGTH = 100_000
"""Words, tags or choices of a row."""
_LABEL_CHARACTERS = 1000
_NOT_TEXT = f"not text of at most {CELL_CHARACTERS} characters"
_SHOWN = 80
"""Most characters of a value that a message shows."""
_SHOWN_COLUMNS = 20
_LABEL_INTEGER = 10**_LABEL_CHARACTERS
_SENTENCES = (
    "give a sentence a row, as lists of words and tags, or a CoNLL file with a blank line after each; pandas: "
    "df.groupby('sentence')[['word', 'tag']].agg(list)"
)
"""What is said of tables with a word a row."""


@dataclass(frozen=True)
class Rows:
    """Columns of values, row by row in the order of the file.

    The accessors take a field of :class:`axformer.data.columns.Columns`. They raise a DataError that names file, row and column
    if the column is missing or holds something else.
    """

    source: str
    table: dict[str, list[Any]]
    """The columns by their names in the file."""
    columns: Columns = field(default_factory=Columns)
    numbers: Sequence[int] | None = None
    """The number of each row in the file, from 1; None if all rows are present in order."""
    labels_as: str | None = None
    """The reading of labels that was chosen for the whole data set of these rows."""
    own_names: OwnNames = field(default_factory=dict)
    """The names that the data set gives the integers of its columns."""

    def __len__(self) -> int:
        return len(next(iter(self.table.values())))

    def has(self, name: str) -> bool:
        """Whether the file has the column or columns of a field."""
        return all(part in self.table for part in self.parts(name))

    def parts(self, name: str) -> list[str]:
        """The columns of a field: one, or several joined by ``+``."""
        column: str = getattr(self.columns, name)
        if column in self.table:
            return [column]
        return [part if part in self.table else seen(part) for part in map(str.strip, column.split(JOINT))]

    def names_of(self, name: str) -> tuple[str, ...]:
        """The names that the data set gives the integers of a field's column; empty if it gives none."""
        parts = self.parts(name)
        return self.own_names.get(parts[0], ()) if len(parts) == 1 else ()

    def check_named(self) -> None:
        """Check that all explicitly named columns exist.

        Raises:
            DataError: one does not.
        """
        for name in Columns.model_fields:
            if self.is_named(name) and not self.has(name):
                raise self._missing(name)

    def is_named(self, name: str) -> bool:
        """Whether the column of a field was named, other than the field."""
        return bool(getattr(self.columns, name) != Columns.model_fields[name].default)

    @property
    def are_lists(self) -> bool:
        """Whether they hold passages to rank."""
        return self.has("passages") and not self.has("text")

    def require(self, name: str) -> None:
        """Make sure that the column of a field is there.

        Raises:
            DataError: it is not.
        """
        if not self.has(name):
            raise self._missing(name)

    def at(self, places: Sequence[int]) -> "Rows":
        """Some rows by index, in that order."""
        table = {name: [values[index] for index in places] for name, values in self.table.items()}
        return replace(self, table=table, numbers=[self.number(index + 1) for index in places])

    def number(self, row: int) -> int:
        """The number in the file of one of these rows, both counted from 1."""
        return row if self.numbers is None else self.numbers[row - 1]

    def texts(self, name: str) -> list[str]:
        """A column of texts."""
        return self._checked(name, _is_text, _NOT_TEXT)

    def labels(self, name: str) -> list[Label]:
        """A column of names, numbers or truth values."""
        return self._checked(name, _is_label, "not a label")

    def text_lists(self, name: str, *, is_joined: bool = False) -> list[list[str]]:
        """A column of lists of texts, or one column for each of their items.

        Args:
            is_joined: whether a text without brackets is a list of its words.
        """
        return self._lists(
            name, _is_text, f"not a list of texts, {_LIST_LENGTH} at most", _split if is_joined else None
        )

    def label_lists(self, name: str, lengths: Sequence[int] = ()) -> list[list[Label]]:
        """A column of lists of names, numbers or truth values, or one column for each of their items.

        Args:
            lengths: so many items a text without brackets has, with spaces or else with commas between; empty if it is no list.
        """
        problem = f"not a list of labels, {_LIST_LENGTH} at most"
        return self._lists(name, _is_label, problem, partial(_split, lengths=lengths) if lengths else None)

    def label_cells(self, name: str) -> list[str | list[Label]]:
        """A column of lists of labels, or of texts that contain labels; an empty text contains none."""
        problem = f"not a list of labels, {_LIST_LENGTH} at most, nor labels with commas between"
        return self._checked(name, _is_label_cell, problem, written_out, blank=True)

    def records(self, name: str) -> list[Any]:
        """A column of objects, of lists of objects or texts, or of texts; an empty cell is None."""
        return self._checked(name, _is_record, "not an object", _record, blank=True)

    def error(self, row: int, message: str) -> DataError:
        """An error about one of these rows, counted from 1."""
        return DataError(f"data file '{self.source}', row {self.number(row)}: {message}")

    def digest(self) -> str:
        """SHA-256 over the columns that a task may read, and the names of their integers, in hexadecimal."""
        known: dict[str, Any] = {name: self._joined(name) for name in Columns.model_fields if self.has(name)}
        if own_names := {name: names for name in known if (names := self.names_of(name))}:
            known["own names"] = own_names
        if "labels" not in known:
            known |= {f"{name} applies": values for name, values in self._class_columns()}
        return hashlib.sha256(
            json.dumps(known, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
        ).hexdigest()

    def _class_columns(self) -> list[tuple[str, list[Any]]]:
        """The columns that say whether a class applies, which may stand for ``labels``: those of 0 and 1 without a field."""
        taken = {part for name in Columns.model_fields for part in self.parts(name)}
        return sorted((name, values) for name, values in self.table.items() if name not in taken and _are_flags(values))

    def _joined(self, name: str) -> list[Any]:
        parts = self.parts(name)
        if len(parts) == 1:
            return self.table[parts[0]]
        return [list(values) for values in zip(*(self.table[part] for part in parts), strict=True)]

    def _lists(
        self,
        name: str,
        fits: Callable[[Any], bool],
        problem: str,
        split: Callable[[list[Any]], list[Any]] | None = None,
    ) -> list[list[Any]]:
        return self._checked(name, partial(_is_list_of, fits=fits), problem, written_out, split)

    def _checked(
        self,
        name: str,
        fits: Callable[[Any], bool],
        problem: str,
        read: Callable[[Any], Any] | None = None,
        split: Callable[[list[Any]], list[Any]] | None = None,
        *,
        blank: bool = False,
    ) -> list[Any]:
        """The values of a field, each of them read and all of them split, as far as that is asked."""
        self.require(name)
        values = self._joined(name)
        values = _alone(values) if read is None else list(map(read, values))
        for row, value in enumerate(values, start=1):
            if _is_missing(value) and not blank:
                raise self.error(row, f"column '{self._called(name)}' is empty; fill it in, or leave the row out")
        if split is not None and all(isinstance(value, str) for value in values) and not all(map(is_bracketed, values)):
            values = split(values)
            if len(values) > 1 and max(map(len, values)) == 1:
                raise self.error(1, f"column '{self._called(name)}' holds one word a row; {_SENTENCES}")
        for row, value in enumerate(values, start=1):
            if not fits(value):
                raise self.error(
                    row, f"column '{self._called(name)}' holds {_shown(value)}, {problem}{_left_out(value)}"
                )
        return values

    def _called(self, name: str) -> str:
        called: str = getattr(self.columns, name)
        return called

    def _missing(self, name: str) -> DataError:
        parts = parts_in(self.table)
        there = sorted(parts)
        shown = ", ".join(there[:_SHOWN_COLUMNS]) + (" ..." if len(there) > _SHOWN_COLUMNS else "")
        lacking = next(part for part in self.parts(name) if part not in self.table)
        pair = next((one for one in USUAL_PAIRS if {*one} <= {*parts}), None) if name == "text" else None
        likely = self._likely(name, parts)
        if looks_like_a_row(self.table):
            remedy = (
                "its first line looks like a row: add a line above it that names the columns, for example text,label"
            )
        elif pair is not None and not self.is_named("text_pair"):
            remedy = f"name the columns, for example --columns text={pair[0]},text_pair={pair[1]}"
        elif likely is None:
            remedy = f"none of them holds {_WANTED[name][1]}"
        else:
            remedy = f"name the columns, for example --columns {name}={likely}"
        return DataError(f"data file '{self.source}' has no column '{lacking}', it has {shown}; {remedy}")

    def _likely(self, name: str, parts: dict[str, list[Any]]) -> str | None:
        """A suggestion for a missing column: a usual name, numbered columns, or the first unused one; its values fit."""
        fits = _WANTED[name][0]
        fitting = [part for part, values in parts.items() if all(_is_missing(value) or fits(value) for value in values)]
        usual = [part for column in USUAL_NAMES[name] for part in fitting if part.rpartition(".")[2] == column]
        if usual:
            return min(usual, key=lambda part: part.count("."))
        taken = {part for other in Columns.model_fields if other != name for part in self.parts(other)}
        alike: list[str] = []
        if name == "choices":
            free = [part for part, values in parts.items() if part not in taken and all(map(_is_text, values))]
            stems = [numbered[1] if (numbered := _NUMBERED.fullmatch(column)) else column for column in free]
            alike = [column for column, stem in zip(free, stems, strict=True) if stems.count(stem) > 1]
        if name == "labels":
            alike = [column for column in self.table if column not in taken and _are_flags(self.table[column])]
        free = [column for column in fitting if column not in taken]
        return JOINT.join(alike) if len(alike) > 1 else next(iter(free), None)


def _are_flags(values: Sequence[Any]) -> bool:
    return all(str(value).strip().lower() in _FLAGS for value in values)


def _alone(values: list[Any]) -> list[Any]:
    """The values, those of lists of one where all are such lists."""
    lists = [written_out(value) if isinstance(value, str) and value.startswith("[") else value for value in values]
    is_alone = all(isinstance(value, list) and len(value) == 1 for value in lists)
    return [value for (value,) in lists] if is_alone else values


def _split(values: list[str], lengths: Sequence[int] = ()) -> list[list[str]]:
    """The words of each text; with commas between if that gives so many of each."""
    items = [[item.strip() for item in value.split(",")] for value in values]
    has_commas = list(map(len, items)) == list(lengths) and all(map(all, items))
    return items if has_commas else [value.split() for value in values]


def _left_out(value: Any) -> str:
    return "; NumPy has left out items where it wrote '...'" if isinstance(value, str) and "..." in value[:-1] else ""


def _shown(value: Any) -> str:
    """The beginning of a value for a message."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_missing(value: Any) -> bool:
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or (isinstance(value, str) and is_blank(value))
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= CELL_CHARACTERS and (value.isascii() or not _HALF.search(value))


def _is_label(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LABEL_CHARACTERS and _is_text(value)
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < _LABEL_INTEGER)


def _is_list_of(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and len(value) <= _LIST_LENGTH and all(fits(part) for part in value)


def _is_label_cell(value: Any) -> bool:
    return isinstance(value, str) or _is_list_of(value, _is_label)


def _record(value: Any) -> Any:
    return None if _is_missing(value) else written_out(value)


def _is_record(value: Any) -> bool:
    return isinstance(value, dict | str | None) or _is_list_of(value, lambda part: isinstance(part, dict | str))


def _is_words(value: Any) -> bool:
    return _is_list_of(written_out(value), _is_text)


def _or_alone(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: fits(value) or (isinstance(value, list) and len(value) == 1 and fits(value[0]))


_TEXT = (_or_alone(_is_text), "a text")
_WANTED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("text", "text_pair", "question", "context", "query"), _TEXT),
    "label": (_or_alone(_is_label), "the name or the number of a class"),
    "labels": (lambda value: _is_label_cell(written_out(value)), "a list of names or numbers of classes"),
    "tokens": (_is_words, "a list of words"),
    "tags": (lambda value: _is_list_of(written_out(value), _is_label), "a list of a tag for each word"),
    "answers": (lambda value: isinstance(written_out(value), dict | list), '{"text": [...], "answer_start": [...]}'),
    "choices": (_is_words, "a list of endings"),
    "passages": (_is_words, "a list of passages"),
}
"""What fits a field, and what it is in words."""
