"""Choose one reading for a whole column of labels: names of classes, indices of classes, or truth values.

Read value by value, a column could silently mix two readings: if classes are called "1" to "5" and the labels count from 0,
four of five values would be names and the fifth an index. A reading therefore counts only if it fits every value of the
column. Names come before indices; if both fit and mean different classes, a note says which one was used.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from axformer.data.rows import Label, Rows
from axformer.data.written import seen
from axformer.errors import DataError

SHOWN_CLASSES = 12
"""Most classes that a message names."""
_WHOLE = re.compile(r"(-?(?:0|[1-9]\d{0,14}))(?:\.0*)?", re.ASCII)
"""An integer as people and programs write it; a leading zero makes it a code."""
_TRUTHS = {"false": 0, "true": 1}
_IN_OTHER_CASE = "in other upper and lower case"
_ROUNDED = re.compile(r"\d(?:\.\d+)?[eE]\+?\d+")


class Reading(StrEnum):
    """How the values of a column of labels are read."""

    NAMES = "names of classes"
    INDICES = "indices of classes"
    TRUTHS = "truth values"
    FLAGS = "a 0 or a 1 for each class"


@dataclass(frozen=True)
class ClassNames:
    """The classes of a model, by index."""

    names: tuple[str, ...]
    owner: str = "the model"
    """The owner of the classes, as messages name it."""

    @classmethod
    def of(cls, config: Any) -> "ClassNames":
        """The classes in a model's config."""
        given = {int(index): str(name) for index, name in (config.id2label or {}).items()}
        return cls(tuple(given.get(index, str(index)) for index in range(config.num_labels)))

    @property
    def count(self) -> int:
        """Number of classes."""
        return len(self.names)

    @property
    def are_numbers(self) -> bool:
        """Whether the index of one class is the name of another, so that labels can be ambiguous."""
        return any(_index(name, self.count) not in (None, index) for index, name in enumerate(self.names))

    def __str__(self) -> str:
        known = [f"{index} ({name})" for index, name in enumerate(self.names[:SHOWN_CLASSES])]
        return ", ".join(known) + (f" and {self.count - SHOWN_CLASSES} more" if self.count > SHOWN_CLASSES else "")


@dataclass(frozen=True)
class Read:
    """A column of labels, read as classes."""

    indices: list[int]
    """The class of each value."""
    reading: Reading
    note: str | None = None
    """What the user should know if another reading was plausible."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The note, if there is one."""
        return () if self.note is None else (self.note,)


