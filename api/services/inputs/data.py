"""What a data file holds: its rows, its columns, and its labels as a model's classes.

Parquet is left to the worker, whose process is confined: its parser is no match for untrusted bytes here.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from api.services.inputs.checkpoint import CheckpointModel
from api.services.inputs.contents import Contents, UnreadableError
from api.services.inputs.tasks import EMBEDDING, LABELS, ONE_LABEL, SeenTask
from axformer.data.columns import Columns
from axformer.data.formats import ARROW_ENDINGS, ending_of, why_not_data
from axformer.data.labels import ClassNames, LabelColumn
from axformer.data.reading import rows_in
from axformer.data.rows import Rows
from axformer.errors import DataError
from store.storage.archives import is_archive

LOOK_BYTES = 16 << 20
"""Most bytes of a data file, unpacked, that are read for a look; parsed they take some ten times as much memory."""
_SHOWN = 6
_ANSWERS = ("label", "tags", "answers")


@dataclass(frozen=True)
class DataContent:
    """What a data file holds."""

    words: str
    rows: int | None = None
    """How many; None if it was not read."""


def look_at_data(
    contents: Contents, uri: str, columns: Mapping[str, str], model: CheckpointModel | None, *, has_labels: bool
) -> DataContent:
    """Read a data file as the model's task would, and describe it in one line.

    Args:
        model: the checkpoint; None if it cannot be read here, and columns are then only listed.

    Raises:
        UnreadableError: it is no data that a worker would take.
    """
    with contents.open(uri, is_checkpoint=False) as content:
        ending = ending_of(content.name)
        if ending is None:
            swapped = "; it looks like a checkpoint: name it there" if is_archive(content.name) else ""
            raise UnreadableError(f"'{content.name}' {why_not_data(content.name)}{swapped}")
        if ending in ARROW_ENDINGS:
            return DataContent("Parquet and Arrow are read by the worker alone.")
        if content.size > LOOK_BYTES:
            return DataContent(f"{content.size / 1e6:,.0f} MB: more than is read for a look; the worker reads it.")
        try:
            rows = rows_in(content.file, content.name, Columns(**columns), most_bytes=LOOK_BYTES)
            return DataContent(_described(rows, model, has_labels=has_labels), len(rows))
        except DataError as error:
            raise UnreadableError(str(error)) from None


def _described(rows: Rows, model: CheckpointModel | None, *, has_labels: bool) -> str:
    known = f"{len(rows):,} rows, columns {', '.join(list(rows.table)[:_SHOWN])}"
    if model is None or model.task is None:
        return f"{known}."
    for name in _needed(rows, model, model.task):
        if has_labels or name not in (*_ANSWERS, "labels"):
            rows.require(name)
    counted = _labels(rows, model) if has_labels else None
    return f"{known}; {counted}." if counted else f"{known}."


def _needed(rows: Rows, model: CheckpointModel, task: SeenTask) -> tuple[str, ...]:
    """The columns that a worker would need of these rows."""
    if task is EMBEDDING and rows.has("question") and rows.has("context"):
        return ()  # which are taken in the place of texts
    if task is ONE_LABEL and model.has_one_output and rows.are_lists:
        return ("query", "passages", "label")  # to rank
    has_lists = model.is_multi_label or (model.is_regression and not model.has_one_output)
    if task not in (ONE_LABEL, LABELS) or not has_lists:
        return tuple(column for column in task.columns if column != "text_pair")
    if model.is_multi_label and not rows.is_named("labels") and set(model.classes or ("",)) <= set(rows.table):
        return ("text",)  # a column for each class
    is_list = rows.has("labels") or (model.is_multi_label and not model.has_one_output)
    return ("text", "labels" if is_list else "label")


def _labels(rows: Rows, model: CheckpointModel) -> str | None:
    """How often each class occurs, read as the worker reads it; None where rows have no single class."""
    if model.task is not ONE_LABEL or model.is_regression or model.has_one_output:
        return None
    classes = ClassNames(model.classes or ("LABEL_0", "LABEL_1"))
    read = LabelColumn(rows.labels("label"), rows, range(1, len(rows) + 1)).read(classes)
    counts = Counter(read.indices)
    shown = ", ".join(f"{classes.names[index]} {count:,}" for index, count in counts.most_common(_SHOWN))
    rest = f" and {len(counts) - _SHOWN} more classes" if len(counts) > _SHOWN else ""
    return f"labels {shown}{rest}"
