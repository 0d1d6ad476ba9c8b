"""Read which classes apply to each row: a list or a text of labels, a 0 or 1 for each class, or a column for each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from axformer.data.columns import JOINT
from axformer.data.labels import ClassNames, LabelColumn, Reading, find_name
from axformer.data.rows import Label, Rows
from axformer.errors import DataError

_FLAGS = {"0": 0.0, "0.0": 0.0, "false": 0.0, "1": 1.0, "1.0": 1.0, "true": 1.0}
_FIELD = "labels"


@dataclass(frozen=True)
class LabelSets:
    """The labels of all rows."""

    flags: list[list[float]]
    """1 where a class applies: one list per row, with one entry per class."""
    reading: Reading
    notes: tuple[str, ...] = ()


def read_label_sets(rows: Rows, classes: ClassNames) -> LabelSets:
    """Read the labels of a file, all in one way.

    Raises:
        DataError: no single reading fits all labels, or two readings mean different classes, or a column is missing.
    """
    if not rows.has(_FIELD) and _are_columns(classes, rows):
        named = rows.columns.model_copy(update={_FIELD: JOINT.join(classes.names)})
        by_column = _of_columns(replace(rows, columns=named), classes)
        return replace(by_column, notes=(f"labels are in the columns {', '.join(classes.names)}",))
    if len(rows.parts(_FIELD)) > 1:
        return _of_columns(rows, classes)
    lists = [_listed(cell, classes) for cell in rows.label_cells(_FIELD)]
    flags = _all_flags(lists, classes)
    if flags is not None and rows.labels_as == Reading.FLAGS:
        return LabelSets(flags, Reading.FLAGS)
    try:
        sets = _of_lists(lists, rows, classes)
    except DataError:
        if flags is None:
            raise
        return LabelSets(flags, Reading.FLAGS, (f"labels are {Reading.FLAGS}",))
    if flags is not None and flags != sets.flags and rows.labels_as != sets.reading:
        raise DataError(
            f"data file '{rows.source}': labels such as {lists[0]} can be {Reading.FLAGS} and can be {sets.reading}; write the "
            f"names of the classes ({classes}), or give each class a column: --columns {_FIELD}=FIRST{JOINT}SECOND"
        )
    return sets


def _are_columns(classes: ClassNames, rows: Rows) -> bool:
    """Whether the file has a column for each class, with the name of the class."""
    return not rows.is_named(_FIELD) and all(name in rows.table and JOINT not in name for name in classes.names)


def _of_columns(rows: Rows, classes: ClassNames) -> LabelSets:
    """Read labels from a column for each class, matched by name or else by order."""
    columns = rows.parts(_FIELD)
    find = find_name(classes.names)
    named = [find(column) for column in columns]
    order = [index for index in named if index is not None]
    if len(columns) != classes.count or len(set(order)) != len(order) or 0 < len(order) < len(columns):
        raise DataError(
            f"data file '{rows.source}': the columns {', '.join(columns)} do not go with the classes of the model, {classes}; "
            f"name one for each: --columns {_FIELD}={JOINT.join(classes.names)}"
        )
    notes = () if order else (f"the columns {', '.join(columns)} are taken for the classes {classes}, in this order",)
    flags = []
    for row, cells in enumerate(rows.label_lists(_FIELD), start=1):
        row_flags = [_flag(cell) for cell in cells]
        if None in row_flags:
            wrong = row_flags.index(None)
            raise rows.error(row, f"column '{columns[wrong]}' holds {cells[wrong]!r}, not 0 or 1")
        line = [0.0] * classes.count
        for index, flag in zip(order or range(classes.count), row_flags, strict=True):
            line[index] = flag or 0.0
        flags.append(line)
    return LabelSets(flags, Reading.FLAGS, notes)


def _of_lists(lists: Sequence[Sequence[Label]], rows: Rows, classes: ClassNames) -> LabelSets:
    values = [value for labels in lists for value in labels]
    row_of = [row for row, labels in enumerate(lists, start=1) for _ in labels]
    read = LabelColumn(values, rows, row_of, own_names=rows.names_of(_FIELD)).read(classes)
    indices = iter(read.indices)
    flags = []
    for row, labels in enumerate(lists, start=1):
        line = [0.0] * classes.count
        for value in labels:
            index = next(indices)
            if line[index]:
                raise rows.error(
                    row,
                    f"labels {labels!r} name class {value!r} twice; if they are {Reading.FLAGS}, give one for each of the "
                    f"{classes.count}",
                )
            line[index] = 1.0
        flags.append(line)
    return LabelSets(flags, read.reading, read.notes)


def _listed(cell: str | Sequence[Label], classes: ClassNames) -> Sequence[Label]:
    """The labels of a cell; a text is split at its commas, with or without brackets and quotation marks."""
    if not isinstance(cell, str):
        return cell
    if cell.strip() in classes.names:
        return [cell]
    parts = (part.strip().strip("'\"").strip() for part in cell.strip().removeprefix("[").removesuffix("]").split(","))
    return [part for part in parts if part]


def _all_flags(lists: Sequence[Sequence[Label]], classes: ClassNames) -> list[list[float]] | None:
    if any(len(labels) != classes.count for labels in lists):
        return None
    flags = [[_flag(value) for value in labels] for labels in lists]
    known = [[flag for flag in line if flag is not None] for line in flags]
    return known if all(len(line) == classes.count for line in known) else None


def _flag(value: Label) -> float | None:
    return _FLAGS.get(str(value).strip().lower())
