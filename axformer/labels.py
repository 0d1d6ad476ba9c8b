"""Labels that people gave for the changed answers of a result: read, checked, and kept beside its answer sheet. No PyTorch."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import ValidationError

from axformer.errors import DataError, reason_of
from axformer.scores.labelling import label_of
from axformer.wire.answer_sheet import SHEET, Answer, AnswerSheet

LABELS = "labels.jsonl"
"""The labels in a result, one person's on a row a line."""


@dataclass(frozen=True)
class GivenLabels:
    """Labels of a sheet's rows."""

    labels: Mapping[str, Answer]
    """By the id of the row; not of rows on which people disagree."""
    notes: Sequence[str] = ()
    """What the user should know of the others."""


def read_sheet(result: Path) -> AnswerSheet:
    """The answer sheet of a result.

    Raises:
        DataError: it has none, or not one of this version.
    """
    try:
        return AnswerSheet.model_validate_json((result / SHEET).read_bytes())
    except FileNotFoundError:
        raise DataError(
            f"'{result}' has no {SHEET}, in which the answers lie that labels are needed for; prune with --unlabelled"
        ) from None
    except ValidationError as error:
        raise DataError(
            f"'{result / SHEET}' cannot be read: {reason_of(error.errors()[0])}; make the result again"
        ) from None


def given_labels(sheet: AnswerSheet, records: Iterable[Mapping[str, Any]], source: str) -> GivenLabels:
    """Labels of a sheet's rows, from records with ``id`` and ``label``. Of what one person (``by``) said of a row the last
    counts; those without a name are of as many people.

    Args:
        source: where they come from, for messages.

    Raises:
        DataError: a record has no id or an unknown label, or no record is of this sheet.
    """
    rows = {row.id: row for row in sheet.changed}
    found: dict[str, dict[Any, Answer]] = {}
    others = count = 0
    for count, record in enumerate(records, 1):
        if "id" not in record or "label" not in record:
            raise DataError(f"'{source}', row {count}: give every row its id and its label, as needed.jsonl has ids")
        row, value = rows.get(str(record["id"])), record["label"]
        if row is None:
            others += 1
        elif value is not None and value != "":
            found.setdefault(row.id, {})[record.get("by", count)] = label_of(sheet, row, value)
    if count and others == count:
        raise DataError(
            f"'{source}': none of its {count:,} ids is of a changed answer of this result; give labels of its own"
        )
    agreed, notes = agreed_labels({id: list(by.values()) for id, by in found.items()}), []
    if others:
        notes.append(f"{others:,} labels are of rows whose answers did not change, and count for nothing")
    if len(found) > len(agreed):
        notes.append(f"people disagree on {len(found) - len(agreed):,} rows, which count as unlabelled")
    return GivenLabels(agreed, notes)


def agreed_labels(given: Mapping[str, Sequence[Answer]]) -> dict[str, Answer]:
    """The labels of the rows on which people agree; the others count as unlabelled. Of numbers it is their mean.

    Args:
        given: by the id of the row, each with at least one.
    """
    agreed: dict[str, Answer] = {}
    for id, labels in given.items():
        numbers = [one for one in labels if isinstance(one, float)]
        if len(numbers) == len(labels):
            agreed[id] = fmean(numbers)
        elif all(one == labels[0] for one in labels):
            agreed[id] = labels[0]
    return agreed


def records_of(path: Path) -> list[dict[str, Any]]:
    """The labels of a file of any format that data may have, as they stand there; none if it is missing.

    Raises:
        DataError: the file cannot be read.
    """
    from axformer.data.reading import read_rows  # imports what reads every format

    if not path.exists() or not path.stat().st_size:
        return []
    table = read_rows(str(path)).table
    rows = zip(*table.values(), strict=True)
    return [{name: value for name, value in zip(table, row, strict=True) if value is not None} for row in rows]


def named(sheet: AnswerSheet, answer: Answer) -> Any:
    """An answer by the names of its classes, as a file has it."""
    if sheet.task == "multi_label_classification" and isinstance(answer, list):
        return [sheet.classes[index] for index, applies in enumerate(answer) if applies]
    if isinstance(answer, list):
        return [named(sheet, one) for one in answer]
    return sheet.classes[answer] if sheet.classes and isinstance(answer, int) else answer


def record_of(sheet: AnswerSheet, id: str, answer: Answer, by: str) -> dict[str, Any]:
    """A label with who gave it and when."""
    return {"id": id, "label": named(sheet, answer), "by": by, "at": datetime.now(UTC).isoformat(timespec="seconds")}


def add_label(path: Path, record: Mapping[str, Any]) -> None:
    """Add a label to a file, to which others may add at the same time."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            file.write(b"" if file.read() == b"\n" else b"\n")  # which an editor may have left out
        file.write(_line(record).encode())


def take_back(path: Path, record: Mapping[str, Any]) -> None:
    """Remove a label from a file; the last one that is like it."""
    records = records_of(path)
    place = max((place for place, one in enumerate(records) if one == record), default=None)
    write_labels(path, [one for other, one in enumerate(records) if other != place])


def put_labels(path: Path, records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add labels to those of a file, in the place of what the same person said of the same rows.

    Returns:
        All labels of the file.
    """
    said = {(str(one["id"]), one.get("by")) for one in records}
    every = [*(one for one in records_of(path) if (str(one.get("id")), one.get("by")) not in said), *records]
    write_labels(path, every)
    return every


def write_labels(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write labels to a file; it is never half-written."""
    draft = path.with_name(f".{path.name}-{os.getpid()}")  # several people may label at once
    draft.write_text("".join(map(_line, records)), encoding="utf-8")
    draft.replace(path)


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