@dataclass(frozen=True)
class LabelColumn:
    """The unread labels of a file."""

    values: Sequence[Label]
    """The values; none is missing."""
    rows: Rows
    """Their file; its ``labels_as`` is the reading of other parts of the same data."""
    row_of: Sequence[int]
    """The row of each value, counted from 1."""
    what: str = "label"
    """The name of a value in messages."""
    own_names: Sequence[str] = ()
    """The names that the file gives its integers; empty if it gives none."""

    def read(self, classes: ClassNames) -> Read:
        """Find the classes that the values mean.

        Raises:
            DataError: no single reading fits all values; the message shows the first misfit and the classes.
        """
        if (read := self._by_own_names(classes)) is not None:
            return read
        if all(truth_of(value) is not None for value in self.values):
            return self._read_truths(classes)
        named = list(map(find_name(classes.names), self.values))
        counted = [_index(value, classes.count) for value in self.values]
        names, indices = _all_known(named), _all_known(counted)
        if names is not None and indices is not None and names != indices:
            return self._one_of_two(names, indices, classes)
        if names is not None:
            return Read(names, Reading.NAMES)
        if indices is not None:
            return Read(indices, Reading.INDICES, self._near_names(named, indices, classes))
        for same, written in ((seen, "with other spaces, accents or invisible characters"), (_folded, _IN_OTHER_CASE)):
            alike = _all_known(list(map(find_name(classes.names, same), self.values)))
            if alike is not None:
                return Read(alike, Reading.NAMES, f"{self.what}s are names of classes {written}")
        raise self._misfit(named, counted, classes)

    def _by_own_names(self, classes: ClassNames) -> Read | None:
        """Read integers by the names that the file gives them; None if it gives none or numbers, or the model has others."""
        if any(_WHOLE.fullmatch(name.strip()) for name in self.own_names):
            return None
        known = list(map(find_name(classes.names, _folded), self.own_names))
        values = [value for value in self.values if type(value) is int and 0 <= value < len(known)]
        if len(values) < len(self.values) or known.count(None) == len(known):
            return None
        is_same = all(index in (None, place) for place, index in enumerate(known))
        unknown = next((position for position, value in enumerate(values) if known[value] is None), None)
        if unknown is not None:
            if is_same:
                return None
            raise self.rows.error(
                self.row_of[unknown],
                f"{self.what} {values[unknown]} is '{self.own_names[values[unknown]]}' in the file's own features, which is "
                f"unknown to {classes.owner}; it knows {classes}",
            )
        indices = [index for value in values if (index := known[value]) is not None]
        if is_same:
            return Read(indices, Reading.INDICES)
        note = f"{self.what}s are read by the names that the file's features give them, in another order than {classes.owner}"
        return Read(indices, Reading.NAMES, note)

    def _read_truths(self, classes: ClassNames) -> Read:
        """Read truth values as the classes called true and false, or else as the model's two classes."""
        named = _all_known(list(map(find_name(classes.names, _folded), map(str, self.values))))
        if named is not None:
            return Read(named, Reading.NAMES)
        if classes.count != 2:
            raise self.rows.error(
                self.row_of[0],
                f"{self.what} {self.values[0]!r} is a truth value, for a model of two classes; this one knows {classes}",
            )
        meant = ", ".join(f"{word} is class {index} ('{classes.names[index]}')" for word, index in _TRUTHS.items())
        indices = [_TRUTHS[str(value).strip().lower()] for value in self.values]
        return Read(indices, Reading.TRUTHS, f"{self.what}s are truth values: {meant}")

    def _one_of_two(self, names: list[int], indices: list[int], classes: ClassNames) -> Read:
        if self.rows.labels_as == Reading.INDICES:
            why, reading, taken = "as elsewhere in this data", Reading.INDICES, indices
        else:
            why = "for every one is a name; if they count the classes from 0, write the names of the classes instead"
            reading, taken = Reading.NAMES, names
        position = next(
            position for position, pair in enumerate(zip(names, indices, strict=True)) if pair[0] != pair[1]
        )
        example = self._example(position, taken, classes)
        return Read(taken, reading, f"{self.what}s are read as {reading}, so that {example}, {why}")

    def _near_names(self, named: list[int | None], indices: list[int], classes: ClassNames) -> str | None:
        """A note about indices of which some are also names of other classes."""
        positions = [position for position, index in enumerate(named) if index not in (None, indices[position])]
        if not positions:
            return None
        other = self.values[named.index(None)]
        example = self._example(positions[0], indices, classes)
        return f"{self.what}s are read as {Reading.INDICES}, so that {example}, for {other!r} is among them and is not a name"

    def _example(self, position: int, indices: list[int], classes: ClassNames) -> str:
        return f"{self.values[position]!r} is class {indices[position]} ('{classes.names[indices[position]]}')"

    def _number(self, position: int) -> int:
        return self.rows.number(self.row_of[position])

    def _misfit(self, named: Sequence[int | None], counted: Sequence[int | None], classes: ClassNames) -> DataError:
        """Describe the error: a value that is neither name nor index, or a mixture of both."""
        neither = next(
            (position for position, both in enumerate(zip(named, counted, strict=True)) if both == (None, None)), None
        )
        if neither is not None:
            value = self.values[neither]
            return self.rows.error(
                self.row_of[neither],
                f"{self.what} {value!r} is unknown to {classes.owner}; it knows {classes}{_hint(value)}",
            )
        no_name, no_index = named.index(None), counted.index(None)
        return self.rows.error(
            self.row_of[max(no_name, no_index)],
            f"{self.what}s are neither all names nor all indices of classes: {self.values[no_name]!r} (row "
            f"{self._number(no_name)}) is not a name, {self.values[no_index]!r} "
            f"(row {self._number(no_index)}) is not an index; write them alike; {classes.owner} knows {classes}",
        )


def truth_of(value: Label) -> int | None:
    """0 or 1 for a truth value, which may be a word."""
    return _TRUTHS.get(str(value).strip().lower()) if isinstance(value, bool | str) else None


def find_name(names: Sequence[str], same: Callable[[str], str] = str) -> Callable[[Label], int | None]:
    """A function that looks a value up among names, also as a differently written number; an ambiguous name matches none."""
    known: dict[str, int | None] = {}
    for index, name in enumerate(names):
        key = same(name.strip())
        known[key] = None if key in known else index

    def find(value: Label) -> int | None:
        text = same(str(value).strip())
        if text in known:
            return known[text]
        number = _WHOLE.fullmatch(text)
        return known.get(number[1]) if number else None

    return find


def _folded(text: str) -> str:
    return seen(text).casefold()


def _all_known(indices: Sequence[int | None]) -> list[int] | None:
    known = [index for index in indices if index is not None]
    return known if len(known) == len(indices) else None


def _index(value: Label, count: int) -> int | None:
    number = _WHOLE.fullmatch(str(value).strip())
    index = int(number[1]) if number else -1
    return index if 0 <= index < count else None


def _hint(value: Label) -> str:
    text = str(value).strip()
    if re.fullmatch(r"0\d+", text, re.ASCII):
        return "; a number with a leading zero is taken for a name, not for an index"
    if re.fullmatch(r"-1(\.0*)?", text):
        return "; -1 often marks labels that are kept secret: leave such rows out, or give a set with labels"
    if _ROUNDED.fullmatch(text):
        return "; a spreadsheet or pandas has rounded it, so that its last digits are lost: export the column as text"
    return ""
